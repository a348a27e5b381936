"""Fetching over the network, politely: checked addresses, answers of APIs, records and pictures."""
