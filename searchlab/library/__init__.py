"""Photos on disk: what was found, embedded and indexed, as snapshots that are swapped in whole."""
