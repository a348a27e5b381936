"""ScoredQueries: the cosine of every photo for every judged query, beside its judgment."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import QueryKind
from searchlab.errors import InputError
from searchlab.models.protocol import Embedder, Embeddings, is_reader
from searchlab.search.query_reading import traits_of

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset, LabelledQuery
    from searchlab.search.engine import SearchEngine

TOP = 10
"""Number of nearest photos to fit on: the first page, whose scores users read."""

UNJUDGED = -1
_KINDS: Mapping[str, QueryKind] = {"text": "text", "photo": "image", "photo+text": "both"}


class ScoredPairs(NamedTuple):
    """Pairs of a query and a photo.

    Attributes:
        cosines: (n,) cosine of each pair.
        grades: (n,) grade of each pair; `UNJUDGED` if it was not judged.
        query: (n,) row of the pair's query.
    """

    cosines: NDArray[np.float64]
    grades: NDArray[np.int64]
    query: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoredQueries:
    """Queries of one kind with the cosines and grades of all photos.

    Attributes:
        kind: Kind of the queries: text, image or both.
        langs: (n_queries,) languages.
        cluster_ids: (n_queries,) the photo that each query is about; queries about the same photo
            are resampled together.
        cosines: (n_queries, n_photos) float32; -inf where a photo cannot be an answer.
        grades: (n_queries, n_photos) int16; `UNJUDGED` where a pair was not judged.
        traits: (n_queries, 3) float64, `QueryTraits` of text queries; None where the model does not
            tell them.
        texts: (n_queries,) their words, empty where there are none.
    """

    kind: QueryKind
    langs: tuple[str, ...]
    cluster_ids: tuple[str, ...]
    cosines: NDArray[np.float32]
    grades: NDArray[np.int16]
    traits: NDArray[np.float64] | None = None
    texts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.langs)

    def take(self, queries: Sequence[int] | NDArray[np.int64]) -> ScoredQueries:
        """Keep some queries, by their rows."""
        rows = np.asarray(queries, dtype=np.int64)
        return replace(
            self,
            langs=tuple(self.langs[row] for row in rows),
            cluster_ids=tuple(self.cluster_ids[row] for row in rows),
            cosines=self.cosines[rows],
            grades=self.grades[rows],
            traits=None if self.traits is None else self.traits[rows],
            texts=tuple(self.texts[row] for row in rows) if self.texts else (),
        )

    def judged(self) -> ScoredQueries:
        """Remove unjudged photos from the answers of each query, which makes condensed lists.

        References:
            Sakai, Alternatives to bpref, SIGIR 2007.
        """
        return replace(self, cosines=np.where(self.grades >= 0, self.cosines, np.float32(-np.inf)))

    def without_answers(self, *, grade: int = 1) -> ScoredQueries:
        """Remove the relevant photos of each query from its answers, so that it has no answer."""
        return replace(
            self, cosines=np.where(self.grades >= grade, np.float32(-np.inf), self.cosines)
        )

    def top(self, k: int = TOP) -> ScoredPairs:
        """Return each query's k nearest photos, best first; fewer if fewer can be answers."""
        k = min(k, self.cosines.shape[1])
        # Stable, so that ties are in the order of the table. Photos with the same texts tie but for
        # last bits, which each processor rounds in its own way.
        near = np.argsort(-np.round(self.cosines, 6), axis=1, kind="stable")[:, :k]
        return self._pairs(np.repeat(np.arange(len(self)), k), near.ravel())

    def pairs(self) -> ScoredPairs:
        """Return every query with every photo that can be its answer."""
        n_queries, n_photos = self.cosines.shape
        columns = np.tile(np.arange(n_photos), n_queries)
        return self._pairs(np.repeat(np.arange(n_queries), n_photos), columns)

    def best(self) -> NDArray[np.float64]:
        """Return the (n_queries,) cosine of each query's nearest photo."""
        return np.asarray(self.cosines.max(axis=1), dtype=np.float64)

    def _pairs(self, query: NDArray[np.int64], photo: NDArray[np.int64]) -> ScoredPairs:
        cosines = self.cosines[query, photo].astype(np.float64)
        is_answer = np.isfinite(cosines)
        grades = self.grades[query, photo].astype(np.int64)
        return ScoredPairs(cosines[is_answer], grades[is_answer], query[is_answer])


def score_queries(engine: SearchEngine, dataset: Dataset) -> ScoredQueries:
    """Score every photo for every query, as `SearchEngine.rank` does under an exact index.

    Args:
        engine: Its calibration is not used.
        dataset: Queries of one task. Photos that the engine does not hold are left out, and so are
            queries none of whose relevant photos it holds.

    Raises:
        InputError: The queries are of several tasks, or none is left.
    """
    if dataset.task not in _KINDS:
        msg = f"queries must be of one task, got {dataset.task!r}; select some of {dataset.name!r}"
        raise InputError(msg)
    ids = engine.table.photo_ids(range(len(engine.table)))
    row_of = {photo_id: row for row, photo_id in enumerate(ids)}
    queries = [query for query in dataset.queries if _has_answer(query, dataset, row_of)]
    if not queries:
        msg = f"the engine must hold photos that queries of {dataset.name!r} look for, got none"
        raise InputError(msg)
    engine.warm([query.text for query in queries if query.text is not None])
    vectors = np.empty((len(queries), engine.model.dim), dtype=np.float32)
    allowed = np.empty((len(queries), len(ids)), dtype=np.bool_)
    grades = np.full((len(queries), len(ids)), UNJUDGED, dtype=np.int16)
    for place, labelled in enumerate(queries):
        query = labelled.query()
        vectors[place] = engine.query_vector(query)
        passing = engine.allowed(query)
        allowed[place] = True if passing is None else passing.mask()
        for photo_id, grade in dataset.qrels[labelled.query_id].items():
            if photo_id in row_of:
                grades[place, row_of[photo_id]] = grade
    cosines = vectors @ np.asarray(engine.index.vectors).T
    return ScoredQueries(
        kind=_KINDS[dataset.task],
        langs=tuple(query.lang for query in queries),
        cluster_ids=tuple(cluster_id_of(query, dataset) for query in queries),
        cosines=np.where(allowed, cosines, np.float32(-np.inf)),
        grades=grades,
        traits=_traits(queries, vectors, engine.model),
        texts=tuple(query.text or "" for query in queries),
    )


def _traits(
    queries: Sequence[LabelledQuery], vectors: Embeddings, model: Embedder
) -> NDArray[np.float64] | None:
    if not is_reader(model) or any(query.photo_id for query in queries):
        return None
    pairs = zip(queries, vectors, strict=True)
    return np.array([traits_of(query.text or "", row, model) for query, row in pairs])


def cluster_id_of(query: LabelledQuery, dataset: Dataset) -> str:
    """Return the photo that a query is about: its own photo, else the one with the best grade."""
    grades = dataset.qrels[query.query_id]
    return query.photo_id or min(grades, key=lambda photo_id: (-grades[photo_id], photo_id))


def halves(dataset: Dataset, *, seed: int) -> tuple[Dataset, Dataset]:
    """Divide queries into two halves, keeping queries about the same photo together.

    A photo is in the same half of every dataset, so a curve that is fitted on the first halves of
    several datasets has not seen the second half of any.

    Raises:
        InputError: All queries are about photos of one half.
    """

    def first(query: LabelledQuery) -> bool:
        text = f"{seed}:{cluster_id_of(query, dataset)}"
        return hashlib.sha256(text.encode()).digest()[0] % 2 == 0

    one = [query.query_id for query in dataset.queries if first(query)]
    other = [query.query_id for query in dataset.queries if not first(query)]
    if not (one and other):
        msg = f"queries of {dataset.name!r} must be about photos of both halves, got one half"
        raise InputError(msg)
    return dataset.only(one), dataset.only(other)


def _has_answer(query: LabelledQuery, dataset: Dataset, row_of: Mapping[str, int]) -> bool:
    if query.photo_id is not None and query.photo_id not in row_of:
        return False
    grades = dataset.qrels[query.query_id]
    return any(grade >= 1 and photo_id in row_of for photo_id, grade in grades.items())
