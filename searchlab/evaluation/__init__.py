"""Measure retrieval: datasets, metrics, significance, experiments, and what comes of them."""
