"""Kernels of the text index, compiled by numba."""
