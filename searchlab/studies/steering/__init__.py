"""The effect of words on a search by picture, at every weight of the words."""
