"""The v1 HTTP API: the promoted configuration behind Litestar."""
