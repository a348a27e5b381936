"""The names of metrics: `ndcg@10`, `recall@10/l2`, `map@100/condensed`.

A name is `metric@k`, then where wanted `/condensed`, then `/l2` or another level:

    ndcg@k       gain is the grade itself (Jarvelin and Kekalainen), discount log2(rank + 1)
    ndcg_exp@k   gain is 2^grade - 1 (Burges et al.), the same discount
    recall@k     share of the relevant photos that are among the first k
    success@k    1 where one of the first k is relevant, else 0
    mrr@k        1 / rank of the first relevant photo, 0 where it is not among the first k
    map@k        precision at each relevant photo of the first k, summed, by the number of relevant
    precision@k  share of relevant photos among the first k, of k also where fewer were found
    judged@k     share of the first k answers that somebody judged; 0 where nothing was found

Relevant is grade 1 and above. `/l2` asks for grade 2 and above: a level is for metrics that know
relevant and not relevant, so nDCG, which weighs grades, takes none. `/condensed` drops unjudged
photos from the answers first, so that a photo nobody looked at is no mistake (Sakai, SIGIR 2007);
it wants runs as deep as the collection, see `run_depth`, and photos that were judged not relevant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from searchlab.errors import InputError

RANX_NAMES = {
    "ndcg": "ndcg",
    "ndcg_exp": "ndcg_burges",
    "recall": "recall",
    "success": "hit_rate",
    "mrr": "mrr",
    "map": "map",
    "precision": "precision",
}

METRIC_NAMES = (*RANX_NAMES, "judged")

_GRADED = ("ndcg", "ndcg_exp")
_METRIC = re.compile(
    rf"({'|'.join(METRIC_NAMES)})@([1-9][0-9]{{0,5}})(/condensed)?(?:/l([2-9]|[1-9][0-9]{{1,2}}))?"
)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, taken apart.

    Attributes:
        name: One of `METRIC_NAMES`.
        k: How many answers count.
        condensed: Whether unjudged photos are dropped first.
        least: Grade from which a photo is relevant.
    """

    name: str
    k: int
    condensed: bool = False
    least: int = 1


def parse_metric(text: str) -> Metric:
    """Take a metric's name apart.

    >>> parse_metric("recall@10/condensed/l2")
    Metric(name='recall', k=10, condensed=True, least=2)

    Raises:
        InputError: The metric is not supported; the message lists those that are.
    """
    found = _METRIC.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        supported = ", ".join(f"{name}@k" for name in METRIC_NAMES)
        msg = (
            f"a metric must be one of {supported}, with k from 1 to 999999, then /condensed or "
            f"/l2 (to /l999) or both in this order, got {text!r}"
        )
        raise InputError(msg)
    name, k, condensed, level = found.groups()
    if level is not None and name in (*_GRADED, "judged"):
        msg = f"{name} must have no level, since it does not ask what is relevant, got {text!r}"
        raise InputError(msg)
    if condensed is not None and name == "judged":
        msg = f"judged must not be condensed, since all that is left is judged, got {text!r}"
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
