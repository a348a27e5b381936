"""What search costs as a collection grows: `bench_scale.py` and its parts."""
