"""Which photos a filter lets through, as bitmaps that lie ready."""
