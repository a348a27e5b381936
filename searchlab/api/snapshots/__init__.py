"""What is served: the live library and what is prepared from its snapshot."""
