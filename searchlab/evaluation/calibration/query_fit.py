"""Fit the curve of text queries on judgments, with what a query itself says of the odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import Calibration, Curve, QueryTraits, QueryWeights, WrittenCurve
from searchlab.errors import InputError
from searchlab.evaluation.calibration.scored_queries import TOP, ScoredQueries

_STEPS = 100
_TOLERANCE = 1e-10
_PRIOR_PAIRS = 20.0  # judged pairs that the calibration which is refined counts for
_PRIOR_SPAN = 5.0  # log-odds that these reach to


class TextFit(NamedTuple):
    """A curve of text queries.

    Attributes:
        curve: Of a query whose traits add nothing.
        weights: Of its traits.
    """

    curve: Curve
    weights: QueryWeights


class JudgedPairs(NamedTuple):
    """Pairs of a text query and a photo that is near to it.

    Attributes:
        cosines: (n,) float64.
        traits: (n, 3) float64, `QueryTraits` of the queries.
        relevant: (n,) bool.
        clusters: (n,) names; pairs of queries about the same photo belong together.
        langs: (n,) languages of the queries.
    """

    cosines: NDArray[np.float64]
    traits: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    clusters: NDArray[np.str_]
    langs: NDArray[np.str_]

    def take(self, chosen: NDArray[np.bool_]) -> JudgedPairs:
        """Keep some pairs."""
        return JudgedPairs(
            self.cosines[chosen],
            self.traits[chosen],
            self.relevant[chosen],
            self.clusters[chosen],
            self.langs[chosen],
        )


def judged_pairs(scored: ScoredQueries, *, k: int = TOP, grade: int = 1) -> JudgedPairs:
    """Return each query's k nearest photos; those that were not judged count as not relevant.

    Args:
        scored: Text queries of a model that tells their traits.
        k: Photos a query.
        grade: Least grade that counts as relevant.

    Raises:
        InputError: The model tells no traits.
    """
    if scored.traits is None:
        msg = "queries must be texts that their model reads, got others; take a model like mini"
        raise InputError(msg)
    near = scored.top(k)
    return JudgedPairs(
        near.cosines,
        scored.traits[near.query],
        near.grades >= grade,
        np.array(scored.cluster_ids)[near.query],
        np.array(scored.langs)[near.query],
    )


def fit_text(sets: Sequence[JudgedPairs], at_large: str) -> TextFit:
    """Fit relevance as a logistic function of cosine and traits.

    Args:
        sets: Judgments; each set counts as much as any other.
        at_large: Digest of the photos at large that the traits were computed with.

    Raises:
        InputError: Only one kind of photos, or relevance does not rise with the cosine.
    """
    x = np.concatenate([_features(pairs) for pairs in sets])
    y = np.concatenate([pairs.relevant for pairs in sets]).astype(np.float64)
    w = np.concatenate([np.full(len(pairs.relevant), 1 / len(pairs.relevant)) for pairs in sets])
    if not 0 < y.mean() < 1:
        msg = "pairs must be of relevant and other photos, got only one kind"
        raise InputError(msg)
    centre, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    inputs = np.column_stack([(x - centre) / scale, np.ones(len(x))])
    found = _logistic(inputs, y, w * len(x) / w.sum(), np.full(5, 1e-6), np.zeros(5))
    slopes = found[:4] / scale
    if slopes[0] <= 0:
        msg = f"relevance must rise with the cosine, got slope {slopes[0]:.3g}"
        raise InputError(msg)
    curve = Curve(float(slopes[0]), float(found[4] - slopes @ centre))
    background, familiarity, length = (float(slope) for slope in slopes[1:])
    return TextFit(curve, QueryWeights(background, familiarity, length, at_large))


def predict(pairs: JudgedPairs, fit: TextFit) -> NDArray[np.float64]:
    """Return the (n,) scores of pairs."""
    shifts = np.array([fit.weights.log_odds(QueryTraits(*row)) for row in pairs.traits])
    logits = fit.curve.slope * pairs.cosines + fit.curve.intercept + shifts
    return np.asarray(0.5 * (1 + np.tanh(0.5 * logits)), dtype=np.float64)


class RankedPairs(NamedTuple):
    """Pairs of a text query and a photo near the top of a ranking by picture and texts.

    Attributes:
        ranked: (n,) float64 log-odds that they are ranked by, with what words gain.
        seen: (n,) float64 log-odds of the picture alone.
        is_written: (n,) bool, whether words of the query are written about any photo.
        shares: (n,) float64, share of the photos that are expected to have all of these words.
        reaches: (n,) float64, share of the query that texts of the library have.
        relevant: (n,) bool.
        clusters: (n,) names; pairs of queries about the same photo belong together.
        langs: (n,) languages of the queries.
    """

    ranked: NDArray[np.float64]
    seen: NDArray[np.float64]
    is_written: NDArray[np.bool_]
    shares: NDArray[np.float64]
    reaches: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    clusters: NDArray[np.str_]
    langs: NDArray[np.str_]

    def take(self, chosen: NDArray[np.bool_]) -> RankedPairs:
        """Keep some pairs."""
        return RankedPairs(
            self.ranked[chosen],
            self.seen[chosen],
            self.is_written[chosen],
            self.shares[chosen],
            self.reaches[chosen],
            self.relevant[chosen],
            self.clusters[chosen],
            self.langs[chosen],
        )

    def scores(self, fit: WrittenFit) -> NDArray[np.float64]:
        """Return the (n,) scores under a choice of what texts say of relevance."""
        usual = Curve(1.0, 0.0)(self.ranked)
        first = fit.written_reach * self.reaches**2
        counted = WrittenCurve(1.0, 0.0, fit.above_even)(self.ranked - first)
        loss = fit.written_share * np.log1p(1000 * self.shares)
        odds = counted * np.exp(-loss)
        return np.where(self.is_written, odds / (odds + 1 - counted), usual)


class WrittenFit(NamedTuple):
    """What texts say of relevance, as of `Calibration`."""

    above_even: float = 1.0
    written_share: float = 0.0
    written_reach: float = 0.0


def fit_written(sets: Sequence[RankedPairs]) -> WrittenFit:
    """Fit what texts say of relevance, by the likelihood of judgments.

    Sentences alone hardly tell `written_share`: few photos are expected to have all of their words.
    It and `written_reach` are drawn towards 0 as some twenty pairs would draw them.

    Args:
        sets: Judgments; each set counts as much as any other.
    """
    from scipy.optimize import minimize

    prior = _PRIOR_PAIRS / sum(len(pairs.relevant) for pairs in sets)

    def misfit(values: NDArray[np.float64]) -> float:
        total = prior * float(values[1] ** 2 + values[2] ** 2)
        for pairs in sets:
            p = np.clip(pairs.scores(WrittenFit(*values.tolist())), 1e-12, 1 - 1e-12)
            total -= float(np.where(pairs.relevant, np.log(p), np.log1p(-p)).mean())
        return total

    bounds = ((0.01, 1), (0, 2), (0, 5))
    best = minimize(misfit, (0.2, 0.2, 0.3), method="Nelder-Mead", bounds=bounds)
    return WrittenFit(*best.x.tolist())


def refine(
    calibration: Calibration,
    scores: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    *,
    source: str,
) -> Calibration:
    """Refine the scores of text queries on a library's own judgments.

    The log-odds are stretched and shifted. The calibration as it was counts for twenty judged
    pairs, so that a handful of judgments moves scores a little, and some hundred decide them.

    Args:
        calibration: What the scores were computed with.
        scores: (n,) its scores of judged pairs, 0 to 1.
        relevant: (n,) whether each is relevant.
        source: What the judgments are called.

    Raises:
        InputError: There is no pair, or the shapes differ.
    """
    p, y = np.asarray(scores, dtype=np.float64), np.asarray(relevant, dtype=np.float64)
    if p.ndim != 1 or not len(p) or p.shape != y.shape:
        msg = f"scores and relevant must share one shape (n,), got {p.shape} and {y.shape}"
        raise InputError(msg)
    p = np.clip(p, 1e-6, 1 - 1e-6)
    logits = np.log(p / (1 - p))
    # The calibration as it was, as pairs of all scores that it is right about.
    known = np.linspace(-_PRIOR_SPAN, _PRIOR_SPAN, 21)
    x = np.concatenate([logits, known])
    targets = np.concatenate([y, 0.5 * (1 + np.tanh(0.5 * known))])
    weights = np.concatenate([np.ones(len(p)), np.full(len(known), _PRIOR_PAIRS / len(known))])
    inputs = np.column_stack([x, np.ones(len(x))])
    before = np.array([1.0, 0.0])
    stretch, shift = _logistic(inputs, targets, weights, np.full(2, 1e-6), before)
    stretch = max(float(stretch), 0.05)  # relevance must rise with the cosine
    text, query = calibration.text, calibration.query
    return replace(
        calibration,
        text=Curve(text.slope * stretch, text.intercept * stretch + float(shift)),
        query=None
        if query is None
        else replace(
            query, **{name: getattr(query, name) * stretch for name in QueryTraits._fields}
        ),
        source=f"{calibration.source}, refined on {source}",
    )


def _features(pairs: JudgedPairs) -> NDArray[np.float64]:
    return np.column_stack([pairs.cosines, pairs.traits])


def _logistic(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    penalty: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the coefficients of a logistic regression, drawn towards a prior.

    Newton's method on the penalised likelihood, which is concave.
    """

    def loss(beta: NDArray[np.float64]) -> float:
        logits = x @ beta
        misfit = np.logaddexp(0, logits) - y * logits
        return float(weights @ misfit + penalty @ (beta - prior) ** 2 / 2)

    beta, least = prior.copy(), loss(prior)
    for _ in range(_STEPS):
        p = 0.5 * (1 + np.tanh(0.5 * (x @ beta)))
        gradient = x.T @ (weights * (y - p)) - penalty * (beta - prior)
        curvature = (x * (weights * np.maximum(p * (1 - p), 1e-9))[:, None]).T @ x
        step = np.linalg.solve(curvature + np.diag(penalty), gradient)
        # A whole step may overshoot where nearly all p are 0 or 1.
        while loss(beta + step) > least and np.abs(step).max() > _TOLERANCE:
            step /= 2
        if np.abs(step).max() <= _TOLERANCE:
            break
        beta = beta + step
        least = loss(beta)
    return np.asarray(beta)
