"""What runs the app: the server and its workers, publishing, logs, metrics."""
