"""Terms: how a text becomes what the text index holds and what a query looks up.

Words are runs of letters, marks and digits, without case and accents. Scripts that are written
without spaces (Chinese, Japanese, Korean in part, Thai, Lao, Khmer, Burmese) are cut into single
characters and pairs of them, as in Lucene's CJK analyser; a query looks up pairs, or a single
character that stands alone.

The language of a text is told by its script where that has one language of ours, else by its
function words. The words of what has none of them are stemmed as English. Stems are Snowball's
(Porter, "Snowball: a language for stemming algorithms", 2001; http://snowballstem.org).
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple, Protocol

from searchlab.search.words.function_words import FUNCTION_WORDS

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_PARTS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_ASCII_WORDS = re.compile(r"[a-z0-9]+").findall
_DIGIT = re.compile(r"\d")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
MAX_TERM_LENGTH = 64
"""Characters of a word that count; what is longer is no word."""

# Accents and vowel points, and what cannot be seen; not the vowels of Indic scripts.
_DROPPED = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf"
    "\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u061c\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4"
    "\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u2069"
    "\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff]"
)
_ALIKE = str.maketrans(
    dict(zip("øđðłħŧıŋ‐‑‒–—―‘’ʼʻ′", "oddlhtin------'''''", strict=True))
    | {"æ": "ae", "œ": "oe", "þ": "th"}
)


# -- words --------------------------------------------------------------------------------------


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


@lru_cache(maxsize=2**12)
def _is_unspaced(character: str) -> bool:
    return re.match(f"[{_UNSPACED}]", character) is not None


# -- languages and stems ------------------------------------------------------------------------

LANGUAGES = tuple(FUNCTION_WORDS)
"""Languages with a stemmer, by Snowball's names."""

UNTOLD = LANGUAGES.index("english")
"""Place in `LANGUAGES` of what texts are stemmed in that tell none, such as titles of one word.

English rules take off a plural and little more, so that they do no harm to other languages: those
of Spanish would make one of "gato" and "gate".
"""

_SCRIPTS = (
    ("\u0370", "\u03ff", ("greek",)),
    ("\u0400", "\u04ff", ("russian",)),
    ("\u0530", "\u058f", ("armenian",)),
    ("\u0600", "\u06ff", ("arabic", "persian")),
    ("\u0900", "\u097f", ("hindi", "nepali")),
    ("\u0b80", "\u0bff", ("tamil",)),
)
_IN_SCRIPTS = {language for *_, languages in _SCRIPTS for language in languages}
_MOST_LOOKED_UP = 32  # words of a query
OF_SCRIPT = 1e-6
"""What the script of a word counts beside a function word, where a language is chosen."""

_stemming = threading.local()


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802


@cache
def _languages_by_word() -> dict[str, tuple[int, ...]]:
    by_word: dict[str, tuple[int, ...]] = {}
    for number, words in enumerate(FUNCTION_WORDS.values()):
        for word in dict.fromkeys(words.split()):
            by_word[word] = (*by_word.get(word, ()), number)
    return by_word


def language_of(words: Iterable[str]) -> int | None:
    """Tell the language of a text by its words.

    Args:
        words: Lower case, with accents.

    Returns:
        A place in `LANGUAGES`; None where no word tells.
    """
    return choose_language(languages_of_word(word) for word in words)


def languages_of_word(word: str) -> tuple[int, ...]:
    """Return the languages that a word tells of: it is a function word of theirs.

    Args:
        word: Lower case, with accents.

    Returns:
        Places in `LANGUAGES`; those of a script that few languages share are negative, less one:
        they count where no function word does.
    """
    known = _languages_by_word().get(word, ())
    return known or (() if word.isascii() else tuple(~number for number in _of_script(word)))


def choose_language(languages: Iterable[tuple[int, ...]]) -> int | None:
    """Return the language that most words tell of, the first of `LANGUAGES` among equals.

    Args:
        languages: For each word of a text, as `languages_of_word` gives them.
    """
    counts: dict[int, float] = {}
    for some in languages:
        for number in some:
            if number >= 0:
                counts[number] = counts.get(number, 0) + 1
            else:
                counts[~number] = counts.get(~number, 0) + OF_SCRIPT
    return max(counts, key=lambda number: (counts[number], -number)) if counts else None


def _of_script(word: str) -> tuple[int, ...]:
    for first, last, languages in _SCRIPTS:
        if first <= word[0] <= last:
            return tuple(LANGUAGES.index(language) for language in languages)
    return ()


def is_function_word(word: str, language: int | None) -> bool:
    """Say whether a word carries no meaning of its own in a language; in none without one."""
    return language is not None and language in _languages_by_word().get(word, ())


def content_words(words: list[str]) -> list[Word]:
    """Return what a query looks up, each once; function words only where there are no others."""
    language = language_of(words)
    content = [word for word in words if not is_function_word(word, language)] or words
    terms = (term for word in dict.fromkeys(content) for term in terms_of(word, asked=True))
    return list(dict.fromkeys(terms))[:_MOST_LOOKED_UP]


@lru_cache(maxsize=2**16)
def stem_key(word: str, language: int) -> str | None:
    """Return what the forms of a word have in common in one language, and only there.

    Args:
        word: Lower case, with accents.
        language: A place in `LANGUAGES`.

    Returns:
        Language and stem; None for words without one: numbers, and those of another script.
    """
    name = LANGUAGES[language]
    if len(word) < 3 or any(character.isdigit() for character in word):
        return None
    if name in _IN_SCRIPTS and word.isascii():
        return None
    return f"{name}:{fold(_stemmer(name).stemWord(word))}"


def _stemmer(name: str) -> _Stemmer:
    # Snowball's stemmers are not safe for several threads.
    stemmers: dict[str, _Stemmer] = _stemming.__dict__.setdefault("by_name", {})
    if name not in stemmers:
        import Stemmer

        stemmers[name] = Stemmer.Stemmer(name)
    return stemmers[name]


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
