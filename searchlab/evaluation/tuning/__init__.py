"""Measure a library's own index on this machine, and choose how it answers."""
