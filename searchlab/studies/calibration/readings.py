"""Reliability of scores on held-out queries: by language, with other curves, by `text_alpha`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from searchlab.config.calibration import FITTED_TEXT_ALPHA, Calibration, Curve
from searchlab.evaluation.calibration.scored_queries import (
    ScoredPairs,
    ScoredQueries,
    score_queries,
)
from searchlab.studies.calibration.reliability import Diagram, measure_reliability

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.search.engine import SearchEngine

ALPHAS = (0.1, 0.5, 1.0, FITTED_TEXT_ALPHA, 3.0, 5.0, 10.0)


def read(
    scored: ScoredQueries, pairs: ScoredPairs, curve: Curve, *, samples: int, seed: int
) -> Diagram:
    """Measure the reliability of a curve on pairs of some queries; grade 1 and above is relevant.

    Args:
        scored: The queries.
        pairs: Pairs of these queries with photos.
        curve: Curve from cosine to score.
        samples: Number of resamples; queries about the same photo are drawn together.
        seed: Seed of the resampling.
    """
    _, cluster_of = np.unique(scored.cluster_ids, return_inverse=True)
    return measure_reliability(
        curve(pairs.cosines),
        pairs.grades >= 1,
        clusters=cluster_of[pairs.query],
        n_queries=len(np.unique(pairs.query)),
        samples=samples,
        seed=seed,
    )


def by_language(
    scored: ScoredQueries, pairs: ScoredPairs, curve: Curve, *, samples: int, seed: int
) -> dict[str, Diagram]:
    """Measure all queries together, named `all`, and each language if there are several."""
    diagrams = {"all": read(scored, pairs, curve, samples=samples, seed=seed)}
    langs = np.array(scored.langs)
    for lang in sorted(set(scored.langs)) if len(set(scored.langs)) > 1 else ():
        mine = langs[pairs.query] == lang
        if mine.any():
            some = ScoredPairs(*(column[mine] for column in pairs))
            diagrams[lang] = read(scored, some, curve, samples=samples, seed=seed)
    return diagrams


def flat(diagram: Diagram) -> dict[str, Any]:
    """Return a row of a table: everything but the bins."""
    values = diagram.to_dict()
    del values["bars"]
    return values


def read_with(
    calibrations: Mapping[str, Calibration],
    held_out: Sequence[ScoredQueries],
    *,
    judged_too: bool,
    samples: int,
    seed: int,
) -> list[dict[str, Any]]:
    """Measure the same queries with several calibrations.

    Args:
        calibrations: Name, which is `recipe` in the rows -> calibration.
        held_out: Queries, one entry for each kind.
        judged_too: Whether to measure each query's ten nearest judged photos as well.
        samples: Number of resamples.
        seed: Seed of the resampling.
    """
    rows = []
    for scored in held_out:
        readings = {"top10": scored.top()}
        if judged_too:
            readings["judged10"] = scored.judged().top()
        for recipe, calibration in calibrations.items():
            curve = calibration.curve(scored.kind)
            for reading, pairs in readings.items():
                diagram = read(scored, pairs, curve, samples=samples, seed=seed)
                label = {"kind": scored.kind, "reading": reading, "recipe": recipe}
                rows.append(label | flat(diagram))
    return rows


def read_at_alphas(
    engine: SearchEngine, steered: Dataset, calibration: Calibration, *, samples: int, seed: int
) -> list[dict[str, Any]]:
    """Measure steered queries whose text counts less or more than usual.

    Returns:
        A row for each `text_alpha`, measured with the curve that moves between those of image and
        text; `ece_fixed` is measured with the curve of the usual `text_alpha`.
    """
    rows = []
    for alpha in ALPHAS:
        queries = [replace(query, text_alpha=alpha) for query in steered.queries]
        scored = score_queries(engine, replace(steered, queries=tuple(queries)))
        near = scored.top()
        moving = calibration.curve("both", text_alpha=alpha)
        diagram = read(scored, near, moving, samples=samples, seed=seed)
        fixed = read(scored, near, calibration.both, samples=samples, seed=seed)
        row = {"text_alpha": alpha, **flat(diagram)}
        rows.append(row | {"ece_fixed": flat(fixed)["ece"]})
    return rows
