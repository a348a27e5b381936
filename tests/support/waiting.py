"""Waiting for what another process does."""

import time


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited for 60 s"
        time.sleep(0.01)
