"""The text tower of `mini`: a table of vectors for pieces of words, summed.

A query has a handful of words, and their sum (weights are in the lengths of the rows) comes close
to what a multilingual transformer says of it, in a thousandth of the time. The table is int8 with
one scale a row, memory-mapped, so that the first query of a process touches a few pages only.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.models.inputs import readable_texts
from searchlab.models.pieces import Pieces
from searchlab.models.protocol import Embeddings, unit_rows

PIECES_FILE = "pieces.txt"
PIECE_SCORES_FILE = "piece_scores.npy"
TABLE_FILE = "table.npy"
SCALES_FILE = "table_scales.npy"
TEXT_FILES = (PIECES_FILE, PIECE_SCORES_FILE, TABLE_FILE, SCALES_FILE)
"""Everything that decides a text's row."""

_MAX_LENGTH = 10_000


class _Loaded(NamedTuple):
    pieces: Pieces
    table: NDArray[np.int8]
    scales: NDArray[np.float32]


class StaticTextTower:
    """Embed texts by summing rows of a table, in well under a millisecond, with numpy alone.

    Nothing is read before the first text. Instances may be shared between threads.

    Attributes:
        folder: Where the four files of `TEXT_FILES` lie.
        dim: Components of a row.
    """

    def __init__(self, folder: Path, *, dim: int) -> None:
        self.folder = folder
        self.dim = dim
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def encode(self, texts: Sequence[str]) -> Embeddings:
        """Embed texts in any language.

        A text's row does not depend on its neighbours in `texts`.

        Args:
            texts: Queries or descriptions; any length, any characters.

        Returns:
            (n_texts, dim) float32, unit rows; a zero row for a text of which no piece is known.

        Raises:
            DataError: A file of the tower is missing or damaged.
            InputError: `texts` is one string, or holds something else.
        """
        texts = readable_texts(texts, max_length=_MAX_LENGTH)
        pieces, table, scales = self._loaded or self._load()
        sums = np.zeros((len(texts), self.dim), dtype=np.float32)
        for total, text in zip(sums, texts, strict=True):
            rows = pieces.encode(text)
            if rows:
                total[:] = scales[rows] @ table[rows].astype(np.float32)
        return unit_rows(sums)

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read()
        return self._loaded

    def _read(self) -> _Loaded:
        try:
            names = (self.folder / PIECES_FILE).read_text(encoding="utf-8").split("\n")
            scores = np.load(self.folder / PIECE_SCORES_FILE).astype(np.float64).tolist()
            table = np.load(self.folder / TABLE_FILE, mmap_mode="r")
            scales = np.load(self.folder / SCALES_FILE).astype(np.float32)
            pieces = Pieces(dict(zip(names, scores, strict=True)))
        except (OSError, ValueError) as error:
            msg = (
                f"the text tower's files in {self.folder} must be readable, got {error}; "
                "reinstall searchlab"
            )
            raise DataError(msg) from error
        if table.shape != (len(pieces), self.dim) or scales.shape != (len(pieces),):
            msg = (
                f"{TABLE_FILE} must have shape {(len(pieces), self.dim)} and a scale a row, "
                f"got {table.shape} and {scales.shape}; reinstall searchlab"
            )
            raise DataError(msg)
        return _Loaded(pieces, table, scales)
