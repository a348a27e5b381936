"""Adapt a model to one's own captioned photos; carry vectors over to another model's space."""
