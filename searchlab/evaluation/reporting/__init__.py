"""Reporting: measurements as pages, tables and charts, and checks of the numbers in prose."""
