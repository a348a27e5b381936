"""Decoding in processes of their own, where there are more processors than threads can use.

A fifth of the work on a picture holds Python's lock, which one thread of a process has at a time,
so that no more than some five threads can be at work.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from searchlab.errors import SearchlabError
from searchlab.library.decoding import Decode, Decoded, Decoder
from searchlab.photos.images.memory import MAX_DECODING_BYTES
from searchlab.photos.images.resize import Resize

_MOST = 16
_LOOK_S = 1.0  # how often a process looks whether the one that started it still lives


@contextmanager
def decoding_in_processes(decoder: Decoder, n_processes: int) -> Iterator[Decode]:
    """Yield a decoder that hands pictures to processes, and decodes very large ones itself.

    Each process may take its share of the memory for decoding. A picture that needs more is decoded
    by `decoder`, in memory that processes leave free meanwhile, so that all together take no more
    than the threads of one process would. To be called by as many threads as there are processes.

    Args:
        decoder: Decodes in this process.
        n_processes: How many pictures are decoded at once; no more than there are processors that
            this process may use, nor than 16, as each process takes 80 MB.

    Raises:
        SearchlabError: When a picture is decoded: a process has ended, such as for want of memory.
    """
    # Late, for most runs have few pictures. Its processes do not import the caller's script.
    from loky import ProcessPoolExecutor, cpu_count

    n_processes = min(n_processes, cpu_count(), _MOST)
    share = MAX_DECODING_BYTES // n_processes
    pool: Any = ProcessPoolExecutor(
        n_processes,
        initializer=_begin,
        initargs=(decoder.side, decoder.thumbnails, decoder.resize, share, os.getpid()),
    )

    def decode(digest: str, path: Path, sizes: frozenset[int]) -> Decoded:
        try:
            with decoder.room.holding(share):
                decoded: Decoded = pool.submit(_decode, digest, path, sizes).result()
        except _NeedsMoreError:
            return decoder(digest, path, sizes)
        except BrokenProcessPool as error:
            msg = (
                f"processes that decode must live, got one that ended at {path.name} or beside it "
                "(is memory short?); what was embedded is kept: start again"
            )
            raise SearchlabError(msg) from error
        return decoded

    is_whole = False
    try:
        with _interrupts_held_back():
            pool.submit(_do_nothing)  # which starts all of them
        yield decode
        is_whole = True
    finally:
        pool.shutdown(wait=True, kill_workers=not is_whole)


class _NeedsMoreError(Exception):
    """A picture needs more memory than a process may take."""


class _Share:
    """The memory that one process may take."""

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes = n_bytes

    @contextmanager
    def holding(self, n_bytes: int) -> Iterator[None]:
        """Refuse what is more."""
        if n_bytes > self._n_bytes:
            raise _NeedsMoreError
        yield


_decoders: list[Decoder] = []  # of this process, which `_begin` makes


def _begin(side: int, thumbnails: Path, resize: Resize, n_bytes: int, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    _decoders.append(Decoder(side, thumbnails, resize, _Share(n_bytes)))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:  # No system but Linux tells a process that its parent died.
        time.sleep(_LOOK_S)
    os._exit(1)


def _decode(digest: str, path: Path, sizes: frozenset[int]) -> Decoded:
    return _decoders[0](digest, path, sizes)


def _do_nothing() -> None:
    pass


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach even before `_begin`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
