"""Vocabulary: what is worked out once for a word, however many photos have it.

Words get numbers, and what they are known by lies in arrays under these numbers, so that a block of
texts is a gather. Words with a digit are known for one block alone, since cameras give every photo
a number of its own: else a library's numbers would fill the memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.search.words.languages import languages_of_word
from searchlab.search.words.terms import Word, has_digit, hash_of, terms_of

_MIXED = -(2**30)


class Ragged(NamedTuple):
    """For each number some values, none or more.

    Attributes:
        counts: (n,) int64.
        values: (n_values,), end to end.
    """

    counts: NDArray[np.int64]
    values: NDArray[np.int64]

    def of(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the values of some numbers end to end, and which of the numbers each is of."""
        counts = self.counts[numbers]
        owners = np.repeat(np.arange(len(numbers)), counts)
        starts = np.cumsum(self.counts) - self.counts
        shifts = starts[numbers] - (np.cumsum(counts) - counts)
        return self.values[np.arange(len(owners)) + shifts[owners]], owners


class Known(NamedTuple):
    """What the words of a block are known by.

    Attributes:
        words: (n,) places of its words in `terms` and `languages`.
        terms: Numbers of terms without a digit.
        languages: As `languages_of_word` gives them.
        numerals: (n_here,) terms with a digit, as places in `hashes`.
        owners: (n_here,) places in `words` that each is of.
        hashes: (n_numerals,) uint64 of terms with a digit.
    """

    words: NDArray[np.int64]
    terms: Ragged
    languages: Ragged
    numerals: NDArray[np.int64]
    owners: NDArray[np.int64]
    hashes: NDArray[np.uint64]


class _Words:
    """What some words are known by: terms, numerals and languages."""

    def __init__(self) -> None:
        self._counts = array("i"), array("i"), array("i")
        self._values = array("i"), array("i"), array("i")

    def append(self, *known: Sequence[int]) -> int:
        """Take in a word; returns its number among these."""
        for counts, values, some in zip(self._counts, self._values, known, strict=True):
            counts.append(len(some))
            values.extend(some)
        return len(self) - 1

    def __len__(self) -> int:
        return len(self._counts[0])

    def before(self, others: Sequence[tuple[Sequence[int], ...]]) -> list[Ragged]:
        """Return terms, numerals and languages of these words, and of others after them."""
        columns = zip(*others, strict=True) if others else ((), (), ())
        return [
            Ragged(
                _joined(counts, [len(some) for some in column]),
                _joined(values, [value for some in column for value in some]),
            )
            for counts, values, column in zip(self._counts, self._values, columns, strict=True)
        ]


def _joined(one: array[int], other: list[int]) -> NDArray[np.int64]:
    return np.concatenate([np.array(one, dtype=np.int64), np.array(other, dtype=np.int64)])


class WordVocabulary:
    """Words and terms that were met.

    Attributes:
        terms: Term without a digit -> its number, from 0 on.
        spelled: Word with spaces around it, as it stands -> number of its term. Several words may
            have one term, and each has its own stem.
    """

    def __init__(self) -> None:
        self.terms: dict[str, int] = {}
        self.spelled: dict[str, int] = {}
        # Numbers of words: from `_MIXED` down of those with digits and more, from -1 down of those
        # that are one numeral, which stand for the first word, one without anything.
        self._numbers: dict[str, int] = {}
        self._lasting = _Words()
        self._lasting.append((), (), ())
        self._passing: list[tuple[Sequence[int], ...]] = []
        self._passing_words: list[str] = []
        self._numerals: dict[str, int] = {}

    def read(self, words: list[str]) -> list[int]:
        """Return the numbers of words in this block; `finish_block` says what they stand for.

        Those from 0 on are the same in all blocks.
        """
        numbers = list(map(self._numbers.get, words))
        if None in numbers:
            return [
                self._learn(word) if number is None else number
                for word, number in zip(words, numbers, strict=True)
            ]
        return numbers  # type: ignore[return-value]

    def finish_block(self, numbers: NDArray[np.int64]) -> Known:
        """Say what is known of the words of a block, and forget its numerals.

        Args:
            numbers: (n,) of `read` since the last block.
        """
        terms, mixed, languages = self._lasting.before(self._passing)
        words = np.where(numbers <= _MIXED, len(self._lasting) + _MIXED - numbers, numbers)
        plain = np.flatnonzero((numbers < 0) & (numbers > _MIXED))
        words[plain] = 0
        numerals, owners = mixed.of(words)
        hashes = np.fromiter(map(hash_of, self._numerals), np.uint64, len(self._numerals))
        for word in self._passing_words:
            del self._numbers[word]
        self._passing, self._passing_words, self._numerals = [], [], {}
        return Known(
            words,
            terms,
            languages,
            np.concatenate([numerals, -1 - numbers[plain]]),
            np.concatenate([owners, plain]),
            hashes,
        )

    def _learn(self, word: str) -> int:
        if word in self._numbers:  # twice in a text
            return self._numbers[word]
        # What is ASCII is a single term: the word itself.
        is_plain = word.isascii()
        if is_plain and has_digit(word):
            return self._pass(word, -1 - self._number_numeral(word))
        terms, numerals = list[int](), list[int]()
        for text, term, spelled in (
            (Word(word, word, spelled=True),) if is_plain else terms_of(word)
        ):
            if has_digit(term):
                numerals.append(self._number_numeral(term))
                continue
            number = self.terms.setdefault(term, len(self.terms))
            if spelled:
                self.spelled[text] = number
            terms.append(number)
        if numerals:
            self._passing.append((terms, numerals, languages_of_word(word)))
            return self._pass(word, _MIXED + 1 - len(self._passing))
        self._numbers[word] = self._lasting.append(terms, numerals, languages_of_word(word))
        return self._numbers[word]

    def _pass(self, word: str, number: int) -> int:
        self._passing_words.append(word)
        self._numbers[word] = number
        return number

    def _number_numeral(self, term: str) -> int:
        return self._numerals.setdefault(term, len(self._numerals))
