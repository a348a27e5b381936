"""Languages: which one a text is in, and what the forms of a word have in common there.

The language of a text is told by its script where that has one language of ours, else by its
function words. The words of what has none of them are stemmed as English. Stems are Snowball's
(Porter, "Snowball: a language for stemming algorithms", 2001; http://snowballstem.org).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Protocol

from searchlab.search.words.function_words import FUNCTION_WORDS
from searchlab.search.words.terms import Word, fold, terms_of

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
_MOST_LOOKED_UP = 32  # words of a query
_IN_SCRIPTS = {language for *_, languages in _SCRIPTS for language in languages}
OF_SCRIPT = 1e-6
"""Weight of a word's script, relative to a function word's, in choosing a language."""

OF_DOUBLE = 0.1
"""Weight of a function word that is also a common English noun: others must decide."""

DOUBLE = 2**10
"""Added to the places of languages by such words; see `languages_of_word`."""

# "red door" is not Dutch, nor "mint leaves" Hungarian.
_ALSO_ENGLISH = frozenset(
    {"ant", "bat", "care", "door", "mint", "need", "par", "pod", "see", "sit", "son", "sub"}
    | {"ten", "van"}
)

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
        they count where no function word does. Those of words that mean something in English have
        `DOUBLE` added: they count where another word tells of the same language.
    """
    known = _languages_by_word().get(word, ())
    if word in _ALSO_ENGLISH:
        return tuple(number + DOUBLE for number in known)
    return known or (() if word.isascii() else tuple(~number for number in _of_script(word)))


def choose_language(languages: Iterable[tuple[int, ...]]) -> int | None:
    """Return the language that most words tell of, the first of `LANGUAGES` among equals.

    Args:
        languages: For each word of a text, as `languages_of_word` gives them.
    """
    counts: dict[int, float] = {}
    for some in languages:
        for number in some:
            if number >= DOUBLE:
                counts[number - DOUBLE] = counts.get(number - DOUBLE, 0) + OF_DOUBLE
            elif number >= 0:
                counts[number] = counts.get(number, 0) + 1
            else:
                counts[~number] = counts.get(~number, 0) + OF_SCRIPT
    counts = {number: count for number, count in counts.items() if not OF_DOUBLE <= count < 1}
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
