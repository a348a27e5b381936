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
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_PARTS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_ASCII_WORDS = re.compile(r"[a-z0-9]+").findall
_DIGIT = re.compile(r"\d")
_ASCII_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_PICTURE_FILE = re.compile(
    r"(?<=\w)\.(?:jpe?g|png|webp|gif|tiff?|bmp|heic|heif|avif|jxl)(?!\S)", re.IGNORECASE
)
MAX_TERM_LENGTH = 64
"""Characters of a word that count; what is longer is no word where words have spaces."""

RULES = 3
"""Counts up when a text becomes other terms, so that no segment keeps those of before."""

# What may stand within a word; what shows as a gap, or is a place to break, ends it.
_WITHIN = re.compile(
    "[\u00ad\u0640\u200d-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]"
)

# Accents and vowel points, and what cannot be seen; not the vowels of Indic scripts.
_DROPPED = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf"
    "\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u061c\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4"
    "\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u2069"
    "\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff]"
)
_LETTERS_ALIKE = str.maketrans("ʼʻ", "''")  # apostrophes that count as letters
_ALIKE = str.maketrans(
    dict(zip("øđðłħŧıŋ‐‑‒–—―‘’ʼʻ′", "oddlhtin------'''''", strict=True))
    | {"æ": "ae", "œ": "oe", "þ": "th"}
)


def fold(text: str) -> str:
    """Reduce a text to what names are compared by: no case, no accents, single spaces.

    >>> fold("  Zoë  SØRENSEN-Łęcki "), fold("Straße"), fold("O’Neil")
    ('zoe sorensen-lecki', 'strasse', "o'neil")
    """
    if not text.isascii():
        bare = _DROPPED.sub("", unicodedata.normalize("NFKD", text)).casefold()
        text = unicodedata.normalize("NFKD", bare).translate(_ALIKE)
    return " ".join(_DROPPED.sub("", text).casefold().split())


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


@lru_cache(maxsize=1)
def _name_pattern() -> re.Pattern[str]:
    # As `_ASCII_PARTS`, of all scripts.
    letters = [chr(point) for point in range(0x41, 0x1_0000) if chr(point).isalpha()]
    small = "".join(letter for letter in letters if letter.islower())
    capital = "".join(letter for letter in letters if letter.isupper())
    letter = r"[^\W\d_]"
    return re.compile(rf"(?<=[{small}])(?=[{capital}])|(?<={letter})(?=\d)|(?<=\d)(?={letter})")


def words_of(text: str) -> list[str]:
    """Cut a text into words, in lower case, with their accents.

    >>> words_of("L'Île-de-France, 2 Äpfel")
    ['l', 'île', 'de', 'france', '2', 'äpfel']
    """
    if text.isascii():
        words = _ASCII_WORDS(text.lower())
        if len(text) <= MAX_TERM_LENGTH:
            return words
        return [word for word in words if len(word) <= MAX_TERM_LENGTH]
    text = unicodedata.normalize("NFC", _WITHIN.sub("", text)).translate(_LETTERS_ALIKE).lower()
    # Of the Turkish capital İ a dot is left, which "i" has already.
    words = _word_pattern().findall(text.replace("i\u0307", "i"))
    if len(text) <= MAX_TERM_LENGTH or max(map(len, words), default=0) <= MAX_TERM_LENGTH:
        return words
    return [part for word in words for part in _shortened(word)]


def _shortened(word: str) -> list[str]:
    """Cut what is unspaced into stretches that share a character, so that no pair is lost."""
    if len(word) <= MAX_TERM_LENGTH:
        return [word]
    return [
        part[start : start + MAX_TERM_LENGTH]
        for part in _PARTS.findall(word)
        if len(part) <= MAX_TERM_LENGTH or _is_unspaced(part[0])
        for start in range(0, max(len(part) - 1, 1), MAX_TERM_LENGTH - 1)
    ]


def words_of_name(name: str) -> list[str]:
    """Cut a name of a file or folder into words: also where capitals or digits begin.

    >>> words_of_name("SunsetBeach_2023-IMG0042"), words_of_name("Été2023")
    (['sunset', 'beach', '2023', 'img', '0042'], ['été', '2023'])
    """
    if name.isascii():
        return words_of(_ASCII_PARTS.sub(" ", name))
    return words_of(_name_pattern().sub(" ", unicodedata.normalize("NFC", name)))


def words_of_query(text: str, is_written: Callable[[str], bool]) -> list[str]:
    """Cut a query into words; what nobody wrote so, but as parts of a name, into those parts.

    >>> words_of_query("DSC01234.jpg at iPhone", {"dsc", "01234", "at", "iphone"}.__contains__)
    ['dsc', '01234', 'at', 'iphone']

    Args:
        text: The query.
        is_written: Says whether any photo has a word.
    """
    words = words_of(text)
    if words == words_of_name(text) and "." not in text:
        return words
    read: list[str] = []
    for piece in _PICTURE_FILE.sub("", text).split():
        words, parts = words_of(piece), words_of_name(piece)
        as_parts = words != parts and not all(map(is_written, words))
        read += parts if as_parts and all(map(is_written, parts)) else words
    return read


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
    parts = _PARTS.findall(folded)
    terms: list[Word] = []
    for part in parts:
        if not _is_unspaced(part[0]):
            # With others beside it a piece is a word of its own, wherever it is met first.
            pieces = part.split()
            alone = len(parts) == len(pieces) == 1
            terms += [Word(word if alone else piece, piece, spelled=True) for piece in pieces]
            continue
        pairs = [part[i : i + 2] for i in range(len(part) - 1)]
        singles = [] if asked and pairs else list(part)
        terms += [Word(gram, gram, spelled=False) for gram in dict.fromkeys(pairs + singles)]
    return tuple(terms)


def whole_of(words: list[str]) -> str:
    """Return what two texts are compared by as a whole: their folded words."""
    return " ".join(fold(word) for word in words)


@lru_cache(maxsize=2**12)
def _is_unspaced(character: str) -> bool:
    return re.match(f"[{_UNSPACED}]", character) is not None


# -- hashes and typing errors -------------------------------------------------------------------


def has_digit(term: str) -> bool:
    """Say whether a term has a digit, of any script: it is no word, but a number or a name."""
    return _DIGIT.search(term) is not None


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
