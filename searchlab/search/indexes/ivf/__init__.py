"""The clustered (IVF) index: 8-bit codes, read cluster by cluster with the filter inside."""
