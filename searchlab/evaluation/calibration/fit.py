"""Fit the curves from cosine to `relevance_score` on judgments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from searchlab.config.calibration import Calibration, Curve
from searchlab.errors import InputError
from searchlab.evaluation.calibration.curves import fit_curve
from searchlab.evaluation.calibration.scored_queries import TOP, ScoredQueries, score_queries

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.search.engine import SearchEngine

_FLAT = 1e-3  # a slope must be above 0, so that the order of cosines is kept


def fit_calibration(
    engine: SearchEngine,
    text: Dataset,
    *,
    similar: Dataset | None = None,
    steered: Dataset | None = None,
    grade: int = 1,
    judged_only: bool = False,
) -> Calibration:
    """Fit the curves of a model on judged queries of each kind.

    Each curve is fitted on every query's ten nearest photos, whose scores users read: over all
    pairs the many far photos would dominate the fit. Every query counts the same. If relevance does
    not rise with the cosine, the curve is flat at the share of relevant photos.

    Args:
        engine: Its index and model are used, its calibration is not.
        text: Text queries and judgments.
        similar: The same for queries by a photo; the text curve is used if left out.
        steered: The same for queries by a photo and words; if left out, the curve has the mean
            slope and the mean intercept of the other two.
        grade: Least grade that counts as relevant.
        judged_only: Whether to fit on the ten nearest photos that were judged. Otherwise unjudged
            photos count as not relevant.

    Returns:
        The calibration; its source names the text queries.

    Raises:
        InputError: For one kind of query no photo is relevant, or every one.
    """

    def fit(dataset: Dataset) -> Curve:
        scored = score_queries(engine, dataset)
        return fit_top(scored, grade=grade, judged_only=judged_only)

    words = fit(text)
    picture = words if similar is None else fit(similar)
    mean = Curve((words.slope + picture.slope) / 2, (words.intercept + picture.intercept) / 2)
    both = mean if steered is None else fit(steered)
    source = f"{text.name}@{text.revision}"
    return Calibration(text=words, image=picture, both=both, source=source)


def fit_top(
    scored: ScoredQueries, *, k: int = TOP, grade: int = 1, judged_only: bool = False
) -> Curve:
    """Fit one curve on each query's k nearest photos; see `fit_calibration`."""
    near = (scored.judged() if judged_only else scored).top(k)
    relevant = near.grades >= grade
    share = float(relevant.mean()) if len(relevant) else 0.0
    try:
        return fit_curve(near.cosines, relevant)
    except InputError:
        if not 0 < share < 1:
            raise
        # The cosine carries no information: every photo is equally likely to be relevant.
        return Curve(slope=_FLAT, intercept=math.log(share / (1 - share)))
