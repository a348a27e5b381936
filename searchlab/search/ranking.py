"""Ranking: the photos of one query in their order, by content, date, colour or id.

The first part of an approximate ranking is searched to fixed depths, for any page, so that the
order of the first photos does not depend on how far a reader pages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.calibration import DIGITS, Curve
from searchlab.models.protocol import Embeddings
from searchlab.photos.table import PhotoTable
from searchlab.search.color_order import rank_by_color
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.facets import Facets
from searchlab.search.indexes import VectorIndex
from searchlab.search.indexes.merging import Scored
from searchlab.search.queries import Query, QueryPlan
from searchlab.search.ranked_before import Ranked, RankedBefore
from searchlab.search.words.matches import NO_GAINS, Gains, WordMatches

BESIDE_PICTURE = 0.125
"""Weight of words in a photo's texts in a query with a picture; it is 1 without one."""

AHEAD = 1_000
"""Photos to rank for a later page, if it needs no more."""


@dataclass(frozen=True, eq=False, slots=True)
class Ranker:
    """One query, all that its ranking depends on, and the ranking.

    Attributes:
        table: The photos.
        facets: Sets of them.
        index: Their vectors.
        config: How they are ranked.
        curve: From cosines of this query to scores.
        query: What is asked.
        vector: (dim,) unit row of the query; None where it has only conditions.
        matches: What the words of the query found; None where texts are not read.
        plan: How the query is answered.
        allowed: Rows that may be found; None for all.
        before: Rankings that were paged through.
        text_share: Weight of the words' cosine in that of the mixed vector.
    """

    table: PhotoTable
    facets: Facets
    index: VectorIndex
    config: Config
    curve: Curve
    query: Query
    vector: Embeddings | None
    matches: WordMatches | None
    plan: QueryPlan
    allowed: Bitmap | None
    before: RankedBefore
    text_share: float = 1.0

    def cut(self, k: int | None, start: int) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
        """Return rows and scores from place `start` to min(k, total), and the total.

        Args:
            k: Photos, counted from the first of the ranking; all if None.
            start: Photos at its beginning that are left out.
        """
        query, n_allowed = self.query, self.plan.n_allowed
        most = n_allowed if query.limit is None else min(n_allowed, query.limit)
        stop = most if k is None else min(k, most)
        by_date = query.sort_by == "newest"
        has_threshold = bool(query.score_threshold)  # every photo reaches a threshold of 0
        if self.vector is None or (by_date and query.limit is None and not has_threshold):
            return *self._list_all(start, stop), most
        n_wanted = most if by_date or has_threshold else stop
        if start:
            rows, scores = self._page_on(self.vector, n_wanted, most)
        else:
            rows, scores = self._rank(self.vector, n_wanted)
        total = len(rows) if has_threshold else most
        if by_date:
            newest = np.lexsort((rows, -self.table.uploaded_days[rows].astype(np.int64)))
            rows, scores = rows[newest], scores[newest]
        return rows[start:stop], scores[start:stop], total

    def _list_all(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        # Every allowed photo is a result, so only those of the page are read.
        stop = max(start, stop)
        if self.query.sort_by == "newest":
            rows = self.facets.newest(self.allowed, stop, start)
        elif self.query.filter.has_color:
            rows = rank_by_color(self.query.filter, self.facets, self.allowed, start, stop)
        elif self.allowed is None:
            rows = np.arange(start, stop)
        else:
            rows = self.allowed.part(start, stop)
        if self.vector is None:
            return rows, np.ones(len(rows))
        similar = self.index.score_rows(self.vector, rows)
        return rows, self.curve.relevance(similar + self._gains.of(rows))

    def _page_on(
        self, vector: Embeddings, n_wanted: int, most: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rank further than a later page needs, and keep that for the pages after it."""
        query, plan = self.query, self.plan
        asked = (query.text, query.photo_id, query.filter, query.text_alpha)
        found_by = (query.score_threshold, plan.mode, plan.effort, vector.tobytes())
        n_ahead = max(AHEAD, 2 * n_wanted)
        *_, deepest = _depths(self.index, self.config)
        if plan.mode != "exact" and n_wanted <= deepest:
            n_ahead = deepest  # which is searched to anyway
        ranked = self.before.rank(
            (query.kind, asked, found_by),
            n_wanted,
            max(n_wanted, min(most, n_ahead)),
            lambda n: Ranked(*self._rank(vector, n), n),
        )
        return ranked.rows[:n_wanted], ranked.scores[:n_wanted]

    def _rank(
        self, vector: Embeddings, n_wanted: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        index, curve, gains, allowed = self.index, self.curve, self._gains, self.allowed
        threshold = self.query.score_threshold
        if threshold is not None:
            return rank_above(
                index,
                vector,
                n_wanted,
                curve=curve,
                threshold=threshold,
                gains=gains,
                allowed=allowed,
            )
        if self.plan.mode == "exact" or not n_wanted:
            best = index.best(vector, n_wanted, gains, allowed=allowed)
        else:
            best = rank_approximately(
                index,
                vector,
                n_wanted,
                plan=self.plan,
                config=self.config,
                gains=gains,
                allowed=allowed,
            )
        return best.rows, curve.relevance(best.scores)

    @property
    def _gains(self) -> Gains:
        matches, weights = self.matches, self.config.words
        if matches is None or weights is None:
            return NO_GAINS
        if self.query.kind != "both":
            return Gains.of_words(matches, weights, self.curve)
        share = BESIDE_PICTURE * self.text_share
        if not share:
            return NO_GAINS
        # They gain in the cosine of the words, which counts by its share. And a title that is just
        # these words is no answer to the picture.
        not_whole = replace(matches, whole=np.zeros_like(matches.whole))
        curve = self.config.calibration.text
        return Gains.of_words(not_whole, weights, replace(curve, slope=curve.slope / share))


# Neighbours that a first page of the usual size needs, and a few more.
_FIRST = 24


def rank_approximately(
    index: VectorIndex,
    vector: Embeddings,
    n_wanted: int,
    *,
    plan: QueryPlan,
    config: Config,
    gains: Gains = NO_GAINS,
    allowed: Bitmap | None = None,
) -> Scored:
    """Rank photos by content.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        n_wanted: Photos, at most as many as are allowed.
        plan: Effort of the search, and how many photos are allowed.
        config: Gives `depth`, how many photos the index ranks at least.
        gains: Of photos that are allowed.
        allowed: Rows that may be found; all if left out.

    Returns:
        `n_wanted` rows and their cosines with gains, which never rise: photos that the search
        missed come after those that it found, with at most the score of the row before.
    """
    head = Scored(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
    for depth in _depths(index, config):
        best = index.nearly_best(vector, depth, gains, allowed=allowed, effort=plan.effort)
        head = _append_new(head, best)
        if len(head.rows) >= n_wanted:
            break
    else:
        head = _append_new(head, index.best(vector, n_wanted, gains, allowed=allowed))
    # A photo that the search missed may be nearer than those before it: scores must not rise.
    scores = np.minimum.accumulate(head.scores[:n_wanted])
    return Scored(head.rows[:n_wanted], scores)


def rank_above(
    index: VectorIndex,
    vector: Embeddings,
    n_wanted: int,
    *,
    curve: Curve,
    threshold: float,
    gains: Gains = NO_GAINS,
    allowed: Bitmap | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find the best photos whose score, rounded, reaches a threshold; exactly.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        n_wanted: Photos at most.
        curve: From cosines to scores.
        threshold: 0 to 1.
        gains: Of photos that are allowed.
        allowed: Rows that may be found; all if left out.

    Returns:
        Rows, best first, and their scores.
    """
    # Scores are rounded: take the cosine of a slightly lower score, less what float32 rounds.
    least = curve.cosine(threshold - 10.0**-DIGITS)
    if math.isfinite(least):
        least -= 1e-6 * max(1.0, abs(least))
    best = index.best(vector, n_wanted, gains, allowed=allowed, at_least=least)
    scores = curve.relevance(best.scores)
    reaches = scores >= threshold
    return best.rows[reaches], scores[reaches]


def _depths(index: VectorIndex, config: Config) -> tuple[int, ...]:
    deep = max(config.depth, index.deep_search(len(index)))
    in_two = index.costs_by_depth and deep > _FIRST
    return (_FIRST, deep) if in_two else (config.depth,)


def _append_new(head: Scored, more: Scored) -> Scored:
    if not len(head.rows):
        return more
    new = ~np.isin(more.rows, head.rows)
    rows = np.concatenate([head.rows, more.rows[new]])
    return Scored(rows, np.concatenate([head.scores, more.scores[new]]))
