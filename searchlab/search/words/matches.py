"""WordMatches: what the words of a query found, kept for its other pages and other filters.

Gains: what the photos that they found gain over their cosine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import Curve
from searchlab.config.word_weights import WordWeights
from searchlab.errors import count
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

    def describe(self, shown: NDArray[np.int64] | None = None) -> str:
        """Say what was found.

        Args:
            shown: Rows that are shown; how many of them have some of the words is said, too.
        """
        if not self.counts:
            return "no words to look up"
        parts = [f"{word} {n_photos:,}" for word, n_photos in self.counts.items()]
        read = [f"{word} read as {', '.join(terms)}" for word, terms in self.read_as.items()]
        whole = int(self.whole.sum())
        named = f"; {whole:,} with just these words as a title or name" if whole else ""
        where = "" if self.read == ALL_FIELDS else f"; read: {', '.join(names_of(self.read))}"
        here = ""
        if shown is not None and len(shown):
            here = f"; {np.isin(shown, self.rows).sum():,} of the {len(shown):,} here"
        words = "; ".join(parts + read)
        return f"{count(len(self), 'photo')} by words ({words}){named}{here}{where}"


def rarity(count: int, n_photos: int) -> float:
    """Return what a word counts that some of the photos have.

    As in BM25 (Robertson and Zaragoza, 2009): never below 0, largest where no photo has it.
    """
    return math.log1p((max(1, n_photos) - count + 0.5) / (count + 0.5))


def mark(some: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which of ascending rows are among some, which are few or none."""
    marks = np.zeros(len(rows), dtype=np.bool_)
    if len(some) and len(rows):
        places = np.minimum(np.searchsorted(rows, some), len(rows) - 1)
        marks[places[rows[places] == some]] = True
    return marks


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


# -- gains --------------------------------------------------------------------------------------

SCORED_ONE_BY_ONE = 200
"""Photos of the largest gains that are scored without looking for the nearest among them."""

_STEPS = 32  # of a log-odds, in which gains are counted, so that few of them differ
_SPREAD = 2.0  # no two cosines are further apart


@dataclass(frozen=True, eq=False)
class Gains:
    """What some photos gain over their cosine.

    Attributes:
        rows: (n,) int64, ascending; photos that may be found.
        steps: (n,) int64 above 0, the gain of each as a place in `values`.
        values: (n_values,) float64, ascending from 0, in units of the cosine.
    """

    rows: NDArray[np.int64]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of_words(cls, matches: WordMatches, weights: WordWeights, curve: Curve) -> Gains:
        """Turn what words found into gains under one curve from cosines to scores.

        Log-odds are rounded to thirty-seconds.
        """
        steps = matches.precision * np.float32(weights.precision * _STEPS)
        steps += np.float32(weights.coverage * _STEPS)
        steps *= matches.coverage**weights.sharpness
        rounded = np.rint(steps).astype(np.int64)
        values = _values(weights.coverage + weights.precision, curve.slope)
        rounded[matches.whole] += len(values) // 2
        gained = rounded > 0
        if gained.all():
            return cls(matches.rows, rounded, values)
        return cls(matches.rows[gained], rounded[gained], values)

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each of some rows gains, 0 where nothing; (n_rows,) float64."""
        if not len(self.rows):
            return np.zeros(len(rows))
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[places] == rows, self.values[self.steps[places]], 0.0)

    def of_all(self, n_photos: int) -> NDArray[np.float64]:
        """Return what every photo gains, 0 where nothing; (n_photos,) float64."""
        gained = np.zeros(n_photos)
        gained[self.rows] = self.values[self.steps]
        return gained

    def cut(self, start: int, stop: int) -> Gains:
        """Return the gains of the photos from row `start` to `stop`, as rows from 0 on."""
        part = slice(*np.searchsorted(self.rows, (start, stop)).tolist())
        return Gains(self.rows[part] - start, self.steps[part], self.values)

    def groups(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield all rows, ascending, and their gains: first the largest, few; then ever more."""
        if len(self.rows) <= SCORED_ONE_BY_ONE:
            if len(self.rows):
                yield self.rows, self.values[self.steps]
            return
        counts = np.bincount(self.steps, minlength=len(self.values))
        above = np.cumsum(counts[::-1])[::-1]  # rows of this step or a larger one
        size, end = SCORED_ONE_BY_ONE, len(counts)
        while end > 1:
            # As many steps as make a group of this size, at least one.
            taken = 0 if end == len(counts) else int(above[end])
            start = end - 1
            while start > 1 and above[start - 1] - taken <= size:
                start -= 1
            if above[start] > taken:
                some = (self.steps >= start) & (self.steps < end)
                yield self.rows[some], self.values[self.steps[some]]
            end, size = start, 4 * size


@lru_cache(maxsize=64)
def _values(most: float, slope: float) -> NDArray[np.float64]:
    """Return the gain of each step; from the middle on, those of what is just the query."""
    last = math.ceil(most * _STEPS) + 1
    values = np.arange(2 * last + 1) / (_STEPS * slope)
    values[last:] += _SPREAD
    values.setflags(write=False)
    return values


NO_GAINS = Gains(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(1))
"""For ranking by vectors alone."""
