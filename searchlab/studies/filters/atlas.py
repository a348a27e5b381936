"""Filter atlas: search with filters of every strictness, and of every relation to the query.

A filter's share of photos says little about how hard it is. If the photos that it keeps lie near
the query, a graph finds them as easily as without a filter; if they lie elsewhere, it walks through
photos that it may not return. The atlas covers both, with one, two and three conditions, on photos
whose attributes are made so that each cell keeps exactly the share of photos in its name:

day          rises with the nearness to one of three photos (`trend`), or is random (`chance`)
source       one of 20, random
license      one of 10, random

The day carries the relation to the query; sources and licences are independent of everything.

Queries resemble photos or captions. For made vectors both are derived from a photo; for real ones
they are held-out photos and captions, and their relation is that of their true neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError
from searchlab.evaluation.metrics import latency, recall_at_k
from searchlab.models.protocol import Embeddings
from searchlab.photos.photo import iso_day
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import Neighbors
from searchlab.studies.index.recall import scored, true_neighbors
from searchlab.studies.vectors.made import near, text_like

Relation: TypeAlias = Literal["uncorrelated", "aligned", "opposed"]
Kind: TypeAlias = Literal["image", "text"]

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 0.0005, 0.0001)
RELATIONS: tuple[Relation, ...] = ("uncorrelated", "aligned", "opposed")
CONJUNCTIONS = (1, 2, 3)
SOURCES = [f"source-{number:02}" for number in range(20)]
LICENSES = [f"license-{number}" for number in range(10)]
_POLES = 3


@dataclass(frozen=True)
class Cell:
    """One cell of the atlas: a kind of filter and a kind of query.

    Attributes:
        share: Share of photos that the filter keeps, 0 to 1; 1 is no filter.
        relation: Whether the photos that it keeps lie near the query (`aligned`), far from it
            (`opposed`), or independently of it.
        n_conditions: Number of conditions that must all hold, 0 to 3.
        kind: Whether the queries resemble photos (`image`) or captions (`text`).
    """

    share: float
    relation: Relation
    n_conditions: int
    kind: Kind = "image"

    @property
    def name(self) -> str:
        """Short name, such as `aligned 0.50% of 2` or `aligned 0.50% of 2, text`."""
        name = f"{self.relation} {self.share:.2%} of {self.n_conditions}"
        return name if self.kind == "image" else f"{name}, {self.kind}"


def cells(shares: Sequence[float] = SHARES, *, kinds: Sequence[Kind] = ("image",)) -> list[Cell]:
    """List the cells of the atlas; without a filter there is one for each relation and kind.

    Text queries have one condition only, since the number of conditions is varied for images.
    """
    return [
        Cell(share, relation, n, kind)
        for kind in kinds
        for relation in RELATIONS
        for share in shares
        for n in (CONJUNCTIONS[: None if kind == "image" else 1] if share < 1 else (0,))
    ]


@dataclass(frozen=True)
class PlainFilter:
    """A filter as plain numbers, for systems that do not know `PhotoFilter`.

    Attributes:
        day: The column that `first_day` applies to: `chance` or `trend`.
        first_day: First day that passes.
        sources: Numbers of the sources that pass; all if empty.
        licenses: Numbers of the licences that pass; all if empty.
    """

    day: Literal["chance", "trend"]
    first_day: int
    sources: tuple[int, ...] = ()
    licenses: tuple[int, ...] = ()

    def filter(self) -> PhotoFilter:
        """Return the same filter as a `PhotoFilter`."""
        return PhotoFilter(
            after_date=iso_day(self.first_day),
            source=tuple(SOURCES[number] for number in self.sources),
            license_type=tuple(LICENSES[number] for number in self.licenses),
        )

    def sql(self) -> str:
        """Return the same filter as terms of SQL, for a table of these columns of numbers."""
        terms = [f"{self.day} >= {self.first_day}"]
        for name, codes in (("source", self.sources), ("license", self.licenses)):
            if codes:
                terms.append(f"{name} IN ({', '.join(map(str, codes))})")
        return " AND ".join(terms)

    def mask(self, columns: Mapping[str, NDArray[np.int64]]) -> NDArray[np.bool_]:
        """Return (n_photos,) whether each photo passes, computed without `PhotoFilter`: the oracle.

        Args:
            columns: `chance`, `trend`, `source` and `license`, each (n_photos,).
        """
        mask = columns[self.day] >= self.first_day
        for name, some in (("source", self.sources), ("license", self.licenses)):
            if some:
                mask &= np.isin(columns[name], some)
        return np.asarray(mask)


class Atlas:
    """Vectors with attributes made for them, and queries of each relation.

    Attributes:
        vectors: (n_photos, dim) unit rows.
        columns: `chance`, `trend`, `source` and `license`, each (n_photos,) int64.
        queries: Relation -> (n_queries, dim) unit rows that resemble photos.
        texts: Relation -> (n_queries, dim) unit rows that resemble captions.
    """

    def __init__(
        self,
        vectors: Embeddings,
        *,
        n_queries: int = 100,
        seed: int = 0,
        real: Mapping[str, Embeddings] | None = None,
    ) -> None:
        """Make attributes and queries.

        Args:
            vectors: (n_photos, dim) unit rows.
            n_queries: Most queries of each relation.
            seed: Seed of all random choices.
            real: Kind, `image` and `text` -> (n, dim) queries to choose from; queries are made
                from the vectors if left out.
        """
        n = len(vectors)
        rng = np.random.default_rng(seed)
        poles = vectors[rng.choice(n, _POLES, replace=False)]
        nearness = (vectors @ poles.T).max(axis=1)
        by_nearness = np.argsort(nearness, kind="stable")
        trend = np.empty(n, dtype=np.int64)
        trend[by_nearness] = np.arange(n)
        self.vectors = vectors
        self.columns = {
            "chance": rng.permutation(n),
            "trend": trend,
            "source": rng.integers(0, len(SOURCES), n),
            "license": rng.integers(0, len(LICENSES), n),
        }
        places = {
            "uncorrelated": rng.integers(0, n, n_queries),
            "aligned": by_nearness[rng.integers(n - max(n // 200, 1), n, n_queries)],
            "opposed": by_nearness[rng.integers(0, max(n // 10, 1), n_queries)],
        }
        self.queries = {
            name: near(vectors[rows], seed=seed + number)
            for number, (name, rows) in enumerate(places.items(), start=1)
        }
        self.texts = {name: text_like(rows, seed=seed + 10) for name, rows in self.queries.items()}
        if real is not None:
            self.queries, self.texts = (
                self._by_relation(real[kind], n_queries, rng) for kind in ("image", "text")
            )

    def _by_relation(
        self, pool: Embeddings, n_queries: int, rng: np.random.Generator
    ) -> dict[str, Embeddings]:
        nearest = true_neighbors(self.vectors, pool, 10, masks={"": None})[""].rows
        by_trend = np.argsort(self.columns["trend"][nearest].mean(axis=1), kind="stable")
        few = max(len(pool) // 10, 1)
        places = {
            "uncorrelated": np.arange(len(pool)),
            "aligned": by_trend[-max(few // 2, 1) :],
            "opposed": by_trend[:few],
        }
        return {name: pool[rng.permutation(rows)[:n_queries]] for name, rows in places.items()}

    def queries_of(self, cell: Cell) -> Embeddings:
        """Return the queries of a cell, (n_queries, dim)."""
        return (self.queries if cell.kind == "image" else self.texts)[cell.relation]

    def condition(self, cell: Cell) -> PlainFilter | None:
        """Make the filter of a cell; None for no filter.

        Each condition keeps about the same share; the day is chosen last, so that exactly the
        cell's share of the photos (rounded, at least one) meets all of them.

        Raises:
            InputError: Too few photos meet the other conditions.
        """
        if not cell.n_conditions:
            return None
        each = cell.share ** (1 / cell.n_conditions)
        n_sources = max(1, min(len(SOURCES), round(each * len(SOURCES))))
        n_licenses = max(1, min(len(LICENSES), round(each * len(LICENSES))))
        sources = tuple(range(n_sources)) if cell.n_conditions > 1 else ()
        licenses = tuple(range(n_licenses)) if cell.n_conditions > 2 else ()
        day: Literal["chance", "trend"] = "chance" if cell.relation == "uncorrelated" else "trend"
        others = PlainFilter(day, 0, sources, licenses).mask(self.columns)
        n_allowed = max(1, round(cell.share * len(self.vectors)))
        days = np.sort(self.columns[day][others])
        if n_allowed > len(days):
            msg = f"{cell.name} must keep {n_allowed} photos, got {len(days)} to choose from"
            raise InputError(msg)
        return PlainFilter(day, int(days[-n_allowed]), sources, licenses)

    def truth(self, cell: Cell, k: int, n_queries: int) -> tuple[Neighbors, int]:
        """Find the nearest photos that a cell's filter allows, without any index: the oracle.

        Returns:
            (n_queries, k) best rows and cosines, padded, and the number of photos allowed.
        """
        condition = self.condition(cell)
        mask = None if condition is None else condition.mask(self.columns)
        queries = self.queries_of(cell)[:n_queries]
        if mask is None:
            return true_neighbors(self.vectors, queries, k, masks={"": None})[""], len(self.vectors)
        rows = np.flatnonzero(mask)
        neighbors = true_neighbors(self.vectors[rows], queries, k, masks={"": None})[""]
        neighbors.rows[neighbors.rows >= 0] = rows[neighbors.rows[neighbors.rows >= 0]]
        return neighbors, len(rows)


def measure_cell(
    answer: Callable[[Embeddings, int, PlainFilter | None], ArrayLike],
    atlas: Atlas,
    cell: Cell,
    *,
    k: int = 10,
    budget_s: float = 0.6,
    least: int = 3,
) -> dict[str, Any]:
    """Ask a system the queries of one cell, and compare its answers with exact search.

    Args:
        answer: Answers a (dim,) query with at most k rows that pass the filter, best first.
        atlas: Vectors, attributes and queries.
        cell: Cell of the atlas.
        k: Number of neighbours.
        budget_s: Seconds after which no further query is asked.
        least: Least number of queries, whatever the budget.

    Returns:
        `share`, `relation`, `n_conditions`, `queries` (the cell's kind), `n_allowed`, `n_queries`;
        `recall` against exact search; `short` and `wrong`, the shares of answers with fewer photos
        than min(k, n_allowed) and with one that the filter excludes; `p50_ms`, `p95_ms`, `p99_ms`.
    """
    condition = atlas.condition(cell)
    queries = atlas.queries_of(cell)
    answer(queries[-1], k, condition)  # untimed, to warm up
    answered: list[NDArray[np.int64]] = []
    seconds: list[float] = []
    for query in queries:
        if len(seconds) >= least and sum(seconds) > budget_s:
            break
        started = time.perf_counter()
        rows = answer(query, k, condition)
        seconds.append(time.perf_counter() - started)
        answered.append(np.asarray(rows, dtype=np.int64).ravel())
    true, n_allowed = atlas.truth(cell, k, len(answered))
    allowed = None if condition is None else condition.mask(atlas.columns)
    permitted = [rows if allowed is None else rows[allowed[rows]] for rows in answered]
    n_expected = min(k, n_allowed)
    answers = scored(atlas.vectors, queries[: len(answered)], permitted, k)
    return {
        "share": cell.share,
        "relation": cell.relation,
        "n_conditions": cell.n_conditions,
        "queries": cell.kind,
        "n_allowed": n_allowed,
        "n_queries": len(answered),
        "recall": recall_at_k(answers, true),
        "short": float(np.mean([len(np.unique(rows)) < n_expected for rows in permitted])),
        "wrong": float(
            np.mean(
                [
                    len(allowed_rows) < len(rows)
                    for allowed_rows, rows in zip(permitted, answered, strict=True)
                ]
            )
        ),
        **latency(seconds),
    }
