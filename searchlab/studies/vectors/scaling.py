"""How a cost grows with the number of photos, and what it would be beyond what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from searchlab.errors import InputError


class Estimate(NamedTuple):
    """A value with the interval that a new measurement would lie in, 19 times in 20.

    Attributes:
        mean: The value.
        low: Lower end, at least 0.
        high: Upper end; infinite where two measurements are all there are.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class PowerLaw:
    """cost = scale * n ** exponent.

    Attributes:
        exponent: 1 where twice as many photos cost twice as much; with its 95 % interval.
        scale: Cost of one photo, if the law held so far down.
        ns: Sizes that were measured.
        spread: Standard deviation of a measurement about the law, in natural logarithms.
    """

    exponent: Estimate
    scale: float
    ns: tuple[float, ...]
    spread: float

    def at(self, n: float) -> Estimate:
        """Return what `n` photos would cost."""
        logs = np.log(self.ns)
        away = (math.log(n) - logs.mean()) ** 2 / ((logs - logs.mean()) ** 2).sum()
        mean = math.log(self.scale) + self.exponent.mean * math.log(n)
        reach = _t(len(logs)) * self.spread * math.sqrt(1 + 1 / len(logs) + away)
        reach = math.inf if math.isnan(reach) else reach
        return Estimate(*(_exp(mean + part) for part in (0.0, -reach, reach)))

    def reaches(self, cost: float) -> float:
        """Return the number of photos that cost so much; infinite where cost does not grow."""
        if self.exponent.mean <= 0:
            return math.inf
        return _exp((math.log(cost) - math.log(self.scale)) / self.exponent.mean)


def fit_power_law(ns: Sequence[float], costs: ArrayLike) -> PowerLaw:
    """Fit a straight line through the logarithms, by least squares.

    Args:
        ns: Numbers of photos, above 0; at least two different ones.
        costs: (len(ns),) above 0.

    Raises:
        InputError: Fewer sizes, other shapes, or a value that is not finite and above 0.
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
    left = targets - intercept - exponent * logs
    spread = math.sqrt(float(left @ left) / (len(x) - 2)) if len(x) > 2 else 0.0
    reach = _t(len(x)) * spread / math.sqrt(squares)
    reach = math.inf if math.isnan(reach) else reach
    return PowerLaw(
        exponent=Estimate(exponent, exponent - reach, exponent + reach),
        scale=math.exp(intercept),
        ns=tuple(x.tolist()),
        spread=spread,
    )


def _t(n: int) -> float:
    # Of two points the spread about the line is unknown: 0 times infinity, which callers look for.
    if n <= 2:
        return math.inf
    from scipy.stats import t

    return float(t.ppf(0.975, n - 2))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
