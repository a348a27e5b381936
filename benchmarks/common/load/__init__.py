"""Servers, what they are asked, and what it costs them: for the benchmarks that go over HTTP."""
