"""Whether a `relevance_score` is the probability of relevance that it claims to be.

Curves are fitted on one half of the judged photos and measured on the other, for each kind of
query. `benchmarks/calibration/bench_calibration.py` records `measure` for each model, and
`measure_transfer` for all models together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED, Calibration, Curve
from searchlab.evaluation.calibration.fit import fit_calibration
from searchlab.evaluation.calibration.scored_queries import halves, score_queries
from searchlab.studies.calibration.readings import by_language, flat, read_at_alphas, read_with
from searchlab.studies.calibration.reliability import Diagram, round_floats
from searchlab.studies.calibration.thresholds import Shown, show_nearest, transfer, unanswerable
from searchlab.studies.query_sets import QuerySet, engine_of

if TYPE_CHECKING:
    from searchlab.search.engine import SearchEngine

PRECISIONS = (0.2, 0.3, 0.4)
_MEAN = "mean of text and image"
TRANSFER = "threshold_transfer"
"""Name of the measurement of all models together."""


def fit(engine: SearchEngine, query_set: QuerySet, *, judged_only: bool = False) -> Calibration:
    """Fit all curves; see `searchlab.evaluation.calibration.fit.fit_calibration`."""
    return fit_calibration(
        engine,
        query_set.text,
        similar=query_set.similar,
        steered=query_set.steered,
        judged_only=judged_only,
    )


def measure(
    engine: SearchEngine,
    query_set: QuerySet,
    *,
    others: Mapping[str, Calibration] | None = None,
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Fit on one half of the queries, and measure the scores of the other.

    Scores are measured on each query's ten nearest photos (`top10`); if photos were judged not
    relevant, also on its ten nearest judged photos (`judged10`), with curves fitted on such; and
    over all pairs (`all`). Unjudged photos count as not relevant.

    Args:
        engine: Engine, whose calibration is not used.
        query_set: Judged queries.
        others: Further calibrations by name, such as those of another collection.
        samples: Number of resamples of the intervals.
        seed: Seed of halves and resampling.

    Returns:
        `calibration` and `metrics`; tables `reliability` by kind, reading and language, `diagrams`
        with the bins, `recipes` (other curves on the same queries), `alphas` (steered queries with
        other weights of the text), `unanswerable` by language and `thresholds`.
    """
    first, second = query_set.halves(seed)
    draw = {"samples": samples, "seed": seed}
    fitted = fit(engine, first)
    held_out = [score_queries(engine, dataset) for dataset in second.each()]
    has_irrelevant = all((scored.grades == 0).any() for scored in held_out)
    judged = fit(engine, first, judged_only=True) if has_irrelevant else None
    rows, diagrams = [], []
    metrics: dict[str, float] = {}
    for scored in held_out:
        readings = [("top10", scored.top(), fitted), ("all", scored.pairs(), fitted)]
        if judged is not None:
            readings.append(("judged10", scored.judged().top(), judged))
        for reading, pairs, calibration in readings:
            label = {"kind": scored.kind, "reading": reading}
            diagrams_of = by_language(scored, pairs, calibration.curve(scored.kind), **draw)
            rows += [label | {"lang": lang} | flat(one) for lang, one in diagrams_of.items()]
            diagrams.append(label | {"bars": diagrams_of["all"].to_dict()["bars"]})
            metrics |= _headline(f"{scored.kind}.{reading}", diagrams_of["all"])
    calibrations = {"fitted": fitted, _MEAN: _with_mean(fitted)}
    calibrations |= {} if judged is None else {"judged photos": judged}
    calibrations |= {"uncalibrated": UNCALIBRATED, **(others or {})}
    recipes = [
        row
        for row in read_with(calibrations, held_out, judged_too=judged is not None, **draw)
        if row["kind"] == "both" or row["recipe"] != _MEAN
    ]
    for row in recipes:
        metrics[f"ece.{row['kind']}.{row['reading']} by {row['recipe']}"] = row["ece"]["mean"]
    by_lang, thresholds = unanswerable(held_out[0], fitted.text, **draw)
    metrics["auc"] = by_lang[0]["auc"]["mean"]
    for row in thresholds:
        metrics[f"answered@{row['threshold']}"] = row["answered"]["mean"]
        metrics[f"false_answers@{row['threshold']}"] = row["false_answers"]["mean"]
    alphas = (
        [] if second.steered is None else read_at_alphas(engine, second.steered, fitted, **draw)
    )
    for row in alphas:
        metrics[f"ece@{row['text_alpha']:g}"] = row["ece"]["mean"]
        metrics[f"ece_fixed@{row['text_alpha']:g}"] = row["ece_fixed"]["mean"]
    return {
        "metrics": round_floats(metrics),
        "calibration": fitted.to_dict(),
        "judged_calibration": None if judged is None else judged.to_dict(),
        "reliability": rows,
        "diagrams": diagrams,
        "recipes": recipes,
        "alphas": alphas,
        "unanswerable": round_floats(by_lang),
        "thresholds": round_floats(thresholds),
    }


def measure_transfer(
    engines: Mapping[str, SearchEngine],
    query_set: QuerySet,
    *,
    precisions: Sequence[float] = PRECISIONS,
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Choose a threshold with one model and use it with another, for every ordered pair.

    The threshold is chosen on one half of the text queries, on which the curves are fitted too, so
    that a given share of the photos above it (of the ten nearest) is relevant; the share is then
    measured on the other half, once with calibrated scores, once with plain cosines.

    Args:
        engines: Name -> engine, whose calibration is not used.
        query_set: Judged queries, of which the text queries are used.
        precisions: Shares of relevant photos to choose thresholds for.
        samples: Number of resamples of the intervals.
        seed: Seed of halves and resampling.

    Returns:
        `rows`, as `searchlab.studies.calibration.thresholds.transfer` makes them, each with its
        `scale`; and `metrics`: over ordered pairs of different models, the mean distance from the
        share that the threshold was chosen for, and how many intervals hold it.
    """
    first, second = halves(query_set.text, seed=seed)
    shown: dict[tuple[str, str], dict[str, Shown]] = {}
    for name, engine in engines.items():
        before, after = score_queries(engine, first), score_queries(engine, second)
        curve = fit_calibration(engine, first).text
        for scale, to_score in (("calibrated", curve), ("cosine", None)):
            for side, scored in (("chosen", before), ("used", after)):
                shown.setdefault((scale, side), {})[name] = show_nearest(scored, to_score)
    rows: list[dict[str, Any]] = []
    metrics: dict[str, float] = {}
    for scale in ("calibrated", "cosine"):
        for precision in precisions:
            pairs = transfer(
                shown[scale, "chosen"],
                shown[scale, "used"],
                precision,
                samples=samples,
                seed=seed,
            )
            rows += [{"scale": scale, **row} for row in pairs]
            swaps = [row for row in pairs if row["chosen_on"] != row["used_with"]]
            metrics |= _transfer_metrics(f"{scale}@{precision}", swaps)
    return {"metrics": round_floats(metrics), "rows": round_floats(rows)}


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the figures of a record again, with the recorded parameters."""
    from searchlab.evaluation.datasets.dataset_library import dataset_library

    parameters = measurement["parameters"]
    query_set = QuerySet.load(
        measurement["dataset"],
        least=parameters["least"],
        most=parameters["most"],
        seed=parameters["seed"],
    )
    draw = {"samples": parameters["samples"], "seed": parameters["seed"]}
    with tempfile.TemporaryDirectory() as scratch:
        library = dataset_library(query_set.text, Path(scratch), config=Config())
        configs = {spec: Config(model=spec) for spec in parameters["models"]}
        engines = {spec: engine_of(library, one, query_set) for spec, one in configs.items()}
        if measurement["name"] == TRANSFER:
            return measure_transfer(engines, query_set, precisions=parameters["precisions"], **draw)
        (engine,) = engines.values()
        others = {name: Calibration.from_dict(one) for name, one in parameters["others"].items()}
        return measure(engine, query_set, others=others, **draw)


def _transfer_metrics(name: str, swaps: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    shown = [row for row in swaps if row["error"] is not None]
    metrics: dict[str, float] = {f"n_swaps.{name}": len(swaps), f"n_shown.{name}": len(shown)}
    if shown:
        metrics[f"error.{name}"] = float(np.mean([abs(row["error"]) for row in shown]))
        metrics[f"worst.{name}"] = max(abs(row["error"]) for row in shown)
        metrics[f"within.{name}"] = float(np.mean([row["within"] for row in shown]))
    return metrics


def _with_mean(fitted: Calibration) -> Calibration:
    """Replace the curve of steered queries by the mean of the other two."""
    return replace(
        fitted,
        both=Curve(
            (fitted.text.slope + fitted.image.slope) / 2,
            (fitted.text.intercept + fitted.image.intercept) / 2,
        ),
    )


def _headline(name: str, diagram: Diagram) -> dict[str, float]:
    return {
        f"ece.{name}": diagram.ece.mean,
        f"ece_plain.{name}": diagram.ece_plain,
        f"ece_chance.{name}": diagram.ece_chance,
        f"brier.{name}": diagram.brier.mean,
        f"skill.{name}": diagram.skill,
        f"base_rate.{name}": diagram.base_rate,
        f"n_queries.{name}": diagram.n_queries,
    }
