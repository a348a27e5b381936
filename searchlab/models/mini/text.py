"""The text tower of `mini`: vectors of pieces of words, mixed with their neighbours, and summed.

A query has a handful of words, and the sum of their vectors comes close to what a multilingual
transformer says of it, in a thousandth of the time. A small gate over each piece and the two beside
it adds what the sum alone cannot tell: "dog bites man" is not "man bites dog".

The table is int8 with one scale a row, memory-mapped, so that the first query of a process touches
a few pages only.
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
from searchlab.models.mini.pieces import Pieces
from searchlab.models.protocol import Embeddings, unit_rows

PIECES_FILE = "pieces.txt"
PIECE_SCORES_FILE = "piece_scores.npy"
TABLE_FILE = "table.npy"
SCALES_FILE = "table_scales.npy"
MIXER_FILE = "mixer.npz"
TOKENIZER_FILES = (PIECES_FILE, PIECE_SCORES_FILE)
TEXT_WEIGHTS = (TABLE_FILE, SCALES_FILE, MIXER_FILE)
TEXT_FILES = (*TOKENIZER_FILES, *TEXT_WEIGHTS)
"""Everything that decides a text's row."""

COMMON = 0.3
"""Last component of every text's row, against which a photo's last is weighed: photos that lie near
to whatever is asked have a negative one there (see `searchlab.training.mini.hubness`)."""

_MAX_LENGTH = 10_000
# OpenBLAS hands what is larger to several threads. A query is done before the others have woken,
# and on a busy server it would wait for them.
_ALONE = 262_144


class Mixer(NamedTuple):
    """From the vectors of a text's pieces to its row.

    Attributes:
        direct: (width, dim - 1) what a piece adds whatever stands beside it.
        window: (3 * width, hidden) looks at a piece and at those before and after it.
        bias: (hidden,) of that look.
        outer: (hidden, dim - 1) what is made of it.
    """

    direct: NDArray[np.float32]
    window: NDArray[np.float32]
    bias: NDArray[np.float32]
    outer: NDArray[np.float32]

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mix (n_pieces, width) vectors in reading order; (dim - 1,), not of unit length."""
        n, width = vectors.shape
        together = min(n, max(2, _ALONE // self.window.size))
        around = np.zeros((-(-n // together) * together, 3 * width), dtype=np.float32)
        around[1:n, :width] = vectors[:-1]
        around[:n, width : 2 * width] = vectors
        around[: n - 1, 2 * width :] = vectors[1:]
        looks = around.reshape(-1, together, 3 * width) @ self.window  # a product for each few rows
        seen = looks.reshape(len(around), -1)[:n] + self.bias
        hidden = np.maximum(seen, 0).sum(axis=0)
        mixed: NDArray[np.float32] = vectors.sum(axis=0) @ self.direct + hidden @ self.outer
        return mixed


def with_common(mixed: NDArray[np.float32]) -> Embeddings:
    """Bring (n, dim - 1) mixed rows to unit length, `COMMON` their last component; zeros stay."""
    rows = np.empty((len(mixed), mixed.shape[1] + 1), dtype=np.float32)
    rows[:, :-1] = unit_rows(mixed) * np.float32((1 - COMMON**2) ** 0.5)
    rows[:, -1] = COMMON * mixed.any(axis=1)
    return rows


class _Loaded(NamedTuple):
    pieces: Pieces
    table: NDArray[np.int8]
    scales: NDArray[np.float32]
    mixer: Mixer


class TextTower:
    """Embed texts from a table of pieces, in well under a millisecond, with numpy alone.

    Nothing is read before the first text. Instances may be shared between threads.

    Attributes:
        folder: Where the files of `TEXT_FILES` lie.
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
        pieces, table, scales, mixer = self._loaded or self._load()
        mixed = np.zeros((len(texts), self.dim - 1), dtype=np.float32)
        for total, text in zip(mixed, texts, strict=True):
            rows = pieces.encode(text)
            if rows:
                total[:] = mixer(table[rows] * scales[rows, np.newaxis])
        return with_common(mixed)

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
            with np.load(self.folder / MIXER_FILE) as stored:
                mixer = Mixer(*(stored[name].astype(np.float32) for name in Mixer._fields))
            pieces = Pieces(dict(zip(names, scores, strict=True)))
        except (OSError, ValueError, KeyError) as error:
            msg = (
                f"the text tower's files in {self.folder} must be readable, got {error}; "
                "reinstall searchlab"
            )
            raise DataError(msg) from error
        width, dim = mixer.direct.shape[0], mixer.direct.shape[1] + 1
        if (table.shape, scales.shape, dim) != ((len(pieces), width), (len(pieces),), self.dim):
            msg = (
                f"{TABLE_FILE} must have shape {(len(pieces), width)}, a scale a row and lead to "
                f"{self.dim} components, got {table.shape}, {scales.shape} and {dim}; "
                "reinstall searchlab"
            )
            raise DataError(msg)
        return _Loaded(pieces, table, scales, mixer)
