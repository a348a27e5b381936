"""How the shipped model was made. Needs the extra `clip` and the packages that `sources` pins."""
