"""Recall and speed of indexes."""
