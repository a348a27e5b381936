"""Studies: measurements of colour, paging, steering and more, for benchmarks and notebooks."""
