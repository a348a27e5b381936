"""What words do to a search by picture, at every weight."""
