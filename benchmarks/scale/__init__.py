"""Parts of `bench_scale.py`."""
