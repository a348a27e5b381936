"""Waiting for what another process does."""

import time


def wait_until(condition, *, at_most_s=60):
    deadline = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline, f"waited for {at_most_s} s"
        time.sleep(0.01)
