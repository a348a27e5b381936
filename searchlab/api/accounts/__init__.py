"""The data that the server stores: accounts and keys, usage, collections, replays.

SQLite beside the library by default, PostgreSQL by URL; the same code and the same tests on both.
"""
