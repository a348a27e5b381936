"""How fast models embed: `bench_embedding.py` and its pictures, stages, limits and charts."""
