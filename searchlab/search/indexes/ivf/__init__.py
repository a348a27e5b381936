"""The IVF index, an inverted file: 8-bit codes, read cluster by cluster with the filter inside."""
