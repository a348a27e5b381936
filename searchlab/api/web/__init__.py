"""Pages for people: templates, static files, and the routes that answer with HTML."""
