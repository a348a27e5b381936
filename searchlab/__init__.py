"""Research, evaluate and serve semantic search over stock photos."""
