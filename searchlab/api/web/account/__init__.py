"""The account dashboard: usage, keys, sessions, export and deletion."""
