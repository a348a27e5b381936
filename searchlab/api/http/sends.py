"""Sends: large answers on their way to clients, few enough and small enough pieces for the memory.

The server below keeps up to eight pieces of an answer that its client does not read, so pieces get
smaller the more answers are on their way: an answer costs 2 MB at most while there are few, 0.3 MB
when there are many, and 300 MB all together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from searchlab.api.http.fair_share import FairShare
from searchlab.library.renditions import CHUNK

MOST_SENDS: Final = 512
# Answers on their way from which on pieces have at most this size; small ones cost more time.
_PIECES: Final = ((128, 16 * 1024), (32, 64 * 1024))


class Sends:
    """Bounds how many large answers are on their way, in total and to one address."""

    def __init__(self, most: int = MOST_SENDS) -> None:
        self._share = FairShare(most, "room for another large answer")

    @contextmanager
    def sending(self, address: str) -> Iterator[None]:
        """Count an answer while the block sends it.

        Raises:
            HttpProblem: Too many are on their way, to this address or to all (503).
        """
        with self._share.holding(address) as take:
            take(1)
            yield

    @property
    def piece_bytes(self) -> int:
        """Most bytes to hand to the server at once."""
        held = self._share.held
        return next((size for least, size in _PIECES if held >= least), CHUNK)
