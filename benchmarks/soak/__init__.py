"""A soak test: everything at once against a real server, and checks of what must hold then."""
