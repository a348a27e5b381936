"""One file a photo library: how its records read."""
