"""Map the vectors of one model into another's space."""
