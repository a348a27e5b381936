"""Collections of vectors to measure on, made and real."""
