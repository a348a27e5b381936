"""Pieces of words: texts are folded, and cut into the most probable pieces that are known.

Folding takes off what carries no meaning for a photo search: compatibility forms, case,
punctuation, invisible marks. Cutting is a Unigram tokenizer (Kudo, 2018) over a trie that is
memory-mapped, not read: a query is short, and looking its words up takes less than loading a
tokenizer library. Every platform cuts alike. Scripts that write no spaces start a
word without the marker `▁`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

import marisa_trie
import numpy as np
from numpy.typing import NDArray

PIECES_FILE = "pieces.txt"
PIECE_SCORES_FILE = "piece_scores.npy"
TRIE_FILE = "pieces.trie"
TRIE_ROWS_FILE = "pieces_rows.npy"
"""The first two say what the pieces are; the others are made of them, to be opened at once."""

WORD = "▁"
# Accents that no letter has taken in, and the vowels of Arabic and Hebrew, which few texts write.
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
LONGEST_PIECE = 20
UNKNOWN = -60.0
_WORDS_KEPT = 16_384

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x9FFF),  # CJK, kana
    (0xF900, 0xFAFF),
    (0x1F000, 0x1FAFF),  # pictographs
    (0x2600, 0x27BF),
    (0x20000, 0x3FFFF),
)


def is_unspaced(character: str) -> bool:
    """Say whether a character belongs to a script that puts no spaces between words."""
    code = ord(character)
    if code < _UNSPACED[0][0]:
        return False
    return any(first <= code <= last for first, last in _UNSPACED)


@lru_cache(maxsize=65536)
def _fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if character == "\u200c":
        return " "
    if category == "Cf" or character in "\ufe0e\ufe0f\u0640":
        return ""
    return " " if category[0] in "PZC" else character


def fold(text: str) -> str:
    """Reduce a text to what its pieces are looked up by.

    >>> fold("L’Écureuil,  ROUX!")
    'l écureuil roux'
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    return " ".join("".join(map(_fold_character, plain)).split())


class Pieces:
    """The known pieces, their rows in the embedding table and their log probabilities.

    Instances may be shared between threads.
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        """Make them of log probabilities, in the order of their rows."""
        trie = marisa_trie.Trie(scores)
        rows = np.empty(len(scores), dtype=np.uint32)
        for row, piece in enumerate(scores):
            rows[trie.key_id(piece)] = row
        self._hold(trie, rows, np.fromiter(scores.values(), dtype=np.float64, count=len(scores)))

    @classmethod
    def open(cls, folder: Path) -> Pieces:
        """Open what `save` wrote, without reading it whole.

        Raises:
            OSError: A file is missing or no such file.
            ValueError: The files do not belong together.
        """
        try:
            trie = marisa_trie.Trie().mmap(str(folder / TRIE_FILE))
        except RuntimeError as error:
            msg = f"{TRIE_FILE} is no trie: {error}"
            raise ValueError(msg) from error
        rows = np.load(folder / TRIE_ROWS_FILE, mmap_mode="r")
        scores = np.load(folder / PIECE_SCORES_FILE, mmap_mode="r")
        if not len(trie) == len(rows) == len(scores):
            msg = (
                f"{TRIE_FILE}, {TRIE_ROWS_FILE} and {PIECE_SCORES_FILE} must hold as many pieces, "
                f"got {len(trie):,}, {len(rows):,} and {len(scores):,}"
            )
            raise ValueError(msg)
        made = cls.__new__(cls)
        made._hold(trie, rows, scores)
        return made

    def save(self, folder: Path) -> None:
        """Write the pieces in the order of their rows, their scores in 16 bits, and the trie."""
        names = [""] * len(self)
        for piece, number in self._trie.items():
            names[self._rows[number]] = piece
        (folder / PIECES_FILE).write_text("\n".join(names), encoding="utf-8", newline="\n")
        np.save(folder / PIECE_SCORES_FILE, self._scores.astype(np.float16))
        np.save(folder / TRIE_ROWS_FILE, self._rows)
        self._trie.save(str(folder / TRIE_FILE))

    def _hold(
        self, trie: marisa_trie.Trie, rows: NDArray[np.uint32], scores: NDArray[np.floating]
    ) -> None:
        self._trie = trie
        self._rows = rows
        self._scores = scores
        self._rows_of_word = lru_cache(maxsize=_WORDS_KEPT)(self._look_up)

    def __len__(self) -> int:
        return len(self._trie)

    def __contains__(self, piece: object) -> bool:
        return piece in self._trie

    def cut(self, word: str) -> list[str]:
        """Cut one folded word, marker included, into its most probable known pieces.

        Characters that are in no piece are left out.
        """
        return [piece for piece, _ in self._cut(word)]

    def log_probability(self, piece: str) -> float:
        """Return the natural logarithm of the probability of a known piece.

        Raises:
            KeyError: It is not known.
        """
        return float(self._scores[self._rows[self._trie.key_id(piece)]])

    def encode(self, text: str) -> list[int]:
        """Return the rows of a text's pieces, in reading order; empty if no piece is known."""
        return [
            row
            for word in fold(text).split()
            for row in self._rows_of_word(word if is_unspaced(word[0]) else WORD + word)
        ]

    def _look_up(self, word: str) -> tuple[int, ...]:
        return tuple(int(self._rows[number]) for _, number in self._cut(word))

    def _cut(self, word: str) -> list[tuple[str, int]]:
        """Return the pieces of a word with their numbers in the trie.

        What has marks is cut with them or without, whichever is more probable.
        """
        whole = self._trie.get(word)
        if whole is not None:
            return [(word, whole)]
        bare = _MARKS.sub("", word)
        readings = [word] if bare == word else [word, bare]
        return max(map(self._cut_best, readings), key=itemgetter(0))[1]

    def _cut_best(self, word: str) -> tuple[float, list[tuple[str, int]]]:
        """Return the log probability of the best cut, and its pieces."""
        n = len(word)
        best = [0.0] + [-1e30] * n
        back: list[tuple[int, int | None]] = [(0, None)] * (n + 1)
        for start in range(n):
            so_far = best[start]
            ends = self._trie.iter_prefixes_with_ids(word[start : start + LONGEST_PIECE])
            known = {start + len(piece): number for piece, number in ends}
            for end, number in ({start + 1: None} | known).items():
                score = UNKNOWN if number is None else float(self._scores[self._rows[number]])
                if so_far + score > best[end]:
                    best[end] = so_far + score
                    back[end] = start, number
        pieces = []
        end = n
        while end:
            start, number = back[end]
            if number is not None:
                pieces.append((word[start:end], number))
            end = start
        return best[n], pieces[::-1]
