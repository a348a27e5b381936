"""From a query to a page: embed, filter, plan, rank, and cut pages from one ranking."""
