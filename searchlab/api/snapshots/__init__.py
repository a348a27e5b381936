"""The library that is served, and what is prepared from each of its snapshots."""
