"""`palette`: colour words against colour histograms."""
