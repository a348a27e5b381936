"""open_clip models exported to ONNX, run without PyTorch."""
