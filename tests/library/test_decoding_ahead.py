"""Pictures decoded ahead come in order, and Ctrl-C strikes where it leaves no lock taken."""

import contextlib
import os
import random
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from searchlab.library.decoding_ahead import decode_ahead, interrupts_held_back

ITEMS = [(f"{number:03d}", None, frozenset()) for number in range(40)]


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(100):  # a signal strikes before one of the next instructions
        pass


def test_they_come_in_order_and_few_before_they_are_needed():
    started, taken = [], []

    def decode(digest, *_):
        started.append(digest)
        time.sleep(random.Random(digest).random() / 500)  # so that later ones end before
        return digest

    for digest in decode_ahead(decode, ITEMS, ahead=6, threads=4):
        taken.append(digest)
        assert len(started) <= len(taken) + 6
    assert taken == [digest for digest, *_ in ITEMS]


@pytest.mark.parametrize(
    ("owner", "name"), [(ThreadPoolExecutor, "submit"), (Future, "done"), (Future, "result")]
)
def test_an_interrupt_strikes_after_the_call_that_takes_locks(owner, name, monkeypatch):
    whole, calls = getattr(owner, name), []

    def interrupted(*arguments):
        calls.append("began")
        if len(calls) == 9:
            interrupt()
        came = whole(*arguments)
        calls.append("ended")
        return came

    monkeypatch.setattr(owner, name, interrupted)
    with (
        contextlib.closing(decode_ahead(lambda d, *_: d, ITEMS, ahead=6, threads=2)) as pictures,
        pytest.raises(KeyboardInterrupt),
    ):
        list(pictures)
    assert calls == ["began", "ended"] * 5


def test_whoever_waits_for_a_picture_can_be_interrupted_and_no_other_is_begun():
    begun, go_on = [], threading.Event()

    def decode(digest, *_):
        begun.append(digest)
        go_on.wait(60)
        return digest

    timers = [threading.Timer(0.2, interrupt), threading.Timer(0.6, go_on.set)]
    for timer in timers:
        timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(decode_ahead(decode, ITEMS, ahead=6, threads=2))
    assert len(begun) == 2
    for timer in timers:
        timer.join()


def test_what_a_picture_raises_comes_where_it_is_due():
    def decode(digest, *_):
        if digest == "007":
            raise ValueError(digest)
        return digest

    taken = []
    with pytest.raises(ValueError, match="007"):
        taken.extend(decode_ahead(decode, ITEMS, ahead=6, threads=2))
    assert taken == [digest for digest, *_ in ITEMS[:7]]


def test_without_an_interrupt_and_in_other_threads_nothing_is_held_back():
    with interrupts_held_back():
        pass
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def look():
        with interrupts_held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]
