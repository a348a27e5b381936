"""The effect of `text_alpha` on an image query: how much it keeps of the look, and obeys the text.

Each query is a photo together with words that do not describe it. Look kept is the nDCG@10 of
photos that people find similar to the photo, as a share of what the photo alone reaches; text
obeyed is the nDCG@10 of photos that the words describe, as a share of what the words alone reach.
Their harmonic mean is the balance, and its peak is a good default.
`benchmarks/steering/bench_steering.py` records the results of `measure`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation.calibration.fit import fit_calibration
from searchlab.evaluation.calibration.scored_queries import cluster_id_of
from searchlab.evaluation.metrics import per_query
from searchlab.evaluation.significance import bootstrap_interval
from searchlab.search.queries import DEFAULT_TEXT_ALPHA
from searchlab.studies.calibration.reliability import round_floats
from searchlab.studies.query_sets import QuerySet, engine_of
from searchlab.studies.steering.conflicts import (
    ALPHAS,
    METRIC,
    SteeringConflict,
    SteeringScores,
    draw_conflicts,
    rank_ids,
    score_conflicts,
    steer,
)
from searchlab.studies.steering.mixing import mixings, run_mixing

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset, LabelledQuery
    from searchlab.library.library import Library
    from searchlab.search.engine import SearchEngine

LEAST_CONFLICTS = 50
"""Least number of conflicts of a language that is reported separately."""


def measure(
    engine: SearchEngine,
    query_set: QuerySet,
    *,
    plain: SearchEngine | None = None,
    alphas: Sequence[float] = ALPHAS,
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure the curves of a collection.

    Args:
        engine: Engine, whose `mixing` and `steering` are measured.
        query_set: Judged queries, by words and by photos.
        plain: Engine over the same photos that mixes in another way, to compare with.
        alphas: Values of `text_alpha`, ascending from 0, including the default.
        samples: Number of resamples of the intervals.
        seed: Seed of the references and of resampling.

    Returns:
        `metrics`; `curve` by weight; `languages` at the default, with the best weight of each;
        `mixings` (ways to mix, each at its best); and `agreeing`: nDCG@10 by weight for words that
        do describe the photo, and of the words alone as the last row, without a weight. With
        `plain` also `compared`, what both engines reach at the default, with the difference, and
        `plain_curve`.

    Raises:
        InputError: There are no queries by photos, or the default is not among the weights.
    """
    if query_set.similar is None or query_set.steered is None or DEFAULT_TEXT_ALPHA not in alphas:
        msg = (
            f"{query_set.text.name!r} must come with queries by photos, and alphas must hold "
            f"{DEFAULT_TEXT_ALPHA:g}, got {list(alphas)}"
        )
        raise InputError(msg)
    draw = {"samples": samples, "seed": seed}
    usual = list(alphas).index(DEFAULT_TEXT_ALPHA)
    conflicts = draw_conflicts(query_set.text, query_set.similar, seed=seed)
    steered = steer(engine, conflicts, alphas=alphas)
    curve, best = steered.rows(**draw), steered.best(**draw)
    agreeing = measure_agreeing(engine, query_set.steered, alphas=alphas, **draw)
    ways = _mixings(engine, query_set, conflicts, steered, alphas=alphas, **draw)
    metrics = {
        "n_pulls": len(conflicts),
        "best_alpha": best["mean"],
        "best_alpha_low": best["low"],
        "best_alpha_high": best["high"],
        "best_steering": engine.config.steering * best["mean"] / DEFAULT_TEXT_ALPHA,
        "best_balance": max(row["balance"]["mean"] for row in curve),
        **{name: curve[usual][name]["mean"] for name in ("look_kept", "text_obeyed", "balance")},
        "largest_drop_of_text": float(np.diff(-steered.text.mean(axis=1)).max(initial=0)),
        "agreeing": agreeing[usual][METRIC]["mean"],
        "agreeing_photo_alone": agreeing[0][METRIC]["mean"],
        "agreeing_text_alone": agreeing[-1][METRIC]["mean"],
        **{f"best_balance {row['mixing']}": row["best_balance"]["mean"] for row in ways},
    }
    measured = {
        "metrics": round_floats(metrics),
        "curve": round_floats(curve),
        "languages": round_floats(_languages(steered, usual, **draw)),
        "mixings": round_floats(ways),
        "agreeing": round_floats(agreeing),
    }
    if plain is not None:
        by_sum = steer(plain, conflicts, alphas=alphas)
        rows = _compare_conflicts(by_sum, steered, usual, **draw)
        rows.append(_compare_agreeing(plain, engine, query_set.steered, **draw))
        measured["compared"] = round_floats(rows)
        measured["plain_curve"] = round_floats(by_sum.rows(**draw))
    return measured


def engines_of(
    library: Library, query_set: QuerySet, config: Config
) -> tuple[SearchEngine, SearchEngine | None]:
    """Return the engine of a configuration, and the one that adds vectors if it does not itself."""
    engine = engine_of(library, config, query_set)
    if config.mixing == "sum":
        return engine, None
    return engine, engine_of(library, replace(config, mixing="sum", steering=1.0), query_set)


def measure_agreeing(
    engine: SearchEngine,
    steered: Dataset,
    *,
    alphas: Sequence[float] = ALPHAS,
    samples: int = 1000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Score queries whose words do describe their photo.

    Returns:
        nDCG@10 with its interval for each weight; the last row is that of the words alone, whose
        `text_alpha` is None.
    """
    queries = sorted(steered.queries, key=lambda query: query.query_id)
    clusters = [cluster_id_of(query, steered) for query in queries]
    engine.warm([query.text or "" for query in queries])
    rows = []
    for alpha in (*alphas, None):
        scores = score_agreeing(engine, steered, queries, alpha)
        interval = bootstrap_interval(scores, clusters=clusters, samples=samples, seed=seed)
        rows.append({"text_alpha": alpha, METRIC: interval._asdict()})
    return rows


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
    config = Config(
        model=parameters["model"],
        steering=parameters["steering"],
        mixing=parameters.get("mixing", "sum"),
    )
    with tempfile.TemporaryDirectory() as scratch:
        library = dataset_library(query_set.text, Path(scratch), config=Config())
        engine, plain = engines_of(library, query_set, config)
        return measure(
            engine,
            query_set,
            plain=plain,
            alphas=parameters["alphas"],
            samples=parameters["samples"],
            seed=parameters["seed"],
        )


def _compare_conflicts(
    before: SteeringScores, after: SteeringScores, usual: int, *, samples: int, seed: int
) -> list[dict[str, Any]]:
    # The same conflicts are drawn for both, so that differences are paired.
    curves = [scores.curves(samples=samples, seed=seed) for scores in (before, after)]
    rows = []
    for name in curves[0]:
        plain, mixed = (drawn[name][:, usual] for drawn in curves)
        row: dict[str, Any] = {"figure": name}
        for label, values in (("sum", plain), ("mixed", mixed), ("difference", mixed - plain)):
            low, high = np.percentile(values[1:], (2.5, 97.5))
            row[label] = {"mean": float(values[0]), "low": float(low), "high": float(high)}
        rows.append(row)
    return rows


def _compare_agreeing(
    plain: SearchEngine, engine: SearchEngine, steered: Dataset, *, samples: int, seed: int
) -> dict[str, Any]:
    queries = sorted(steered.queries, key=lambda query: query.query_id)
    clusters = [cluster_id_of(query, steered) for query in queries]
    before, after = (
        score_agreeing(one, steered, queries, DEFAULT_TEXT_ALPHA) for one in (plain, engine)
    )
    row: dict[str, Any] = {"figure": f"{METRIC} of words that describe the photo"}
    for label, scores in (("sum", before), ("mixed", after), ("difference", after - before)):
        interval = bootstrap_interval(scores, clusters=clusters, samples=samples, seed=seed)
        row[label] = interval._asdict()
    return row


def score_agreeing(
    engine: SearchEngine,
    steered: Dataset,
    queries: Sequence[LabelledQuery],
    text_alpha: float | None,
) -> NDArray[np.float64]:
    """Return (n_queries,) nDCG@10 of photos with words that do describe them."""
    run = {
        query.query_id: rank_ids(engine, query.photo_id or "", query.text or "", text_alpha)
        for query in queries
    }
    return per_query(steered.qrels, run, [METRIC])[METRIC]


def _languages(
    steered: SteeringScores, usual: int, *, samples: int, seed: int
) -> list[dict[str, Any]]:
    draw = {"samples": samples, "seed": seed}
    rows = []
    for lang in sorted(set(steered.langs)):
        mine = [place for place, one in enumerate(steered.langs) if one == lang]
        if len(mine) < LEAST_CONFLICTS:
            continue
        some = steered.only(mine)
        row = {"lang": lang, "n_pulls": len(some.langs), "best_alpha": some.best(**draw)}
        rows.append(row | some.rows(**draw)[usual])
    return rows


def _mixings(
    engine: SearchEngine,
    query_set: QuerySet,
    conflicts: Sequence[SteeringConflict],
    steered: SteeringScores,
    *,
    alphas: Sequence[float],
    samples: int,
    seed: int,
) -> list[dict[str, Any]]:
    """Find the best balance of every way to mix, at the best weight of each."""
    calibration = fit_calibration(engine, query_set.text, similar=query_set.similar)
    rows = []
    for name, mixing in mixings(calibration).items():
        runs = run_mixing(engine, conflicts, alphas, mixing)
        scores = score_conflicts(conflicts, alphas, runs, steered.text_alone)
        balance = scores.curves(samples=samples, seed=seed)["balance"]
        place = int(balance[0].argmax())
        low, high = np.percentile(balance[1:, place], (2.5, 97.5))
        best = {"mean": float(balance[0, place]), "low": float(low), "high": float(high)}
        rows.append({"mixing": name, "best_weight": alphas[place], "best_balance": best})
    return rows
