"""Logistic curves from cosine to probability, and how reliable such probabilities are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.config.calibration import Curve
from searchlab.errors import InputError


class Bin(NamedTuple):
    """The query-photo pairs whose scores lie between two bounds.

    Attributes:
        mean_score: Mean of their scores, 0 to 1.
        share_relevant: Share of them that is relevant, 0 to 1.
        n_pairs: Number of pairs.
    """

    mean_score: float
    share_relevant: float
    n_pairs: int


@dataclass(frozen=True)
class Reliability:
    """How far scores are from being probabilities of relevance.

    Attributes:
        ece: Expected calibration error, 0 to 1; 0 is best.
        brier: Mean squared error, 0 to 1; 0 is best.
        base_rate: Share of relevant pairs.
        bins: The bins that are not empty, from low to high scores.
    """

    ece: float
    brier: float
    base_rate: float
    bins: list[Bin]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, bins as lists."""
        return asdict(self) | {"bins": [list(one) for one in self.bins]}


def fit_curve(
    cosines: ArrayLike, relevant: ArrayLike, *, weights: ArrayLike | None = None
) -> Curve:
    """Fit relevance as a logistic function of the cosine.

    Without a penalty, on Platt's smoothed targets, which keep the slope finite if the two classes
    do not overlap.

    Args:
        cosines: (n,) cosines.
        relevant: (n,) whether each pair is relevant.
        weights: (n,) how many pairs each one stands for, above 0; 1 if left out. With weights a
            sample of the negatives can stand for all of them.

    Raises:
        InputError: Shapes differ, values are not finite, there is only one class, or relevance
            does not rise with the cosine.

    References:
        Platt, Probabilistic outputs for support vector machines, 1999.
    """
    x, y, w = _check_arrays(cosines, relevant, weights)
    n_relevant, n_other = float(w[y].sum()), float(w[~y].sum())
    if not n_relevant or not n_other:
        msg = "cosines must be of relevant and other photos, got only one kind"
        raise InputError(msg)
    center, scale = x.mean(), x.std()
    slope = 0.0
    if scale > 0:
        from sklearn.linear_model import LogisticRegression

        targets = np.where(y, (n_relevant + 1) / (n_relevant + 2), 1 / (n_other + 2))
        z = ((x - center) / scale)[:, None]
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8, max_iter=200)
        model.fit(
            np.concatenate([z, z]),
            np.repeat([1, 0], len(z)),
            sample_weight=np.concatenate([w * targets, w * (1 - targets)]) / w.mean(),
        )
        slope = float(model.coef_[0, 0]) / float(scale)
    if slope <= 0:
        msg = (
            f"relevance must rise with the cosine, got slope {slope:.3g}; this model does not "
            "understand these queries, leave it uncalibrated"
        )
        raise InputError(msg)
    return Curve(slope=slope, intercept=float(model.intercept_[0]) - slope * float(center))


def reliability(
    scores: ArrayLike,
    relevant: ArrayLike,
    *,
    bins: int = 10,
    weights: ArrayLike | None = None,
) -> Reliability:
    """Compare scores with the shares of relevant pairs, in bins of equal width.

    Args:
        scores: (n,) scores from 0 to 1.
        relevant: (n,) whether each pair is relevant.
        bins: Number of bins, at least 1.
        weights: (n,) how many pairs each one stands for, above 0; 1 if left out.

    Raises:
        InputError: Shapes differ, or a score is outside 0 to 1.

    References:
        Naeini, Cooper and Hauskrecht, Obtaining well calibrated probabilities, AAAI 2015.
    """
    x, y, w = _check_arrays(scores, relevant, weights)
    if x.min() < 0 or x.max() > 1 or bins < 1:
        msg = f"scores must lie from 0 to 1, got {x.min():g} to {x.max():g}, in {bins} bins"
        raise InputError(msg)
    bin_of = np.minimum((x * bins).astype(np.intp), bins - 1)
    mass = np.bincount(bin_of, weights=w, minlength=bins)
    filled = mass > 0
    mean_scores = np.bincount(bin_of, weights=w * x, minlength=bins)[filled] / mass[filled]
    relevant_shares = np.bincount(bin_of, weights=w * y, minlength=bins)[filled] / mass[filled]
    shares = mass[filled] / mass.sum()
    rows = zip(mean_scores, relevant_shares, mass[filled], strict=True)
    return Reliability(
        ece=float((shares * np.abs(mean_scores - relevant_shares)).sum()),
        brier=float(np.average((x - y) ** 2, weights=w)),
        base_rate=float(np.average(y, weights=w)),
        bins=[Bin(float(score), float(share), round(float(count))) for score, share, count in rows],
    )


def _check_arrays(
    values: ArrayLike, relevant: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    x = np.asarray(values, dtype=np.float64)
    y = np.asarray(relevant, dtype=bool)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if x.ndim != 1 or not len(x) or x.shape != y.shape or x.shape != w.shape:
        shapes = f"{x.shape}, {y.shape} and {w.shape}"
        msg = f"values, relevant and weights must share one shape (n,), got {shapes}"
        raise InputError(msg)
    if not (np.isfinite(x).all() and np.isfinite(w).all() and (w > 0).all()):
        msg = "values must be finite and weights finite and above 0, got others"
        raise InputError(msg)
    return x, y, w
