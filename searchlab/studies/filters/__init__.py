"""Search under filters of every strictness."""
