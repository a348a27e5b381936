"""Adapt a model to your own captioned photos by training two small heads."""
