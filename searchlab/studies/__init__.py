"""Labs: what searchlab promises about colour, paging, steering and more, measured."""
