"""Pictures that are decoded ahead in several threads, and come in order.

Ctrl-C strikes wherever the main thread is. Inside a pool or a future it can leave a lock taken, for
which the threads then wait for ever, and the end of the pool for them. So it is held back there,
and strikes between these calls, or while a queue without such a lock is waited for.
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
    """Let Ctrl-C strike at the end of the block; other threads than the main one never see it."""
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
