"""Training: adapt a model, migrate to another one, and make `mini`, the model that ships."""
