"""WordMatches: what the words of a query found, kept for its other pages and other filters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.words.fields import ALL_FIELDS, names_of

_MOST_QUERIES = 4_096
_MOST_PHOTOS = 2**20  # of 17 bytes each


@dataclass(frozen=True, eq=False)
class WordMatches:
    """What the words of a query found.

    Attributes:
        rows: (n,) int64, ascending; photos with at least one of the words.
        coverage: (n,) float32, 0 to 1: the share of the query that the photo has, where rare words
            count more, and words in a title more than those in a folder's name. In a large library
            words of very many photos count only beside a rarer one, unless there is none.
        precision: (n,) float32, 0 to 1: the share of the title, or of the description, that is
            words of the query.
        whole: (n,) bool, whether a title, description or file name is just the query.
        counts: Photos for each word of the query, filter and all.
        read_as: Words that no photo has -> what they were taken for.
        n_photos: Photos of the library.
        read: Fields that were read, as bits.
    """

    rows: NDArray[np.int64]
    coverage: NDArray[np.float32]
    precision: NDArray[np.float32]
    whole: NDArray[np.bool_]
    counts: dict[str, int]
    read_as: dict[str, list[str]]
    n_photos: int
    read: int = ALL_FIELDS

    def __len__(self) -> int:
        return len(self.rows)

    def under(self, allowed: Bitmap) -> WordMatches:
        """Return the matches of the photos that a filter lets through."""
        passes = allowed.holds(self.rows)
        return replace(
            self,
            rows=self.rows[passes],
            coverage=self.coverage[passes],
            precision=self.precision[passes],
            whole=self.whole[passes],
        )

    @property
    def share(self) -> float:
        """Share of the photos, 0 to 1, that would have all words if each word came by chance.

        Like `counts` it is the same under every filter.
        """
        if not self.counts or not self.n_photos:
            return 0.0
        return math.prod(count / self.n_photos for count in self.counts.values())

    @property
    def reach(self) -> float:
        """Share of the query, 0 to 1, that texts of the library have; rare words count more.

        What is read as another word counts as if no text had it. Like `counts` it is the same under
        every filter.
        """
        weights = {word: rarity(count, self.n_photos) for word, count in self.counts.items()}
        there = (word for word, count in self.counts.items() if count and word not in self.read_as)
        return sum(weights[word] for word in there) / (sum(weights.values()) or 1.0)

    @cached_property
    def description(self) -> str:
        """What was found, in words."""
        if not self.counts:
            return "no words to look up"
        parts = [f"{word} {count:,}" for word, count in self.counts.items()]
        read = [f"{word} read as {', '.join(terms)}" for word, terms in self.read_as.items()]
        whole = int(self.whole.sum())
        named = f"; {whole:,} with just these words as a title or name" if whole else ""
        where = "" if self.read == ALL_FIELDS else f"; read: {', '.join(names_of(self.read))}"
        return f"{len(self):,} photos by words ({'; '.join(parts + read)}){named}{where}"


def rarity(count: int, n_photos: int) -> float:
    """Return what a word counts that some of the photos have.

    As in BM25 (Robertson and Zaragoza, 2009): never below 0, largest where no photo has it.
    """
    return math.log1p((max(1, n_photos) - count + 0.5) / (count + 0.5))


class FoundBefore:
    """What queries found among all photos, without a filter; safe for several threads."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all, so that the next queries cost what new ones do."""
        self._matches: dict[tuple[str, int, frozenset[str]], WordMatches] = {}
        self._n_photos = 0

    def get(self, text: str, read: int, known: frozenset[str]) -> WordMatches | None:
        """Return what a query found before; None if nobody asked. See `WordIndex.match`."""
        return self._matches.get((text, read, known))

    def keep(self, text: str, matches: WordMatches, known: frozenset[str]) -> None:
        """Keep what a query found."""
        if len(matches) > _MOST_PHOTOS:
            return
        if len(self._matches) >= _MOST_QUERIES or self._n_photos + len(matches) > _MOST_PHOTOS:
            self.forget()  # a new dict: nobody's reading of the old one is disturbed
        self._n_photos += len(matches)
        self._matches[text, matches.read, known] = matches
