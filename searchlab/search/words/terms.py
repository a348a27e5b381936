"""Terms: how a text becomes what the text index holds and what a query looks up.

Words are runs of letters, marks and digits, without case and accents. Scripts that are written
without spaces (Chinese, Japanese, Korean in part, Thai, Lao, Khmer, Burmese) are cut into single
characters and pairs of them, as in Lucene's CJK analyser; a query looks up pairs, or a single
character that stands alone.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from searchlab.search.filters.photographers.folding import fold

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_PARTS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_ASCII_WORDS = re.compile(r"[a-z0-9]+").findall
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
MAX_TERM_LENGTH = 64
"""Characters of a word that count; what is longer is no word."""


class Word(NamedTuple):
    """A word of a text.

    Attributes:
        text: As it stands, in lower case.
        term: Without accents, as the index holds it.
        spelled: Whether it is a word with spaces around it, which has a stem and may be misspelt.
    """

    text: str
    term: str
    spelled: bool


@lru_cache(maxsize=1)
def _word_pattern() -> re.Pattern[str]:
    # `\w` knows letters and digits but not the marks that many Indic words are written with.
    marks = "".join(
        chr(point) for point in range(0x300, 0xFFFF) if unicodedata.category(chr(point))[0] == "M"
    )
    return re.compile(f"[^\\W_{marks}][^\\W_{marks}]*(?:[{marks}]+[^\\W_]*)*")


def words_of(text: str) -> list[str]:
    """Cut a text into words, in lower case, with their accents.

    >>> words_of("L'Île-de-France, 2 Äpfel")
    ['l', 'île', 'de', 'france', '2', 'äpfel']
    """
    if text.isascii():
        words = _ASCII_WORDS(text.lower())
        return [word for word in words if len(word) <= MAX_TERM_LENGTH]
    text = unicodedata.normalize("NFC", text)
    return [word for word in _word_pattern().findall(text.lower()) if len(word) <= MAX_TERM_LENGTH]


def words_of_name(name: str) -> list[str]:
    """Cut a name of a file or folder into words: also where capitals or digits begin.

    >>> words_of_name("SunsetBeach_2023-IMG0042")
    ['sunset', 'beach', '2023', 'img', '0042']
    """
    return words_of(_CAMEL.sub(" ", name))


@lru_cache(maxsize=2**16)
def terms_of(word: str, *, asked: bool = False) -> tuple[Word, ...]:
    """Return what a word is held or looked up by.

    Args:
        word: One of `words_of`.
        asked: Whether it is of a query, which needs no single characters beside their pairs.
    """
    folded = fold(word)
    if not folded.isascii():
        folded = unicodedata.normalize("NFC", folded)
    terms: list[Word] = []
    for part in _PARTS.findall(folded):
        if not _is_unspaced(part[0]):
            terms += [Word(word, piece, spelled=True) for piece in part.split()]
            continue
        pairs = [part[i : i + 2] for i in range(len(part) - 1)]
        singles = [] if asked and pairs else list(part)
        terms += [Word(gram, gram, spelled=False) for gram in dict.fromkeys(pairs + singles)]
    return tuple(terms)


def whole_of(words: list[str]) -> str:
    """Return what two texts are compared by as a whole: their folded words."""
    return " ".join(fold(word) for word in words)


def hash_of(text: str) -> int:
    """Return 64 bits of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def deletions(term: str) -> set[str]:
    """Return a term, and what is left of it without any one of its characters.

    Two words are at most one edit apart only if they share one of these (Garbe, SymSpell).
    """
    return {term, *(term[:i] + term[i + 1 :] for i in range(len(term)))}


def one_edit_apart(one: str, other: str) -> bool:
    """Say whether one insertion, deletion, substitution or swap of neighbours makes them equal."""
    if len(one) > len(other):
        one, other = other, one
    if one == other or len(other) - len(one) > 1:
        return False
    first = next(
        (i for i, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), len(one)
    )
    if len(one) < len(other):
        return one[first:] == other[first + 1 :]
    swapped = other[first : first + 2] == one[first : first + 2][::-1]
    return one[first + 1 :] == other[first + 1 :] or (
        swapped and one[first + 2 :] == other[first + 2 :]
    )


@lru_cache(maxsize=2**12)
def _is_unspaced(character: str) -> bool:
    return re.match(f"[{_UNSPACED}]", character) is not None
