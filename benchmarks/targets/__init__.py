"""Targets of performance beside what was measured: `bench_targets.py` and its goals."""
