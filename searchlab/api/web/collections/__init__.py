"""The pages of collections: one's own, and the public ones that need no account."""
