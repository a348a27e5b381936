"""Measure retrieval: datasets, metrics, significance, experiments, reports and promotion."""
