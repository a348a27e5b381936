"""VectorIndex: what every index offers: building, saving, searching, and its search effort.

An index is one class like this one and one line in `searchlab.config.indexes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import count
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import merging
from searchlab.search.indexes.merging import Scored
from searchlab.search.indexes.scoring import cosines_of
from searchlab.search.words.matches import NO_GAINS, SCORED_ONE_BY_ONE, Gains

Allowed = Bitmap | NDArray[np.bool_]
"""Rows that may be found, as bits or as an (n_photos,) mask."""


_MANY = 0.02  # a good part of all rows


class Neighbors(NamedTuple):
    """Answers to a batch of queries, best first.

    Attributes:
        rows: (n_queries, k) int64 positions, padded with -1.
        scores: (n_queries, k) float32 cosines, padded with -inf.
        rows_read: (n_queries,) int64 rows whose vector or code was scored for each query. A graph
            counts only the rows that its walk returned, as hnswlib does not count those that it
            passed. None where rows were not counted.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    rows_read: NDArray[np.int64] | None = None


class Nearest(NamedTuple):
    """Answer to one query, best first.

    Attributes:
        rows: (n,) int64 positions.
        scores: (n,) float32 cosines.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


class VectorIndex(ABC):
    """Nearest rows by cosine.

    Searches ask for rows and their cosines alone, since `vectors` may lie on other machines.

    Attributes:
        vectors: (n_photos, dim) unit rows, in the order of the photo table; may be memory-mapped.
        approximate: Whether `search` may miss a neighbour. Such an index overrides `estimate`, and
            also `efforts` if `searchlab tune` is to measure it.
        mode: What query plans call a search of this index.
        idle_fields: Fields of a config that have no effect on this index.
        costs_by_depth: Whether a search for few rows costs less than one for many.
    """

    vectors: Embeddings
    approximate: bool = False
    mode: str = "exact"
    idle_fields: ClassVar[tuple[str, ...]] = ()
    costs_by_depth: bool = True

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Width of a row."""
        return int(self.vectors.shape[1])

    def read_rows(self, rows: NDArray[np.int64]) -> Embeddings:
        """Return the vectors of some rows, in their order; (n_rows, dim) float32."""
        return np.array(self.vectors[rows])

    def score_rows(self, query: Embeddings, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosines of some rows, in their order; (n_rows,), as `nearest` scores them."""
        return cosines_of(self.vectors, query, rows)

    @property
    def size_bytes(self) -> int:
        """Bytes that the index holds, its vectors included."""
        return int(self.vectors.nbytes)

    # -- from a config, on disk, and back -------------------------------------------------------

    @staticmethod
    def built_from(config: Config) -> tuple[str, ...]:
        """Name the fields of a config that change what is built, apart from model and index."""
        return ()

    @staticmethod
    def describe(config: Config) -> str:
        """Name the index, with the settings that tell it apart in a comparison."""
        return config.index

    @classmethod
    def check(cls) -> None:
        """Raise if this kind cannot be built here, before anything is embedded for it."""
        return

    @classmethod
    @abstractmethod
    def build(cls, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]) -> Self:
        """Build the index.

        Args:
            vectors: (n_photos, dim) unit rows.
            config: Gives the fields of `built_from`, and how the index is searched.
            labels: (n_photos,) int64 numbers that stay the same when photos come and go, all
                different.
        """

    def save(self, folder: Path) -> None:
        """Write what the index adds to its vectors into a folder; nothing if not overridden."""
        return

    @classmethod
    def open(
        cls, folder: Path, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
    ) -> Self:
        """Open what was saved, over the same vectors; built again if not overridden.

        Raises:
            DataError: Files are missing, damaged or of other vectors.
        """
        return cls.build(vectors, config, labels=labels)

    def update(self, vectors: Embeddings, labels: NDArray[np.int64], config: Config) -> Self:
        """Return the index of a changed library; built anew if not overridden.

        The new index may take over parts of this one, which must not be searched afterwards.

        Args:
            vectors: (n_photos, dim) unit rows of the changed library.
            labels: (n_photos,) int64; a label that was there before must carry the same vector.
            config: With the same `index_id`; how the index is searched may have changed.
        """
        return self.build(vectors, config, labels=labels)

    @property
    def wants_texts(self) -> bool:
        """Whether `learn` would make searches by text better or faster."""
        return False

    def learn(self, texts: Embeddings) -> None:
        """Fit how the index searches to queries as people ask them; nothing if not overridden.

        The answers stay those of the index, at the recall that it is asked for; their cost and how
        well that recall is met change. Not to be called while the index is searched.

        Args:
            texts: (n_queries, dim) unit rows, vectors of queries by text; a hundred are enough.
        """
        return

    # -- searching ------------------------------------------------------------------------------

    @abstractmethod
    def search(
        self,
        queries: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        recall: float | None = None,
        effort: float | None = None,
    ) -> Neighbors:
        """Find the k best rows of each query, ties by row.

        Args:
            queries: (n_queries, dim) float32.
            k: Rows wanted, at least 1.
            allowed: Rows that may be found, as a Bitmap or as an (n_photos,) bool mask; all if left
                out.
            recall: Share of the true neighbours that must be expected to be found, above 0 to 1;
                the index's own setting if left out. 1 is exact.
            effort: How thoroughly to search, in the index's own unit; its own setting if left out.

        Returns:
            (n_queries, k) rows and cosines. min(k, allowed rows) slots are always filled.

        Raises:
            InputError: Wrong shapes, k below 1, a recall or effort out of range, or a component
                that is not finite.
        """

    @abstractmethod
    def nearest(
        self,
        query: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        at_least: float = -np.inf,
    ) -> Nearest:
        """Find the k best rows that are near enough; exact with every index.

        Args:
            query: (dim,) float32.
            k: Rows wanted at most, 0 or more.
            allowed: As in `search`.
            at_least: Least cosine of a result.

        Returns:
            Rows and cosines, best first, ties by row: the same to the last bit from every index.

        Raises:
            InputError: Wrong shapes, k below 0, or a number that is not finite.
        """

    def best(
        self,
        query: Embeddings,
        k: int,
        gains: Gains = NO_GAINS,
        *,
        allowed: Bitmap | None = None,
        at_least: float = -np.inf,
    ) -> Scored:
        """Find the k best rows by cosine and gain; exact with every index.

        Args:
            query: (dim,) float32.
            k: Rows wanted at most, 0 or more.
            gains: What allowed rows gain over their cosine.
            allowed: Rows that may be found; all if left out.
            at_least: Least score of a result.

        Returns:
            Rows and scores, best first, ties by row; float32 where nothing is gained, else float64.
        """
        return merging.nearest(self, query, k, gains, allowed=allowed, at_least=at_least)

    def nearly_best(
        self,
        query: Embeddings,
        k: int,
        gains: Gains = NO_GAINS,
        *,
        allowed: Bitmap | None = None,
        effort: float | None = None,
    ) -> Scored:
        """Find the k best rows by cosine and gain, but for what a search may miss.

        Args:
            query: (dim,) float32.
            k: Rows wanted, at least 1.
            gains: What allowed rows gain over their cosine.
            allowed: Rows that may be found; all if left out.
            effort: As in `search`.

        Returns:
            min(k, allowed) rows and scores, as `best` gives them.
        """
        return merging.nearly_nearest(self, query, k, gains, allowed=allowed, effort=effort)

    def candidates(
        self,
        query: Embeddings,
        k: int,
        gains: Gains,
        *,
        allowed: Bitmap | None = None,
        effort: float | None = None,
    ) -> NDArray[np.int64]:
        """Find rows that hold the k best by cosine and gain, but for what a search may miss.

        If not overridden, these are the nearest, those of the few largest gains, and the nearest of
        the next ones until there are k; if a good part of all rows is among those, the nearest
        stand for them.

        Args:
            query: (dim,) float32.
            k: Rows wanted, at least 1.
            gains: What allowed rows gain over their cosine.
            allowed: Rows that may be found; all if left out.
            effort: As in `search`.

        Returns:
            (n,) int64 rows, each once, in any order; k or all that are allowed at least.
        """
        n = len(self)
        near = self.search(query[np.newaxis], k, allowed=allowed, effort=effort)
        candidates, n_seen = [near.rows[0]], 0
        for rows, _ in gains.groups():
            n_seen += len(rows)
            if len(rows) > _MANY * n and len(rows) > SCORED_ONE_BY_ONE:
                break
            if len(rows) > SCORED_ONE_BY_ONE:
                some = Bitmap.of_rows(rows, n)
                near = self.search(query[np.newaxis], k, allowed=some, effort=effort)
                rows = near.rows[0]
            candidates.append(rows)
            if n_seen >= k:
                break
        distinct = np.unique(np.concatenate(candidates))
        return distinct[distinct >= 0]

    # -- what a search costs and finds, for the planner and `searchlab tune` -----------------------

    def estimate(self, config: Config, n_allowed: int) -> tuple[bool, str]:
        """Guess whether a search costs less than scoring all allowed rows, where nobody measured.

        Args:
            config: How the index is searched.
            n_allowed: Rows that may be found.

        Returns:
            Whether it does, and the reason in words.
        """
        return False, f"scoring {count(n_allowed, 'photo')} costs least"

    @staticmethod
    def deep_search(n_photos: int) -> int:
        """Return how many photos a search still finds sooner than all are scored; 0 if unknown.

        So many are searched for at least where more than a first page is asked for, whatever the
        `depth` of the config. Indexes that cost the same at any depth have no use for it.

        Args:
            n_photos: Rows of the index.
        """
        return 0

    @staticmethod
    def efforts(config: Config, n_photos: int) -> tuple[float, ...]:
        """Return the efforts that are worth measuring, ascending; none if not overridden."""
        return ()

    @staticmethod
    def describe_effort(effort: float) -> str:
        """Describe an effort in words."""
        return f"effort {effort:g}"
