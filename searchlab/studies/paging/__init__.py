"""Whether paging repeats or skips photos while a library changes."""
