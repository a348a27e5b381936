"""Lazy: made once, by whoever asks first, and again after it could not be made."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from searchlab.api.snapshots.lazy import Lazy


def test_it_is_made_when_it_is_asked_for_and_not_before():
    calls = []
    later = Lazy(lambda: calls.append(1) or "made")
    assert (later.is_made, calls) == (False, [])
    assert (later.get(), later.get()) == ("made", "made")
    assert (later.is_made, calls) == (True, [1])


def test_many_threads_at_once_get_the_one_that_was_made():
    calls = []

    def make():
        calls.append(1)
        time.sleep(0.02)
        return object()

    later, together = Lazy(make), threading.Barrier(8)

    def ask(_):
        together.wait()
        return later.get()

    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(ask, range(8)))
    assert len(calls) == 1
    assert {id(one) for one in values} == {id(values[0])}


def test_what_could_not_be_made_is_tried_again():
    tries = iter([OSError("no room"), None])

    def make():
        error = next(tries)
        if error is not None:
            raise error

    later = Lazy(make)
    with pytest.raises(OSError, match="no room"):
        later.get()
    assert not later.is_made
    assert later.get() is None
    assert later.is_made
