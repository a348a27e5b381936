"""Widgets of notebooks: search and look at what is found, with the library that is open there."""
