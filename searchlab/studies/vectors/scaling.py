"""How a cost grows with the number of photos, and its extrapolation to larger numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from searchlab.errors import InputError


class Estimate(NamedTuple):
    """A value with an interval that holds a new measurement in 19 cases of 20.

    Attributes:
        mean: The value.
        low: Lower end, at least 0.
        high: Upper end; infinite if there are only two measurements.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class PowerLaw:
    """cost = scale * n ** exponent.

    Attributes:
        exponent: Exponent with its 95 % interval; 1 if twice as many photos cost twice as much.
        scale: Cost of a single photo, according to the law.
        ns: Measured numbers of photos.
        spread: Standard deviation of a measurement around the law, in natural logarithms.
    """

    exponent: Estimate
    scale: float
    ns: tuple[float, ...]
    spread: float

    def at(self, n: float) -> Estimate:
        """Estimate the cost of `n` photos."""
        logs = np.log(self.ns)
        away = (math.log(n) - logs.mean()) ** 2 / ((logs - logs.mean()) ** 2).sum()
        mean = math.log(self.scale) + self.exponent.mean * math.log(n)
        half = _t(len(logs)) * self.spread * math.sqrt(1 + 1 / len(logs) + away)
        half = math.inf if math.isnan(half) else half
        return Estimate(*(_exp(mean + part) for part in (0.0, -half, half)))

    def reaches(self, cost: float) -> float:
        """Return the number of photos of a given cost; infinite if the cost does not grow."""
        if self.exponent.mean <= 0:
            return math.inf
        return _exp((math.log(cost) - math.log(self.scale)) / self.exponent.mean)


def fit_power_law(ns: Sequence[float], costs: ArrayLike) -> PowerLaw:
    """Fit a straight line through the logarithms, by least squares.

    Args:
        ns: Numbers of photos, above 0; at least two different ones.
        costs: (len(ns),) costs, above 0.

    Raises:
        InputError: There are fewer sizes, shapes differ, or a value is not finite and above 0.
    """
    x, y = np.asarray(ns, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(np.unique(x)) < 2:
        msg = f"costs must be given for two sizes at least, got {x.shape} and {y.shape}"
        raise InputError(msg)
    if not all(np.isfinite(v).all() and (v > 0).all() for v in (x, y)):
        msg = "sizes and costs must be finite and above 0, got others; leave those out"
        raise InputError(msg)
    logs, targets = np.log(x), np.log(y)
    centred = logs - logs.mean()
    squares = float((centred**2).sum())
    exponent = float(centred @ targets / squares)
    intercept = float(targets.mean() - exponent * logs.mean())
    residuals = targets - intercept - exponent * logs
    spread = math.sqrt(float(residuals @ residuals) / (len(x) - 2)) if len(x) > 2 else 0.0
    half = _t(len(x)) * spread / math.sqrt(squares)
    half = math.inf if math.isnan(half) else half
    return PowerLaw(
        exponent=Estimate(exponent, exponent - half, exponent + half),
        scale=math.exp(intercept),
        ns=tuple(x.tolist()),
        spread=spread,
    )


def _t(n: int) -> float:
    # With two points the spread around the line is unknown; callers test for 0 times infinity.
    if n <= 2:
        return math.inf
    from scipy.stats import t

    return float(t.ppf(0.975, n - 2))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
