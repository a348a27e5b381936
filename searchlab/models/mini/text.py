"""The text tower of `mini`: a text is cut into pieces, and their vectors are mixed and summed.

A query has a handful of words, and the sum of their vectors comes close to the vector that a
multilingual transformer gives it, in a thousandth of the time. A small gate over each piece and the
two beside it adds what the sum alone cannot tell: "dog bites man" is not "man bites dog". The table
has 4 bits a component and a scale per row, memory-mapped, so that the first query of a process
touches only a few pages.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.models.mini.pieces import (
    PIECE_SCORES_FILE,
    PIECES_FILE,
    WORD,
    Pieces,
    fold,
    is_unspaced,
)
from searchlab.models.protocol import Embeddings, TextReading, readable_texts, unit_rows

TABLE_FILE = "table.npy"
SCALES_FILE = "table_scales.npy"
MIXER_FILE = "mixer.npz"
TOKENIZER_FILES = (PIECES_FILE, PIECE_SCORES_FILE)
TEXT_WEIGHTS = (TABLE_FILE, SCALES_FILE, MIXER_FILE)
TEXT_FILES = (*TOKENIZER_FILES, *TEXT_WEIGHTS)
"""Everything that decides a text's row."""

COMMON = 0.3
"""Last component of every text's row. Photos that lie near to all queries have a negative last
component, which lowers their scores (see `searchlab.training.mini.hubness`)."""

_MAX_LENGTH = 10_000
# OpenBLAS splits a matrix product of more multiplications among threads. A query takes less time
# than waking them does, and on a busy server it would wait for them.
_MOST_ON_ONE_THREAD = 262_144

SENTENCES = (
    "afrikaans", "albanian", "arabic", "armenian", "azerbaijani", "basque", "belarusian",
    "bengali", "bulgarian", "catalan", "chinese", "croatian", "czech", "danish", "dutch",
    "english", "esperanto", "estonian", "filipino", "finnish", "french", "galician", "georgian",
    "german", "greek", "hebrew", "hindi", "hungarian", "icelandic", "indonesian", "irish",
    "italian", "japanese", "kazakh", "korean", "latin", "latvian", "lithuanian", "macedonian",
    "malay", "malayalam", "marathi", "mongolian", "norwegian", "persian", "polish", "portuguese",
    "romanian", "russian", "scottish gaelic", "serbian", "slovak", "slovenian", "spanish",
    "swedish", "thai", "turkish", "ukrainian", "urdu", "uyghur", "vietnamese", "welsh", "yiddish",
)  # fmt: skip
"""Languages whose sentences are read: more than half find their English counterpart first among
300 (results/reading/sentences-judge). English is one, as what the others are compared with."""

_LEAST = -6.0  # familiarity of a text without letters
_STRANGE = -12.0  # log probability of a character that is in no piece: that of the rarest pieces
_LETTERS = 3  # that a character of a script without spaces stands for
_SPELLED = 2.0  # letters a piece, at most, of a word that is put together from letters
_SHORT = 4  # letters up to which every word is short pieces


def read_pieces(pieces: Pieces, text: str) -> TextReading:
    """Say how a text is cut into pieces, and which of its words they are no help with."""
    n_pieces, n_letters, log_probability = 0, 0, 0.0
    unknown, spelled, whole = [], [], []
    for word in fold(text).split():
        unspaced = is_unspaced(word[0])
        cut = pieces.cut(word if unspaced else WORD + word)
        letters = [part.replace(WORD, "") for part in cut]
        n_strange = len(word) - sum(map(len, letters))
        n_pieces += len(cut)
        n_letters += sum(_LETTERS if is_unspaced(letter) else 1 for letter in word)
        log_probability += sum(map(pieces.log_probability, cut)) + _STRANGE * n_strange
        if not any(letters):
            unknown.append(word)
        elif not unspaced and len(word) >= _SHORT and _is_of_letters(word):
            n_parts = len(cut) + n_strange
            whole += [word] if n_parts == 1 else []
            spelled += [word] if len(word) <= _SPELLED * n_parts else []
    familiarity = log_probability / n_letters if n_letters else _LEAST
    return TextReading(
        n_pieces=n_pieces,
        familiarity=max(_LEAST, familiarity),
        unknown=tuple(dict.fromkeys(unknown)),
        spelled=tuple(dict.fromkeys(spelled)),
        whole=tuple(dict.fromkeys(whole)),
        sentences=SENTENCES,
    )


def _is_of_letters(word: str) -> bool:
    """Whether a word has letters alone, and the marks that Indic scripts write vowels with."""
    if word.isalpha() or word.isascii():
        return word.isalpha()
    return all(letter.isalpha() or unicodedata.category(letter)[0] == "M" for letter in word)


class Mixer(NamedTuple):
    """Makes a text's row of the vectors of its pieces.

    Attributes:
        direct: (width, dim - 1) weights of a piece by itself, whatever stands beside it.
        window: (3 * width, hidden) weights of a piece with those before and after it.
        bias: (hidden,) added to what `window` gives.
        outer: (hidden, dim - 1) weights from the hidden units to the row.
    """

    direct: NDArray[np.float32]
    window: NDArray[np.float32]
    bias: NDArray[np.float32]
    outer: NDArray[np.float32]

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mix (n_pieces, width) vectors in reading order into a (dim - 1,) row of any length."""
        n, width = vectors.shape
        together = min(n, max(2, _MOST_ON_ONE_THREAD // self.window.size))
        around = np.zeros((-(-n // together) * together, 3 * width), dtype=np.float32)
        around[1:n, :width] = vectors[:-1]
        around[:n, width : 2 * width] = vectors
        around[: n - 1, 2 * width :] = vectors[1:]
        # One product for every few rows, each small enough for one thread.
        products = around.reshape(-1, together, 3 * width) @ self.window
        activations = products.reshape(len(around), -1)[:n] + self.bias
        hidden = np.maximum(activations, 0).sum(axis=0)
        mixed: NDArray[np.float32] = vectors.sum(axis=0) @ self.direct + hidden @ self.outer
        return mixed


def pack(numbers: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Put (n, width) numbers of -8..7 into (n, width / 2) bytes, the first half in the low bits."""
    low, high = np.split((numbers + 8).astype(np.uint8), 2, axis=1)
    return low | high << np.uint8(4)


def unpack(table: NDArray[np.uint8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Make (n, width) vectors of (n, width / 2) packed rows and the (n,) scales of the rows."""
    numbers = np.concatenate([table & 15, table >> 4], axis=1).astype(np.float32)
    vectors: NDArray[np.float32] = (numbers - 8) * scales[:, np.newaxis]
    return vectors


def add_common(mixed: NDArray[np.float32]) -> Embeddings:
    """Make (n, dim) unit rows of (n, dim - 1) mixed ones; the last component is `COMMON`.

    Zero rows stay zero.
    """
    rows = np.empty((len(mixed), mixed.shape[1] + 1), dtype=np.float32)
    rows[:, :-1] = unit_rows(mixed) * np.float32((1 - COMMON**2) ** 0.5)
    rows[:, -1] = COMMON * mixed.any(axis=1)
    return rows


class _LoadedTower(NamedTuple):
    pieces: Pieces
    table: NDArray[np.uint8]
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
        self._loaded: _LoadedTower | None = None

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
                total[:] = mixer(unpack(table[rows], scales[rows]))
        return add_common(mixed)

    def pieces(self) -> Pieces:
        """Return the pieces that it cuts texts into.

        Raises:
            DataError: A file of the tower is missing or damaged.
        """
        return (self._loaded or self._load()).pieces

    def _load(self) -> _LoadedTower:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read()
        return self._loaded

    def _read(self) -> _LoadedTower:
        try:
            pieces = Pieces.open(self.folder)
            table = np.asarray(np.load(self.folder / TABLE_FILE, mmap_mode="r"))
            scales = np.load(self.folder / SCALES_FILE).astype(np.float32)
            with np.load(self.folder / MIXER_FILE) as stored:
                mixer = Mixer(*(stored[name].astype(np.float32) for name in Mixer._fields))
        except (OSError, ValueError, KeyError) as error:
            msg = (
                f"the text tower's files in {self.folder} must be readable, got {error}; "
                "reinstall searchlab"
            )
            raise DataError(msg) from error
        width, dim = mixer.direct.shape[0], mixer.direct.shape[1] + 1
        shape = (len(pieces), width // 2)
        if (table.shape, scales.shape, dim) != (shape, (len(pieces),), self.dim):
            msg = (
                f"{TABLE_FILE} must have shape {shape}, a scale a row and lead to "
                f"{self.dim} components, got {table.shape}, {scales.shape} and {dim}; "
                "reinstall searchlab"
            )
            raise DataError(msg)
        return _LoadedTower(pieces, table, scales, mixer)
