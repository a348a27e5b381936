"""Cut a query in any script into the known pieces of words, most probable cut first.

A Unigram tokenizer (Kudo, 2018) in plain Python. A query is short, so a dictionary and a few
hundred look-ups are quicker than loading a tokenizer library, and every platform cuts alike.

Texts are folded first: compatibility forms, case, punctuation and invisible marks do not carry
meaning for a photo search. Scripts that write no spaces start a word without the marker `▁`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache

WORD = "▁"
LONGEST_PIECE = 20
UNKNOWN = -60.0

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

    Attributes:
        rows: Row of each piece.
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        self.rows = dict(zip(scores, range(len(scores)), strict=True))
        self._scores = scores

    def __len__(self) -> int:
        return len(self.rows)

    def cut(self, word: str) -> list[str]:
        """Cut one folded word, marker included, into its most probable known pieces.

        Characters in no piece are left out.
        """
        if word in self._scores:
            return [word]
        n = len(word)
        best = [0.0] + [-1e30] * n
        back = [0] * (n + 1)
        scores = self._scores
        for start in range(n):
            so_far = best[start]
            for end in range(start + 1, min(n, start + LONGEST_PIECE) + 1):
                score = scores.get(word[start:end])
                if score is None:
                    if end > start + 1:
                        continue
                    score = UNKNOWN
                if so_far + score > best[end]:
                    best[end] = so_far + score
                    back[end] = start
        found = []
        end = n
        while end:
            piece = word[back[end] : end]
            if piece in scores:
                found.append(piece)
            end = back[end]
        return found[::-1]

    def encode(self, text: str) -> list[int]:
        """Rows of the pieces of a text, in reading order; empty where nothing is known."""
        rows = self.rows
        return [
            rows[piece]
            for word in fold(text).split()
            for piece in self.cut(word if is_unspaced(word[0]) else WORD + word)
        ]
