"""Vectors that were computed elsewhere: read, matched with photos, checked, written."""
