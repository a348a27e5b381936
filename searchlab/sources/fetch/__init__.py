"""Over the network, politely: addresses, answers, records and pictures."""
