"""Collections of made vectors to measure on, and how costs grow with their size."""
