"""More than one machine: libraries at any address, and photos embedded by workers on Ray."""
