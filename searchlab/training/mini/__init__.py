"""Build `mini`, the model that ships, from public parts."""
