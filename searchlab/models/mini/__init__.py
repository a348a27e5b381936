"""`mini`: the joint image and text space that ships inside."""
