"""How far scores are from the probabilities that they claim to be, with the effect of chance.

Pairs of one query, and queries about one photo, are not independent: they are drawn together, as
`searchlab.evaluation.significance` does. The expected calibration error is never below zero, so
chance alone makes it positive, the more the fewer queries there are. Reported are the error as it
is usually computed, the error of perfect scores on as many queries, and the error without bias.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError
from searchlab.evaluation.significance import Interval

BINS = 10
_CELLS = 8_000_000  # counts of clusters held in memory at once


class ScoreBand(NamedTuple):
    """The query-photo pairs whose scores lie between two bounds.

    Attributes:
        mean_score: Mean of their scores, 0 to 1.
        share_relevant: Share of them that is relevant, 0 to 1.
        low: Lower end of the share's interval.
        high: Upper end of the share's interval.
        n_pairs: Number of pairs.
    """

    mean_score: float
    share_relevant: float
    low: float
    high: float
    n_pairs: int


@dataclass(frozen=True)
class Diagram:
    """Reliability of scores.

    Attributes:
        ece: Expected calibration error without its bias, 0 to 1; 0 is best.
        ece_plain: The error as usually computed, which chance alone makes positive.
        ece_chance: The plain error that perfect scores would have on as many queries.
        brier: Mean squared error; 0 is best.
        skill: Share of the squared error that the scores save compared with the base rate as every
            score; 1 is best, 0 is useless, less than 0 misleads.
        base_rate: Share of relevant pairs.
        mean_score: Mean of the scores.
        bars: The bins of equal width that are not empty, from low to high.
        n_queries: Number of queries.
        n_pairs: Number of pairs.
    """

    ece: Interval
    ece_plain: float
    ece_chance: float
    brier: Interval
    skill: float
    base_rate: float
    mean_score: float
    bars: tuple[ScoreBand, ...]
    n_queries: int
    n_pairs: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, rounded to six digits."""
        values: dict[str, Any] = asdict(self)
        values["ece"], values["brier"] = self.ece._asdict(), self.brier._asdict()
        values["bars"] = [bar._asdict() for bar in self.bars]
        return dict(round_floats(values))


def measure_reliability(
    scores: ArrayLike,
    relevant: ArrayLike,
    *,
    clusters: ArrayLike,
    n_queries: int | None = None,
    bins: int = BINS,
    confidence: float = 0.95,
    samples: int = 1000,
    seed: int = 0,
) -> Diagram:
    """Compare scores with the shares of relevant pairs, with intervals by bootstrap over clusters.

    The bootstrap estimates the bias of the error, which is subtracted, and the interval is
    reflected about the estimate (a basic bootstrap interval). It begins at 0 if perfect scores
    would have as large an error in more than 5 % of draws (at a confidence of 95 %).

    Args:
        scores: (n,) scores from 0 to 1.
        relevant: (n,) whether each pair is relevant.
        clusters: (n,) name or number of each pair's cluster, such as the photo that its query is
            about.
        n_queries: Number of queries, to be recorded; the number of clusters if left out.
        bins: Number of bins of equal width, at least 1.
        confidence: Confidence of the intervals, above 0 and below 1.
        samples: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        InputError: Shapes differ, or a score is outside 0 to 1.

    References:
        Naeini, Cooper and Hauskrecht, Obtaining well calibrated probabilities, AAAI 2015.
        Broecker and Smith, Increasing the reliability of reliability diagrams, Weather and
        Forecasting 22, 2007 (the error of perfect scores).
        Kumar, Liang and Ma, Verified uncertainty calibration, NeurIPS 2019 (the bias).
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(relevant, dtype=np.bool_)
    names = np.asarray(clusters)
    if x.ndim != 1 or not len(x) or x.shape != y.shape or names.shape != x.shape:
        msg = (
            f"scores, relevant and clusters must share one shape (n,), got {x.shape}, {y.shape} "
            f"and {names.shape}"
        )
        raise InputError(msg)
    if not (x.min() >= 0 and x.max() <= 1 and bins >= 1 and 0 < confidence < 1):
        msg = f"scores must lie from 0 to 1, got {x.min():g} to {x.max():g}, in {bins} bins"
        raise InputError(msg)
    names, cluster_of = np.unique(names, return_inverse=True)
    bin_of = np.minimum((x * bins).astype(np.intp), bins - 1)
    cells = cluster_of * bins + bin_of
    shape = (len(names), bins)

    def sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
        totals = np.bincount(cells, weights=values, minlength=len(names) * bins)
        return totals.astype(np.float64).reshape(shape)

    parts = np.stack([sums(x), sums(y.astype(float)), sums(np.ones(len(x))), sums((x - y) ** 2)])
    whole = parts.sum(axis=1)  # (4, bins)
    drawn = _draw(parts, samples, seed)  # (4, samples, bins)
    gaps, drawn_gaps = _gaps(whole), _gaps(drawn)
    plain = float(np.abs(gaps).sum())
    errors = np.abs(drawn_gaps).sum(axis=-1)
    chance = np.abs(drawn_gaps - gaps).sum(axis=-1)
    ends = 50 * (1 - confidence), 50 * (1 + confidence)
    low, high = (2 * plain - end for end in np.percentile(errors, ends)[::-1])
    if plain <= np.percentile(chance, 100 * confidence):
        low = 0.0
    ece = Interval(*(float(min(max(0.0, v), 1.0)) for v in (2 * plain - errors.mean(), low, high)))
    brier = drawn[3].sum(axis=-1) / drawn[2].sum(axis=-1)
    base = float(y.mean())
    squared = float(whole[3].sum() / len(x))
    base_error = base * (1 - base)  # squared error of the base rate as every score
    return Diagram(
        ece=ece,
        ece_plain=plain,
        ece_chance=float(chance.mean()),
        brier=Interval(squared, *map(float, np.percentile(brier, ends))),
        skill=1 - squared / base_error if base_error else 0.0,
        base_rate=base,
        mean_score=float(x.mean()),
        bars=tuple(_bars(whole, drawn, ends)),
        n_queries=len(names) if n_queries is None else n_queries,
        n_pairs=len(x),
    )


def _gaps(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (..., bins) sums of scores minus relevant pairs, as shares of all pairs."""
    return np.asarray((sums[0] - sums[1]) / sums[2].sum(axis=-1, keepdims=True))


def _bars(
    whole: NDArray[np.float64], drawn: NDArray[np.float64], ends: tuple[float, float]
) -> list[ScoreBand]:
    bars = []
    for column in np.flatnonzero(whole[2]):
        score_sum, relevant, count, _ = whole[:, column]
        filled = drawn[2, :, column] > 0
        shares = drawn[1, filled, column] / drawn[2, filled, column]
        low, high = np.percentile(shares, ends) if len(shares) else (relevant / count,) * 2
        bars.append(
            ScoreBand(score_sum / count, relevant / count, float(low), float(high), round(count))
        )
    return bars


def _draw(parts: NDArray[np.float64], samples: int, seed: int) -> NDArray[np.float64]:
    """Draw clusters with replacement; returns (n_parts, samples, bins) sums over them."""
    n_parts, n_clusters, bins = parts.shape
    rng = np.random.default_rng(seed)
    table = parts.transpose(1, 0, 2).reshape(n_clusters, -1)
    rows = [times @ table for times in cluster_draws(n_clusters, samples, rng)]
    return np.concatenate(rows).reshape(samples, n_parts, bins).transpose(1, 0, 2)


def cluster_draws(
    n_clusters: int, samples: int, rng: np.random.Generator
) -> list[NDArray[np.float64]]:
    """Draw how often each cluster is in each resample; returns blocks of (n, n_clusters) counts."""
    step = max(1, _CELLS // n_clusters)
    shares = np.full(n_clusters, 1 / n_clusters)
    return [
        rng.multinomial(n_clusters, shares, size=min(step, samples - start)).astype(np.float64)
        for start in range(0, samples, step)
    ]


def round_floats(values: Any, digits: int = 6) -> Any:
    """Round the floats in plain values, so that records are short and reproducible."""
    if isinstance(values, dict):
        return {key: round_floats(value, digits) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [round_floats(value, digits) for value in values]
    return round(float(values), digits) if isinstance(values, float) else values
