"""What an index finds, and how fast."""
