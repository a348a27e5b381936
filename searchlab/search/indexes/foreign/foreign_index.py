"""ForeignIndex: an engine elsewhere proposes rows; what is promised is promised here.

Such an engine gives few rows or none where a filter is strict, breaks ties as it likes, and rounds
its distances in its own way. So it is asked without the filter for more rows than are wanted, rows
that may not be found are dropped, the rest is scored again from our own rows, and an answer with
too few rows is found here by scoring every allowed one.
"""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.indexes import index_kind
from searchlab.errors import DataError, InputError, SearchlabError, count
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.exact import check_nearest, check_search, empty_neighbors, nearest
from searchlab.search.indexes.foreign.tables import (
    REMEDY,
    Engine,
    Table,
    fingerprint_of,
    probes_of,
    read_name,
    save_name,
)
from searchlab.search.indexes.hnsw import walk_length
from searchlab.search.indexes.protocol import Allowed, Nearest, Neighbors, VectorIndex
from searchlab.search.indexes.scoring import best_first, cosines_of

# A call costs what scoring some thousand rows does, whatever it finds.
_CALL_ROWS = 5_000
_EFS = (50, 100, 200, 400, 800)


class ForeignIndex(VectorIndex):
    """Nearest rows as an engine elsewhere proposes them.

    Attributes:
        promises_not: What the engine alone does not promise, in words; plans say it.
        most_dim: Numbers of a row that its graph takes at most.
    """

    approximate = True
    idle_fields = ("n_lists", "seed", "build_threads")
    costs_by_depth = True
    promises_not: ClassVar[str]
    most_dim: ClassVar[int]
    most_links: ClassVar[int]

    def __init__(self, vectors: Embeddings, engine: Engine, table: Table, ef_search: int) -> None:
        """Take rows and the table that holds a copy of them."""
        self.vectors = vectors
        self.engine = engine
        self.table = table
        self.ef_search = ef_search
        self._forget: Callable[[], Any] | None = None

    @staticmethod
    @abstractmethod
    def connect(address: str) -> Engine:
        """Return the engine at an address.

        Raises:
            MissingExtraError: Its client is not installed.
            UnavailableError: It does not answer.
        """

    @staticmethod
    def built_from(config: Config) -> tuple[str, ...]:
        """Name what changes the graph; see `VectorIndex.built_from`."""
        return ("M", "ef_construction")

    @staticmethod
    def describe(config: Config) -> str:
        """Name the engine without its address, with its settings."""
        return f"{index_kind(config.index)} M={config.M} ef={config.ef_search}"

    @classmethod
    def build(cls, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]) -> Self:
        """Write the rows into a new table; see `VectorIndex.build`.

        A table that is not saved into a snapshot goes with the index.

        Raises:
            InputError: Rows or links are more than the engine's graph takes.
            MissingExtraError: Its client is not installed.
            UnavailableError: It does not answer.
        """
        kind = index_kind(config.index)
        for what, most, got in (
            ("rows must have", cls.most_dim, vectors.shape[1]),
            ("M must be", cls.most_links, config.M),
        ):
            if got > most:
                msg = f"{what} at most {most:,} with {kind}, got {got:,}; take `clustered`"
                raise InputError(msg)
        engine, table = cls._engine_of(config), Table.of(vectors)
        # pgvector refuses a graph that keeps fewer than twice its links in view.
        wide = max(config.ef_construction, 2 * config.M)
        engine.write(table, vectors, M=config.M, ef_construction=wide)
        index = cls(vectors, engine, table, config.ef_search)
        index._forget = weakref.finalize(index, _drop_quietly, engine, table.name)
        return index

    def save(self, folder: Path) -> None:
        """Note the table, which stays from now on; see `tables.save_name`."""
        save_name(self.engine, self.table, folder)
        if isinstance(self._forget, weakref.finalize):
            self._forget.detach()

    @classmethod
    def open(
        cls, folder: Path, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
    ) -> Self:
        """Open a saved index over the rows that it was built from; see `VectorIndex.open`.

        Raises:
            DataError: The table is gone, or holds other rows.
            UnavailableError: The engine does not answer.
        """
        kind = index_kind(config.index)
        table = read_name(folder, kind)
        engine = cls._engine_of(config)
        probes = probes_of(len(vectors))
        same = (table.n_rows, table.fingerprint) == (len(vectors), fingerprint_of(vectors))
        held = engine.check(table, probes)
        if not same or (
            len(probes) and held[:, : vectors.shape[1]].tobytes() != vectors[probes].tobytes()
        ):
            msg = f"{table.name} of {kind} must hold this snapshot's rows, got others; {REMEDY}"
            raise DataError(msg)
        return cls(vectors, engine, table, config.ef_search)

    @classmethod
    def _engine_of(cls, config: Config) -> Engine:
        return cls.connect(config.index.partition(":")[2])

    # -- searching ------------------------------------------------------------------------------

    def search(
        self,
        queries: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        recall: float | None = None,
        effort: float | None = None,
    ) -> Neighbors:
        """Find the k best rows of each query; see `VectorIndex.search`.

        The engine cannot aim at a recall: the planner looks up the effort that was measured to
        reach it.

        Args:
            queries: (n_queries, dim) float32.
            k: Rows wanted, at least 1.
            allowed: Rows that may be found, as bits or as a mask; all if left out.
            recall: 1 scores every allowed row here; below 1 it changes nothing.
            effort: `ef_search`, nodes that the engine keeps in view, at least 1; that of the index
                if left out.

        Raises:
            InputError: As there.
            UnavailableError: The engine does not answer.
            DataError: The table is gone.
        """
        bits = check_search(self, queries, k, allowed, recall)
        ef_search = self.ef_search if effort is None else int(effort)
        if ef_search < 1:
            msg = f"effort must be an ef_search of at least 1, got {effort}"
            raise InputError(msg)
        n_allowed = len(self.vectors) if bits is None else bits.count
        n_wanted = min(k, n_allowed)
        answers = empty_neighbors(len(queries), k)
        if not n_wanted:
            return answers
        fetch = max(ef_search, walk_length(n_wanted, n_allowed / len(self.vectors)))
        asks = recall != 1 and fetch < len(self.vectors) and fetch <= self.engine.most_rows
        rows_read = np.full(len(queries), fetch if asks else n_allowed)
        for number, query in enumerate(queries):
            best = self._ask(query, n_wanted, bits, fetch, ef_search) if asks else None
            if best is None:
                best = nearest(self.vectors, query, n_wanted, allowed=bits)
                rows_read[number] = n_allowed
            answers.rows[number, : len(best.rows)] = best.rows
            answers.scores[number, : len(best.rows)] = best.scores
        return answers._replace(rows_read=rows_read)

    def _ask(
        self, query: Embeddings, n_wanted: int, allowed: Bitmap | None, fetch: int, ef_search: int
    ) -> Nearest | None:
        """Return the best of the rows that the engine proposes; None where they are too few."""
        rows = np.unique(self.engine.search(self.table, query, fetch, max(ef_search, fetch)))
        if len(rows) and not 0 <= rows[0] <= rows[-1] < len(self.vectors):
            msg = f"the table {self.table.name} must hold these rows, got others; {REMEDY}"
            raise DataError(msg)
        if allowed is not None:
            rows = rows[allowed.holds(rows)]
        if len(rows) < n_wanted:
            return None
        scores = cosines_of(self.vectors, query, rows)
        best = best_first(scores)[:n_wanted]
        return Nearest(rows[best], scores[best])

    def nearest(
        self,
        query: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        at_least: float = -np.inf,
    ) -> Nearest:
        """Find the k best rows that are near enough, exactly; see `VectorIndex.nearest`."""
        bits, least = check_nearest(self, query, k, allowed, at_least)
        return nearest(self.vectors, query, k, allowed=bits, least=least)

    # -- what a search costs --------------------------------------------------------------------

    def estimate(self, config: Config, n_allowed: int) -> tuple[bool, str]:
        """Compare a call with the photos to score; see `VectorIndex.estimate`."""
        fetch = max(self.ef_search, walk_length(config.depth, n_allowed / max(len(self), 1)))
        costs = _CALL_ROWS + fetch * config.step_rows
        photos = count(n_allowed, "photo")
        if n_allowed <= costs or fetch > self.engine.most_rows:
            return (
                False,
                f"scoring {photos} here costs less than asking {self.mode}",
            )
        return True, (
            f"asking {self.mode} for {count(fetch, 'row')} costs less than scoring {photos}; "
            f"it promises {self.promises_not}, so its rows are filtered and scored here, and an "
            "answer with too few is found by scoring every allowed photo"
        )

    @staticmethod
    def efforts(config: Config, n_photos: int) -> tuple[float, ...]:
        """Return values of `ef_search`; see `VectorIndex.efforts`."""
        least = min(config.depth, n_photos)
        return tuple(float(ef) for ef in sorted({least, *_EFS}) if least <= ef <= n_photos)

    @staticmethod
    def describe_effort(effort: float) -> str:
        """Say how many nodes are kept in view; see `VectorIndex.describe_effort`."""
        return f"ef {effort:g} of an engine that promises no recall and no full page"


def _drop_quietly(engine: Engine, name: str) -> None:
    try:
        engine.drop(name)
    except SearchlabError:
        return  # whoever saves a snapshot there in a week drops it
