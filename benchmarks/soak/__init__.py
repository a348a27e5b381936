"""Everything at once against a real server: who does what, and what must then hold."""
