"""OAuth 2.0: lets programs of others use an account as far as its owner has agreed."""
