"""Reporting: what was measured as pages, tables, charts and prose that is held to its source."""
