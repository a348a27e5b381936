"""Pictures that are decoded ahead in several threads, and come in order.

Ctrl-C interrupts the main thread anywhere. In a pool or a future it can leave a lock taken, for
which the threads then wait for ever, and the pool for the threads. So it is held back there,
and takes effect between these calls, or while waiting for a queue without a lock.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

from searchlab.library.decoding import Decode, Decoded


def decode_ahead(
    decode: Decode,
    items: Iterable[tuple[str, Path, frozenset[int]]],
    *,
    ahead: int,
    threads: int,
) -> Generator[Decoded]:
    """Decode in several threads, in order, at most `ahead` pictures before they are needed."""
    ended: SimpleQueue[None] = SimpleQueue()
    running: deque[Future[Decoded]] = deque()
    rest = iter(items)

    def start(n_more: int) -> None:
        for item in islice(rest, n_more):
            with interrupts_held_back():
                running.append(pool.submit(decode, *item))
                running[-1].add_done_callback(lambda _: ended.put(None))

    def next_has_ended() -> bool:
        with interrupts_held_back():
            return running[0].done()

    with ThreadPoolExecutor(threads, thread_name_prefix="decode") as pool:
        try:
            start(ahead)
            while running:
                while not next_has_ended():
                    ended.get()
                with interrupts_held_back():
                    decoded = running.popleft().result()
                start(1)
                yield decoded
        finally:
            for future in running:
                future.cancel()


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block; threads other than the main one never see it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *struck: held.append(struck))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            before(*held[-1])
