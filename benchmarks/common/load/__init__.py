"""Servers, the load they get, and what it costs them: for the benchmarks that go over HTTP."""
