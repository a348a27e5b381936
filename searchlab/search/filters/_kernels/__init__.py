"""Compiled kernels of filters and facets."""
