"""Decoding in processes of their own, where there are more processors than threads can use.

A fifth of the work on a picture holds Python's lock, which one thread of a process has at a time.
From some five threads on, more of them decode hardly more.
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
from types import TracebackType
from typing import Any, Self

from searchlab.errors import SearchlabError
from searchlab.library.decoding import Decoded, Decoder
from searchlab.photos.images.memory import MAX_DECODING_BYTES
from searchlab.photos.images.resize import Resize

_MOST = 16
_LOOK_S = 1.0  # how often a process looks whether the one that started it still lives


class DecodingProcesses:
    """A decoder that hands pictures to processes, and decodes very large ones itself.

    Each process may take its share of the memory for decoding, so that all of them together take
    no more than the threads of one would. A picture that needs more is decoded by `decoder`, whose
    own memory comes on top. To be called by as many threads as there are processes; used as a
    context manager.

    Args:
        decoder: Decodes in this process.
        n_processes: How many pictures are decoded at once; no more than there are processors that
            this process may use, nor than 16, as each process takes 80 MB.

    Raises:
        SearchlabError: When a picture is decoded: a process has ended, such as for want of memory.
    """

    def __init__(self, decoder: Decoder, n_processes: int) -> None:
        # Late, for most runs have few pictures. Its processes do not import the caller's script.
        from loky import ProcessPoolExecutor, cpu_count

        n_processes = min(n_processes, cpu_count(), _MOST)
        self._decoder = decoder
        self._pool: Any = ProcessPoolExecutor(
            n_processes,
            initializer=_begin,
            initargs=(
                decoder.side,
                decoder.thumbnails,
                decoder.resize,
                MAX_DECODING_BYTES // n_processes,
                os.getpid(),
            ),
        )

    def __enter__(self) -> Self:
        """Start the processes; Ctrl-C reaches this one alone."""
        with _interrupts_held_back():
            self._pool.submit(_do_nothing)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes."""
        self._pool.shutdown(wait=True, kill_workers=error is not None)

    def __call__(self, digest: str, path: Path, sizes: frozenset[int]) -> Decoded:
        """Decode the picture of a file; see `Decoder.__call__`."""
        try:
            decoded: Decoded = self._pool.submit(_decode, digest, path, sizes).result()
        except _NeedsMoreError:
            return self._decoder(digest, path, sizes)
        except BrokenProcessPool as error:
            msg = (
                f"processes that decode must live, got one that ended at {path.name} or beside it "
                "(is memory short?); what was embedded is kept: start again"
            )
            raise SearchlabError(msg) from error
        return decoded


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
    while os.getppid() == parent:
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
