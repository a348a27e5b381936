"""From untrusted bytes to pixels and what is computed from them."""
