"""Any open_clip model, run with PyTorch."""
