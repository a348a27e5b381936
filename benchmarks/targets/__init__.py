"""Parts of `bench_targets.py`."""
