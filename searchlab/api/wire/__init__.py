"""What goes over the wire: parameters, requests, schema, envelope, errors."""
