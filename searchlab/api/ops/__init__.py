"""Operation of the service: the server and its workers, publishing, logs and metrics."""
