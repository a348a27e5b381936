"""Ways to mix a picture with words other than adding their vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import Calibration, Curve
from searchlab.evaluation.calibration.scored_queries import TOP
from searchlab.search.queries import Query
from searchlab.studies.steering.conflicts import SteeringConflict

if TYPE_CHECKING:
    from searchlab.search.engine import SearchEngine

Scores: TypeAlias = NDArray[np.float64]
Mixing: TypeAlias = Callable[[Scores, Scores, float], Scores]
"""(n_photos,) cosines to the picture and to the words, and a weight -> (n_photos,) scores."""


def mixings(calibration: Calibration) -> dict[str, Mixing]:
    """Return the ways to mix, by name.

    `sum` ranks as the engine does, since cosines to a sum of vectors are sums of cosines.
    `standardised` first gives both cosines the same mean and spread over the photos. `probability`
    multiplies the calibrated scores, with that of the words raised to the weight.
    """

    def add(picture: Scores, words: Scores, weight: float) -> Scores:
        return picture + weight * words

    def add_standardised(picture: Scores, words: Scores, weight: float) -> Scores:
        return _standardise(picture) + weight * _standardise(words)

    def multiply_probabilities(picture: Scores, words: Scores, weight: float) -> Scores:
        alike = _log_probability(calibration.image, picture)
        return alike + weight * _log_probability(calibration.text, words)

    return {"sum": add, "standardised": add_standardised, "probability": multiply_probabilities}


def run_mixing(
    engine: SearchEngine,
    conflicts: Sequence[SteeringConflict],
    alphas: Sequence[float],
    mixing: Mixing,
) -> list[dict[str, list[str]]]:
    """Rank every conflict at every weight, exactly; one run for each weight.

    Args:
        engine: Engine with an exact index.
        conflicts: Photos and words.
        alphas: Weights of the words.
        mixing: One of `mixings`.
    """
    vectors = np.asarray(engine.index.vectors)
    runs: list[dict[str, list[str]]] = [{} for _ in alphas]
    for conflict in conflicts:
        picture = vectors @ _vector(engine, Query(photo_id=conflict.photo_id))
        words = vectors @ _vector(engine, Query(text=conflict.text))
        own = engine.table.row_of(conflict.photo_id)
        for run, alpha in zip(runs, alphas, strict=True):
            scores = mixing(picture.astype(np.float64), words.astype(np.float64), alpha)
            scores[own] = -np.inf
            rows = np.argsort(-scores, kind="stable")[:TOP]
            run[conflict.conflict_id] = engine.table.photo_ids(rows)
    return runs


def _vector(engine: SearchEngine, query: Query) -> NDArray[np.float32]:
    vector = engine.query_vector(query)
    return np.zeros(engine.model.dim, dtype=np.float32) if vector is None else vector


def _standardise(cosines: NDArray[np.float64]) -> Scores:
    spread = float(cosines.std())
    return np.asarray((cosines - cosines.mean()) / (spread if spread > 0 else 1.0))


def _log_probability(curve: Curve, cosines: Scores) -> Scores:
    return np.asarray(-np.logaddexp(0, -(curve.slope * cosines + curve.intercept)))
