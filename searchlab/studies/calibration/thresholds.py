"""The effect of a score threshold after a model swap, and for queries without an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import Curve
from searchlab.errors import InputError
from searchlab.evaluation.calibration.scored_queries import TOP, ScoredQueries
from searchlab.evaluation.significance import Interval
from searchlab.studies.calibration.reliability import cluster_draws

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
LEAST_SHOWN = 30
"""Least number of photos above a threshold, for its precision to be more than chance."""

_ENDS = (2.5, 97.5)


class Shown(NamedTuple):
    """The photos that one model would show without a threshold.

    Attributes:
        scores: (n,) scores on any scale, higher is better.
        relevant: (n,) whether each photo is relevant to its query.
        clusters: (n,) name of the photo that the query is about.
    """

    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    clusters: Sequence[str]


def threshold_for(shown: Shown, precision: float, *, least: int = LEAST_SHOWN) -> float | None:
    """Find the lowest threshold at which at least a given share of the photos is relevant.

    Args:
        shown: Photos of one model.
        precision: The share, above 0 and at most 1.
        least: Least number of photos that the threshold must show.

    Returns:
        One of the scores; None if no threshold shows enough photos with this precision.

    Raises:
        InputError: The precision is out of range.
    """
    if not 0 < precision <= 1:
        msg = f"precision must be above 0 and at most 1, got {precision}"
        raise InputError(msg)
    order = np.argsort(-shown.scores, kind="stable")
    scores = shown.scores[order]
    shares = np.cumsum(shown.relevant[order]) / np.arange(1, len(order) + 1)
    # Photos of equal score are shown together, so only the last of them can be a threshold.
    last = np.append(scores[1:] < scores[:-1], True)
    fits = np.flatnonzero(last & (shares >= precision) & (np.arange(1, len(order) + 1) >= least))
    return float(scores[fits[-1]]) if len(fits) else None


def bootstrap_share(
    hits: NDArray[np.bool_], clusters: Sequence[str], *, samples: int = 1000, seed: int = 0
) -> Interval:
    """Estimate a share, with its percentile bootstrap interval over clusters.

    Args:
        hits: (n,) booleans, at least one.
        clusters: (n,) names; entries of one name are drawn together.
        samples: Number of resamples.
        seed: Seed of the resampling.
    """
    names, cluster_of = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    sums = np.stack([np.bincount(cluster_of, weights=hits), np.bincount(cluster_of)], axis=1)
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([times @ sums for times in cluster_draws(len(names), samples, rng)])
    low, high = np.percentile(drawn[:, 0] / drawn[:, 1], _ENDS)
    return Interval(float(np.mean(hits)), float(low), float(high))


def transfer(
    chosen_on: Mapping[str, Shown],
    used_with: Mapping[str, Shown],
    precision: float,
    *,
    samples: int = 1000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Choose a threshold with each model, and use it with every model.

    Args:
        chosen_on: Model -> photos for the queries that thresholds are chosen on.
        used_with: Model -> photos for the queries that thresholds are measured on.
        precision: Share of relevant photos that the threshold is chosen for.
        samples: Number of resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        A row for each ordered pair: `threshold` (None if the first model never reaches the
        precision), and for the photos of the second model above it: `n_shown`, `precision` with its
        interval, `error` (that share minus `precision`), `within` (whether the interval holds it).
    """
    rows: list[dict[str, Any]] = []
    for chosen, before in chosen_on.items():
        threshold = threshold_for(before, precision)
        for used, after in used_with.items():
            row: dict[str, Any] = {"chosen_on": chosen, "used_with": used, "asked": precision}
            row |= {"threshold": threshold, "n_shown": 0}
            row |= {"precision": None, "error": None, "within": None}
            rows.append(row)
            if threshold is None:
                continue
            above = after.scores >= threshold
            row["n_shown"] = int(np.count_nonzero(above))
            if row["n_shown"]:
                names = [after.clusters[int(place)] for place in np.flatnonzero(above)]
                interval = bootstrap_share(after.relevant[above], names, samples=samples, seed=seed)
                row["precision"] = interval._asdict()
                row["error"] = interval.mean - precision
                row["within"] = interval.low <= precision <= interval.high
    return rows


def separation(
    answerable: NDArray[np.float64],
    unanswerable: NDArray[np.float64],
    clusters: Sequence[str],
    *,
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return the area under the ROC curve: how often an answerable query scores above another one.

    Args:
        answerable: (n_queries,) best score with the answers in the collection.
        unanswerable: (n_queries,) best score of the same queries without them.
        clusters: (n_queries,) names; queries of one name are drawn together.
        samples: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        0 to 1; 0.5 is chance. Ties count half.

    References:
        Hanley and McNeil, The meaning and use of the area under a ROC curve, Radiology 143, 1982.
    """
    names, cluster_of = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    counts = np.bincount(cluster_of).astype(np.float64)
    order = np.argsort(unanswerable, kind="stable")
    ranked = unanswerable[order]
    beaten = np.zeros((len(names), len(names)))
    # How many scores of each cluster lie below a score, and not above it; the mean halves ties.
    steps = np.zeros((len(ranked) + 1, len(names)), dtype=np.float32)
    steps[np.arange(1, len(ranked) + 1), cluster_of[order]] = 1
    np.cumsum(steps, axis=0, out=steps)
    for side in ("left", "right"):
        np.add.at(beaten, cluster_of, steps[np.searchsorted(ranked, answerable, side=side)] / 2)
    rng = np.random.default_rng(seed)
    drawn = np.concatenate(
        [
            np.einsum("sc,cd,sd->s", times, beaten, times, optimize=True) / (times @ counts) ** 2
            for times in cluster_draws(len(names), samples, rng)
        ]
    )
    low, high = np.percentile(drawn, _ENDS)
    return Interval(float(beaten.sum() / counts.sum() ** 2), float(low), float(high))


def unanswerable(
    scored: ScoredQueries, curve: Curve, *, samples: int, seed: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Measure whether the best score shows that a collection holds no answer.

    The answers of each query are removed. Unjudged photos stay; some of them may be answers too, so
    the score separates the two cases at least as well as measured here.

    Args:
        scored: Queries, whose photos of grade 1 and above are removed.
        curve: Curve from cosine to score.
        samples: Number of resamples; queries about the same photo are drawn together.
        seed: Seed of the resampling.

    Returns:
        Rows by language, `all` first: `auc` of the best score with and without the answers, and
        the shares of queries that show any photo at a `score_threshold` of 0.5; and rows by
        threshold, with these shares as `answered` (with the answers) and `false_answers` (without).
    """
    draw = {"samples": samples, "seed": seed}
    best, best_without = curve(scored.best()), curve(scored.without_answers().best())
    langs, clusters = np.array(scored.langs), np.array(scored.cluster_ids)
    rows = []
    for lang in ("all", *sorted(set(scored.langs))):
        mine = np.ones(len(langs), dtype=np.bool_) if lang == "all" else langs == lang
        area = separation(best[mine], best_without[mine], clusters[mine].tolist(), **draw)
        rows.append(
            {
                "lang": lang,
                "n_queries": int(mine.sum()),
                "auc": area._asdict(),
                "answered@0.5": float((best[mine] >= 0.5).mean()),
                "false_answers@0.5": float((best_without[mine] >= 0.5).mean()),
            }
        )
    thresholds = [
        {
            "threshold": threshold,
            "answered": bootstrap_share(best >= threshold, scored.cluster_ids, **draw)._asdict(),
            "false_answers": bootstrap_share(
                best_without >= threshold, scored.cluster_ids, **draw
            )._asdict(),
        }
        for threshold in THRESHOLDS
    ]
    return rows, thresholds


def show_nearest(scored: ScoredQueries, curve: Curve | None) -> Shown:
    """Return each query's ten nearest photos with their scores, or cosines if there is no curve."""
    near = scored.top(TOP)
    scores = near.cosines if curve is None else curve(near.cosines)
    return Shown(scores, near.grades >= 1, [scored.cluster_ids[row] for row in near.query])
