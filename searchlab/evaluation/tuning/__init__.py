"""Measure a library's index on this machine, so that the planner can choose how to answer."""
