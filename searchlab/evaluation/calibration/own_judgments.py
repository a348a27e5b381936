"""Refine a library's scores on judgments of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import Calibration, QueryTraits
from searchlab.errors import InputError
from searchlab.evaluation.calibration.query_fit import refine
from searchlab.evaluation.calibration.scored_queries import (
    TOP,
    ScoredPairs,
    ScoredQueries,
    score_queries,
)

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.search.engine import SearchEngine


class Refined(NamedTuple):
    """A calibration that was refined on judgments.

    Attributes:
        calibration: The new one.
        n_queries: Text queries that were judged.
        n_pairs: Judged photos among the ten nearest judged ones of each query.
        share_relevant: Share of these that is relevant.
        mean_before: Mean of their scores as they were.
        mean_after: Mean of their scores now.
    """

    calibration: Calibration
    n_queries: int
    n_pairs: int
    share_relevant: float
    mean_before: float
    mean_after: float


def refine_calibration(engine: SearchEngine, judgments: Dataset, *, grade: int = 1) -> Refined:
    """Refine the scores of text queries on judgments of a library's own photos.

    A dataset has no query without a relevant photo, so these do not count: scores say how likely a
    photo is relevant to a query that has an answer.

    Args:
        engine: Of the library; its calibration is what is refined.
        judgments: Text queries, and photos that somebody judged; photos that nobody judged count
            for nothing.
        grade: Least grade that counts as relevant.

    Raises:
        InputError: The queries are no texts, none of the judged photos is in the library, or those
            near a query are all relevant, or none is: how often a score is right is then not seen.
    """
    scored = score_queries(engine, judgments).judged()
    near = scored.top(TOP)
    relevant = near.grades >= grade
    if relevant.all() or not relevant.any():
        msg = (
            "judgments must hold relevant and irrelevant photos of what a query finds, as those of "
            f"`searchlab judge` do, got {relevant.sum():,} relevant of {len(relevant):,}"
        )
        raise InputError(msg)
    calibration = engine.config.calibration
    before = _scores(calibration, scored, near)
    source = f"{judgments.name}@{judgments.revision}"
    refined = refine(calibration, before, relevant, source=source)
    return Refined(
        calibration=refined,
        n_queries=len(scored),
        n_pairs=len(relevant),
        share_relevant=float(relevant.mean()),
        mean_before=float(before.mean()),
        mean_after=float(_scores(refined, scored, near).mean()),
    )


def _scores(
    calibration: Calibration, scored: ScoredQueries, near: ScoredPairs
) -> NDArray[np.float64]:
    shifts = np.zeros(len(scored))
    if calibration.query is not None and scored.traits is not None:
        rows = scored.traits.tolist()
        shifts = np.array([calibration.query.log_odds(QueryTraits(*row)) for row in rows])
    # A shift of the log-odds is one of the cosine, which the curve takes.
    return calibration.text(near.cosines + shifts[near.query] / calibration.text.slope)
