"""A disk that is full, for this process."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(room=0):
    """Let no file grow beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
