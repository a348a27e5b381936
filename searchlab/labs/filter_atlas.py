"""Filter atlas: search under filters of every strictness, related to the query in every way.

A filter's share of photos says little about how hard it is. Where the photos that it keeps lie near
the query, a graph finds them as without a filter; where they lie elsewhere, it walks through photos
that it may not return. The atlas lays both out, with one, two and three conditions, over photos
whose attributes are made so that each cell keeps exactly the share of photos it is named for:

day          rises with the nearness to one of three photos (`trend`), or is random (`chance`)
source       one of 20, random
license      one of 10, random

The day carries the relation to the query; sources and licences are independent of everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.columns import pack_texts
from searchlab.config import Config
from searchlab.engine import SearchEngine
from searchlab.errors import InputError
from searchlab.filters import PhotoFilter
from searchlab.indexes import Neighbors, VectorIndex
from searchlab.indexes.exact import empty_neighbors
from searchlab.labs.index_recall import scored
from searchlab.labs.vectors import GivenVectors, near
from searchlab.metrics import latency, recall_at_k
from searchlab.models.protocol import Embeddings
from searchlab.photos import iso_day
from searchlab.queries import Query
from searchlab.tables import CODED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, Codes, PhotoTable

Relation: TypeAlias = Literal["uncorrelated", "aligned", "opposed"]

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 0.0005, 0.0001)
RELATIONS: tuple[Relation, ...] = ("uncorrelated", "aligned", "opposed")
CONJUNCTIONS = (1, 2, 3)
_SOURCES = [f"source-{number:02}" for number in range(20)]
_LICENSES = [f"license-{number}" for number in range(10)]
_DAYS: tuple[Literal["chance"], Literal["trend"]] = ("chance", "trend")
_POLES = 3


@dataclass(frozen=True)
class Cell:
    """One place of the atlas.

    Attributes:
        share: Share of photos that the filter keeps, 0 to 1; 1 is no filter.
        relation: Where the photos that it keeps lie, seen from the query.
        n_conditions: Conditions that must hold together, 0 to 3.
    """

    share: float
    relation: Relation
    n_conditions: int

    @property
    def name(self) -> str:
        """Short name, such as `aligned 0.5% of 2`."""
        return f"{self.relation} {self.share:.2%} of {self.n_conditions}"


def cells(shares: Sequence[float] = SHARES) -> list[Cell]:
    """List the places of the atlas; without a filter there is one for each relation."""
    return [
        Cell(share, relation, n)
        for relation in RELATIONS
        for share in shares
        for n in (CONJUNCTIONS if share < 1 else (0,))
    ]


@dataclass(frozen=True)
class Condition:
    """A filter as plain numbers, for systems that know nothing of photos.

    Attributes:
        day: The column that `first_day` is about: `chance` or `trend`.
        first_day: That day and later.
        sources: Numbers of the sources, any of them; all if empty.
        licenses: Numbers of the licences, any of them; all if empty.
    """

    day: Literal["chance", "trend"]
    first_day: int
    sources: tuple[int, ...] = ()
    licenses: tuple[int, ...] = ()

    def filter(self) -> PhotoFilter:
        """Return the same as a filter of photos."""
        return PhotoFilter(
            after_date=iso_day(self.first_day),
            source=tuple(_SOURCES[number] for number in self.sources),
            license_type=tuple(_LICENSES[number] for number in self.licenses),
        )

    def mask(self, columns: Mapping[str, NDArray[np.int64]]) -> NDArray[np.bool_]:
        """Say for each photo whether it meets the condition, without a PhotoFilter: the oracle.

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
        queries: Relation -> (n_queries, dim) unit rows, each near some photo.
    """

    def __init__(self, vectors: Embeddings, *, n_queries: int = 100, seed: int = 0) -> None:
        """Make attributes and queries.

        Args:
            vectors: (n_photos, dim) unit rows.
            n_queries: Of each relation.
            seed: Of everything that is drawn.
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
            "source": rng.integers(0, len(_SOURCES), n),
            "license": rng.integers(0, len(_LICENSES), n),
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

    def condition(self, cell: Cell) -> Condition | None:
        """Make the filter of a cell; None for no filter.

        Each condition keeps about the same share; the day is chosen last, so that exactly the
        cell's share of the photos (rounded, at least one) meets all of them.
        """
        if not cell.n_conditions:
            return None
        each = cell.share ** (1 / cell.n_conditions)
        n_sources = max(1, min(len(_SOURCES), round(each * len(_SOURCES))))
        n_licenses = max(1, min(len(_LICENSES), round(each * len(_LICENSES))))
        sources = tuple(range(n_sources)) if cell.n_conditions > 1 else ()
        licenses = tuple(range(n_licenses)) if cell.n_conditions > 2 else ()
        day: Literal["chance", "trend"] = "chance" if cell.relation == "uncorrelated" else "trend"
        others = Condition(day, 0, sources, licenses).mask(self.columns)
        wanted = max(1, round(cell.share * len(self.vectors)))
        days = np.sort(self.columns[day][others])
        if wanted > len(days):
            msg = f"{cell.name} must keep {wanted} photos, got {len(days)} to choose from"
            raise InputError(msg)
        return Condition(day, int(days[-wanted]), sources, licenses)

    def truth(self, cell: Cell, k: int, n_queries: int) -> tuple[Neighbors, int]:
        """Score every photo that a cell allows, without any index; the oracle.

        Returns:
            (n_queries, k) best rows and cosines, padded, and the number of photos allowed.
        """
        condition = self.condition(cell)
        everything = np.arange(len(self.vectors))
        rows = everything if condition is None else np.flatnonzero(condition.mask(self.columns))
        queries = self.queries[cell.relation][:n_queries]
        answers = empty_neighbors(len(queries), k)
        some = self.vectors if condition is None else self.vectors[rows]
        for place, query in enumerate(queries):
            scores = some @ query
            best = np.arange(len(rows))
            if k < len(rows):
                best = np.argpartition(-scores, k)[:k]
            best = best[np.argsort(-scores[best], kind="stable")]
            answers.rows[place, : len(best)] = rows[best]
            answers.scores[place, : len(best)] = scores[best]
        return answers, len(rows)


def photo_table(
    columns: Mapping[str, NDArray[np.int64]], day: Literal["chance", "trend"]
) -> PhotoTable:
    """Make photos that have an atlas's attributes and are otherwise alike.

    Args:
        columns: As an `Atlas` has them.
        day: Which of them is the day of upload.
    """
    n = len(columns[day])
    numbers = {name: np.zeros(n, dtype=dtype) for name, dtype in NUMBER_COLUMNS.items()}
    numbers["uploaded_day"] = columns[day].astype(np.int32)
    numbers["label"] = np.arange(n)
    one = Codes(np.zeros(n, dtype=np.int32), [""])
    codes = dict.fromkeys(CODED_COLUMNS, one)
    codes["orientation"] = Codes(one.rows, ["landscape"])
    codes["source"] = Codes(columns["source"].astype(np.int32), _SOURCES)
    codes["license_type"] = Codes(columns["license"].astype(np.int32), _LICENSES)
    texts = dict.fromkeys(TEXT_COLUMNS, pack_texts([""] * n))
    texts["photo_id"] = pack_texts(f"photo-{row:09}" for row in range(n))
    return PhotoTable(numbers, codes, texts)


class Served:
    """The engine as a system of the atlas: it filters, plans and ranks just as it serves.

    Attributes:
        engines: One for each column of days, over the same index; a photo has one upload date, so
            each column is a collection of its own.
        plan: How the last query was answered: `exact` or `graph`.
    """

    def __init__(
        self, columns: Mapping[str, NDArray[np.int64]], index: VectorIndex, config: Config
    ) -> None:
        """Put engines over an index.

        Args:
            columns: As an `Atlas` has them.
            index: Over its vectors.
            config: What the planner goes by; its model is not asked.
        """
        model = GivenVectors({}, index.vectors.shape[1])
        config = config.with_model_id(model.model_id)
        self.plan = ""
        self.engines = {
            day: SearchEngine(photo_table(columns, day), index, model, config) for day in _DAYS
        }

    def __call__(self, query: Embeddings, k: int, condition: Condition | None) -> NDArray[np.int64]:
        """Rank as the server ranks, for a picture whose vector is known already."""
        engine = self.engines["chance" if condition is None else condition.day]
        asked = PhotoFilter() if condition is None else condition.filter()
        # A picture that is never opened, as its vector is given.
        ranking = engine.rank(Query(image=b"", filter=asked), k, reference=query)
        self.plan = ranking.plan.mode
        return ranking.rows


def measure_cell(
    answer: Callable[[Embeddings, int, Condition | None], ArrayLike],
    atlas: Atlas,
    cell: Cell,
    *,
    k: int = 10,
    budget_s: float = 0.6,
    least: int = 3,
) -> dict[str, Any]:
    """Ask a system the queries of one cell, and hold its answers against exact search.

    Args:
        answer: Answers a query, (dim,), with at most k rows that meet the condition, best first.
        atlas: Vectors, attributes and queries.
        cell: Where in the atlas.
        k: Neighbours wanted.
        budget_s: No further query is asked when this much time has passed,
        least: but at least so many are.

    Returns:
        `share`, `relation`, `n_conditions`, `n_allowed`, `n_queries`; `recall` against exact
        search; `short` and `wrong`, the shares of answers with fewer photos than min(k, allowed)
        and with one that the filter forbids; `p50_ms`, `p95_ms`, `p99_ms`.
    """
    condition = atlas.condition(cell)
    queries = atlas.queries[cell.relation]
    answer(queries[-1], k, condition)
    found: list[NDArray[np.int64]] = []
    seconds: list[float] = []
    for query in queries:
        if len(seconds) >= least and sum(seconds) > budget_s:
            break
        started = time.perf_counter()
        rows = answer(query, k, condition)
        seconds.append(time.perf_counter() - started)
        found.append(np.asarray(rows, dtype=np.int64).ravel())
    true, n_allowed = atlas.truth(cell, k, len(found))
    allowed = None if condition is None else condition.mask(atlas.columns)
    permitted = [rows if allowed is None else rows[allowed[rows]] for rows in found]
    wanted = min(k, n_allowed)
    answers = scored(atlas.vectors, queries[: len(found)], permitted, k)
    return {
        "share": cell.share,
        "relation": cell.relation,
        "n_conditions": cell.n_conditions,
        "n_allowed": n_allowed,
        "n_queries": len(found),
        "recall": recall_at_k(answers, true),
        "short": float(np.mean([len(np.unique(rows)) < wanted for rows in permitted])),
        "wrong": float(
            np.mean([len(kept) < len(rows) for kept, rows in zip(permitted, found, strict=True)])
        ),
        **latency(seconds),
    }
