"""Embedding on an accelerator: its limit, our feed and open_clip's own loop."""
