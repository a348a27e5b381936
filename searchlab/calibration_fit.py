"""Fit the curves from cosine to `relevance_score` on judgments, and check what they promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Calibration, Curve
from searchlab.curves import fit_curve, reliability
from searchlab.errors import InputError

if TYPE_CHECKING:
    from searchlab.datasets import Dataset
    from searchlab.engine import SearchEngine
    from searchlab.indexes.protocol import VectorIndex
    from searchlab.models.protocol import Embeddings

_TOP = 10  # photos of a held-out query that a reader sees first
_MAX_QUERIES = 4_000
_MAX_PAIRS = 1_000_000
_MAX_ALIKE = 50  # a query that more photos answer says little about how alike these are


class _Pairs(NamedTuple):
    cosines: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    weights: NDArray[np.float64]


def fit_calibration(
    engine: SearchEngine, dataset: Dataset, *, seed: int = 0, grade: int = 1
) -> tuple[Calibration, dict[str, Any]]:
    """Fit the curves of a model on a judged dataset, and check them on queries held out.

    Each curve is fitted on every query's ten nearest photos, where scores are read. Queries about
    the same photo stay in the same half. A photo that nobody judged counts as not relevant. At most
    4,000 queries are looked at; the report over all pairs takes a sample of the photos that are not
    relevant, each weighted by the number that it stands for.

    Args:
        engine: Its index and model are used, its calibration is not.
        dataset: Text queries and judgments. Photos that are relevant to the same query, one of at
            most 50 such photos, are taken as relevant to each other.
        seed: Of the halves and samples.
        grade: Least grade that counts as relevant.

    Returns:
        The calibration, in which `both` has the mean slope and intercept of the other two; and what
        the held-out half says: `{"text": {"pairs": ..., "top10": ..., "n_queries": ...}, "image":
        ...}` with a `Reliability` as plain values over all pairs, and over each query's ten
        nearest. Where no photo is relevant to another, `image` is None, and the text curve is used.

    Raises:
        InputError: Too few judged queries, or cosines that say nothing about relevance.
    """
    rng = np.random.default_rng(seed)
    ids = engine.table.photo_ids(range(len(engine.table)))
    row_of = {photo_id: row for row, photo_id in enumerate(ids)}
    texts = {query.query_id: query.text for query in dataset.queries}
    qrels = {query_id: dataset.qrels.get(query_id, {}) for query_id in texts}
    relevant = _relevant_rows(qrels, row_of, grade)
    drawn = _sample(sorted(relevant), _MAX_QUERIES, rng)
    vectors = engine.model.encode_texts([texts[query_id] for query_id in drawn])
    rows = [relevant[query_id] for query_id in drawn]
    text, text_report = _fit_half(engine.index, vectors, rows, None, rng)

    alike = _relevant_rows(_shared(qrels, grade), row_of, grade)
    photos = _sample(sorted(set(alike) & set(row_of)), _MAX_QUERIES, rng)
    image, image_report = text, None
    if len(photos) >= 2:
        own = np.array([row_of[photo_id] for photo_id in photos])
        rows = [np.setdiff1d(alike[photo_id], [row_of[photo_id]]) for photo_id in photos]
        references = np.asarray(engine.index.vectors[own])
        image, image_report = _fit_half(engine.index, references, rows, own, rng)
    both = Curve((text.slope + image.slope) / 2, (text.intercept + image.intercept) / 2)
    source = f"{dataset.name}@{dataset.revision}"
    calibration = Calibration(text=text, image=image, both=both, source=source)
    return calibration, {"text": text_report, "image": image_report}


def _fit_half(
    index: VectorIndex,
    vectors: Embeddings,
    relevant: Sequence[NDArray[np.int64]],
    own: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> tuple[Curve, dict[str, Any]]:
    """Fit on one half of the queries and report on the other; `own` rows are no answers."""
    first = np.array([rows.min() for rows in relevant])
    first = first if own is None else np.minimum(first, own)
    anchors = rng.permutation(np.unique(first))
    fitted = np.isin(first, anchors[: (len(anchors) + 1) // 2])
    if fitted.all():
        msg = f"queries must be about at least 2 photos of the library, got {len(anchors)}"
        raise InputError(msg)
    thinned = max(100, _MAX_PAIRS // len(relevant))
    halves = []
    for half in (fitted, ~fitted):
        found = []
        for row in map(int, np.flatnonzero(half)):
            barred = relevant[row] if own is None else np.append(relevant[row], own[row])
            found.append(_query_pairs(index, vectors[row], relevant[row], barred, thinned, rng))
        halves.append(_Pairs(*(np.concatenate(part) for part in zip(*found, strict=True))))
    # Where scores are read: over all pairs, a curve would be bent to the countless far photos.
    near = _top_pairs(index, vectors, relevant, own, np.flatnonzero(fitted))
    curve = fit_curve(near.cosines, near.relevant)
    held = halves[1]
    top = _top_pairs(index, vectors, relevant, own, np.flatnonzero(~fitted))
    return curve, {
        "pairs": reliability(curve(held.cosines), held.relevant, weights=held.weights).to_dict(),
        f"top{_TOP}": reliability(curve(top.cosines), top.relevant).to_dict(),
        "n_queries": int(np.count_nonzero(~fitted)),
    }


def _query_pairs(
    index: VectorIndex,
    vector: Embeddings,
    relevant: NDArray[np.int64],
    barred: NDArray[np.int64],
    thinned: int,
    rng: np.random.Generator,
) -> _Pairs:
    n_photos = len(index)
    if n_photos <= thinned:
        others = np.arange(n_photos)
    else:
        others = np.sort(rng.choice(n_photos, size=thinned, replace=False, shuffle=False))
    others = others[~np.isin(others, barred)]
    rows = np.concatenate([relevant, others])
    weights = np.ones(len(rows))
    weights[len(relevant) :] = (n_photos - len(barred)) / max(1, len(others))
    cosines = np.asarray(index.vectors[rows] @ vector, dtype=np.float64)
    return _Pairs(cosines, np.arange(len(rows)) < len(relevant), weights)


def _top_pairs(
    index: VectorIndex,
    vectors: Embeddings,
    relevant: Sequence[NDArray[np.int64]],
    own: NDArray[np.int64] | None,
    held: NDArray[np.int64],
) -> _Pairs:
    cosines, hits = [], []
    for row in map(int, held):
        found = index.search(vectors[[row]], min(_TOP + 1, len(index)))
        keep = found.rows[0] >= 0
        if own is not None:
            keep &= found.rows[0] != own[row]
        cosines.append(found.scores[0][keep][:_TOP])
        hits.append(np.isin(found.rows[0][keep][:_TOP], relevant[row]))
    flat = np.concatenate(cosines).astype(np.float64)
    return _Pairs(flat, np.concatenate(hits), np.ones(len(flat)))


def _relevant_rows(
    qrels: Mapping[str, Mapping[str, int]], row_of: Mapping[str, int], grade: int
) -> dict[str, NDArray[np.int64]]:
    """Find the rows of relevant photos, for those that have any in the library."""
    found = {
        query_id: sorted(
            row_of[photo] for photo, g in grades.items() if g >= grade and photo in row_of
        )
        for query_id, grades in qrels.items()
    }
    return {query_id: np.array(rows, dtype=np.int64) for query_id, rows in found.items() if rows}


def _shared(qrels: Mapping[str, Mapping[str, int]], grade: int) -> dict[str, dict[str, int]]:
    """Take photos that are relevant to the same query as relevant to each other."""
    shared: dict[str, dict[str, int]] = {}
    for grades in qrels.values():
        photos = [photo_id for photo_id, value in grades.items() if value >= grade]
        for photo_id in photos if len(photos) <= _MAX_ALIKE else ():
            others = {other: grade for other in photos if other != photo_id}
            if others:
                shared.setdefault(photo_id, {}).update(others)
    return shared


def _sample(names: Sequence[str], most: int, rng: np.random.Generator) -> list[str]:
    if len(names) <= most:
        return list(names)
    return [names[row] for row in np.sort(rng.choice(len(names), size=most, replace=False))]
