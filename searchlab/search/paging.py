"""Paging: a page is a slice of a ranking, and a cursor says where the next one begins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from searchlab.models.protocol import Embeddings
from searchlab.search.cursors import Cursor
from searchlab.search.queries import Query, QueryPlan, Slice


@dataclass(frozen=True)
class Ranking:
    """The head of a ranking, or all of it.

    Attributes:
        rows: (m,) int64 positions, best first, from the place that was asked for.
        scores: (m,) float64 relevance scores, 0 to 1.
        total: Photos in the whole ranking.
        plan: How it was made.
        timings: Milliseconds by part: `filter`, `embed`, `search`.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    total: int
    plan: QueryPlan
    timings: dict[str, float]


class Rank(Protocol):
    """What ranks, as `SearchEngine.rank` does."""

    def __call__(
        self,
        query: Query,
        k: int | None = None,
        *,
        start: int = 0,
        reference: Embeddings | None = None,
    ) -> Ranking:
        """Rank the first k photos, and answer those from place `start` on."""
        ...


def cut_page(rank: Rank, here: Cursor, live: NDArray[np.bool_] | None, *, key: bytes) -> Slice:
    """Rank as far as a page needs, and cut the page out.

    Args:
        rank: Ranks the photos.
        here: Where the page begins.
        live: (n_photos,) photos that are still there, all if left out; the others are passed over,
            and take no place of a page.
        key: Secret that signs the cursor of the next page.
    """
    ranking, end, more = _ranked(rank, here, live)
    size = end - here.position
    rows, scores = ranking.rows[:size], ranking.scores[:size]
    if live is not None:
        rows, scores = rows[live[rows]], scores[live[rows]]
    return Slice(
        rows=rows,
        scores=scores,
        start=here.position + 1,
        per_page=here.per_page,
        next_cursor=replace(here, position=end).seal(key) if more else None,
        plan=ranking.plan,
        timings=ranking.timings,
    )


def _ranked(rank: Rank, here: Cursor, live: NDArray[np.bool_] | None) -> tuple[Ranking, int, bool]:
    # Where the page ends in the ranking, and whether anything comes behind it.
    start = here.position
    end = start + here.per_page
    if live is None:
        ranking = rank(here.query, end, start=start, reference=here.vector)
        return ranking, end, ranking.total > end
    reach = here.per_page + 1
    while True:
        ranking = rank(here.query, start + reach, start=start, reference=here.vector)
        left = start + np.flatnonzero(live[ranking.rows])
        if len(left) > here.per_page:
            return ranking, int(left[here.per_page]), True
        if start + reach >= ranking.total:
            return ranking, ranking.total, False
        reach *= 4  # many that are gone in a row: look further
