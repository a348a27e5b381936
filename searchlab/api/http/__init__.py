"""HTTP around the routes: middleware, bodies, uploads, media, ranges, caching."""
