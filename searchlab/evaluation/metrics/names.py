"""The names of metrics: `ndcg@10`, `recall@10/l2`, `map@100/condensed`.

A name is `metric@k`, then where wanted `/condensed`, then `/l2` or another level:

    ndcg@k       gain is the grade itself (Jarvelin and Kekalainen), discount log2(rank + 1)
    ndcg_exp@k   gain is 2^grade - 1 (Burges et al.), the same discount
    recall@k     share of the relevant photos that are among the first k
    success@k    1 where one of the first k is relevant, else 0
    mrr@k        1 / rank of the first relevant photo, 0 where it is not among the first k
    map@k        sum of the precision at each relevant photo of the first k / number of relevant
    precision@k  relevant photos among the first k, divided by k even if fewer were returned
    judged@k     share of the first k answers that were judged; 0 if nothing was returned

A photo is relevant from grade 1 on. `/l2` counts only grade 2 and above; nDCG, which weighs grades,
has no such level. `/condensed` drops unjudged photos from the answers first, so that an unjudged
photo is no mistake (Sakai, SIGIR 2007); it needs runs as deep as the collection, see `run_depth`,
and photos that were judged not relevant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.evaluation.metrics import ranked
from searchlab.plugins import load_plugin, plugin_names

_METRIC = re.compile(r"(\w+)@([1-9][0-9]{0,5})(/condensed)?(?:/l([2-9]|[1-9][0-9]{1,2}))?")

ScoreQuery: TypeAlias = Callable[[Mapping[str, int], Sequence[str], "Metric"], float]
"""Grades of a query (photo_id -> grade), its first k answers, the metric -> 0 to 1."""

ScoreAll: TypeAlias = Callable[[ranked.RankedGrades, int], NDArray[np.float64]]
"""Grades of answers, k -> (n_queries,) 0 to 1."""


@dataclass(frozen=True, slots=True)
class MetricKind:
    """How a metric is computed, and which suffixes its name may have.

    Attributes:
        score_all: Scores many queries at once, from arrays of grades; either this or `score`.
        score: Scores one query, from its grades and answers.
        has_levels: Whether it only asks if a photo is relevant, so that `/l2` has a meaning.
        can_condense: Whether `/condensed` has a meaning.
        gain: The weight of a grade, for captions; empty if grades are not weighed.
    """

    score_all: ScoreAll | None = None
    score: ScoreQuery | None = None
    has_levels: bool = True
    can_condense: bool = True
    gain: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric and its parameters, as its name states them.

    Attributes:
        name: A name in `METRICS`.
        k: Number of answers that count.
        condensed: Whether unjudged photos are dropped first.
        least: Grade from which a photo is relevant.
    """

    name: str
    k: int
    condensed: bool = False
    least: int = 1


def score_judged(grades: Mapping[str, int], answers: Sequence[str], metric: Metric) -> float:
    """Return the share of answers that were judged, 0 if there are no answers."""
    return sum(photo_id in grades for photo_id in answers) / max(1, len(answers))


METRICS: dict[str, MetricKind] = {
    "ndcg": MetricKind(ranked.ndcg, has_levels=False, gain="linear gain"),
    "ndcg_exp": MetricKind(ranked.ndcg_exp, has_levels=False, gain="gain 2^grade - 1"),
    "recall": MetricKind(ranked.recall),
    "success": MetricKind(ranked.success),
    "mrr": MetricKind(ranked.mrr),
    "map": MetricKind(ranked.average_precision),
    "precision": MetricKind(ranked.precision),
    "judged": MetricKind(score=score_judged, has_levels=False, can_condense=False),
}
"""Name of a metric, without its cut-off -> how it is computed."""

PLUGINS = "searchlab.metrics"
"""Entry points by which other packages add a `MetricKind`."""


def metric_names() -> list[str]:
    """List the metrics without cut-offs, those of installed packages last."""
    return [*METRICS, *(name for name in plugin_names(PLUGINS) if name not in METRICS)]


def metric_kind(name: str) -> MetricKind | None:
    """Return how a metric is computed; None if no metric has the name.

    Raises:
        MismatchError: It comes with another package, and cannot be imported.
    """
    kind: MetricKind | None = METRICS.get(name) or load_plugin(PLUGINS, name)
    return kind


def parse_metric(text: str) -> Metric:
    """Parse the name of a metric.

    >>> parse_metric("recall@10/condensed/l2")
    Metric(name='recall', k=10, condensed=True, least=2)

    Raises:
        InputError: The metric is not supported; the message lists those that are.
    """
    match = _METRIC.fullmatch(text) if isinstance(text, str) else None
    kind = None if match is None else metric_kind(match[1])
    if match is None or kind is None:
        supported = ", ".join(f"{name}@k" for name in metric_names())
        msg = (
            f"a metric must be one of {supported}, with k from 1 to 999999, then /condensed or "
            f"/l2 (to /l999) or both in this order, got {text!r}"
        )
        raise InputError(msg)
    name, k, condensed, level = match.groups()
    if level is not None and not kind.has_levels:
        msg = f"{name} must have no level, since it does not ask what is relevant, got {text!r}"
        raise InputError(msg)
    if condensed is not None and not kind.can_condense:
        msg = f"{name} must not be condensed, since all that is left is judged, got {text!r}"
        raise InputError(msg)
    return Metric(name, int(k), condensed is not None, int(level or 1))


def cutoff(metric: str) -> int:
    """Return the k of a metric such as `"ndcg@10"`.

    Raises:
        InputError: The metric is not supported; the message lists those that are.
    """
    return parse_metric(metric).k


def run_depth(metrics: Iterable[str], n_photos: int) -> int:
    """Return how many answers a run needs for these metrics, at most `n_photos`.

    Any number of unjudged photos may stand before the judged ones, so a condensed list needs the
    whole ranking.

    >>> run_depth(["ndcg@10", "recall@50"], 349), run_depth(["ndcg@10/condensed"], 349)
    (50, 349)

    Raises:
        InputError: A metric is not supported.
    """
    parsed = [parse_metric(metric) for metric in metrics]
    if any(metric.condensed for metric in parsed):
        return n_photos
    return min(max((metric.k for metric in parsed), default=0), n_photos)
