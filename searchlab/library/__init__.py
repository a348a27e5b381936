"""Photos on disk: scanned, embedded and indexed into snapshots that are swapped in whole."""
