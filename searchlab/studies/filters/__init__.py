"""Search with filters of every strictness."""
