"""Proportions: intervals and tests of counts that are also valid for few, no and all hits."""

from __future__ import annotations

from math import sqrt

from searchlab.errors import InputError
from searchlab.evaluation.significance import Interval

_Z = 1.959963984540054  # 97.5 % of a normal distribution lies below


def proportion_interval(wins: float, n: int) -> Interval:
    """Estimate a proportion with its 95 % interval.

    If ties count as half a win, the true spread is smaller, and the interval is rather too wide.

    Args:
        wins: Number of wins, 0 to n.
        n: Number of trials, at least 1.

    Raises:
        InputError: A number is out of range.

    References:
        Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927.
    """
    if not 0 <= wins <= n or n < 1:
        msg = f"wins must lie between 0 and n, n above 0, got {wins} of {n}"
        raise InputError(msg)
    # SciPy computes this interval only for whole numbers of wins.
    proportion = wins / n
    middle = (proportion + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * sqrt(proportion * (1 - proportion) / n + _Z**2 / (4 * n**2))
    return Interval(proportion, max(0.0, middle - half), min(1.0, middle + half))


def sign_test(wins: int, losses: int) -> float:
    """Return the p-value of the exact two-sided test that wins and losses are equally likely.

    Example:
        >>> round(sign_test(9, 1), 6)
        0.021484

    References:
        Dixon and Mood, The statistical sign test, JASA 41, 1946.
    """
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def upper_bound_95(hits: int, n: int) -> float:
    """Return the upper end of the exact one-sided 95 % interval of a proportion.

    Example:
        >>> round(upper_bound_95(0, 59), 3)
        0.05

    References:
        Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the
        binomial, Biometrika 26, 1934.
    """
    from scipy.stats import beta

    return 1.0 if hits >= n else float(beta.ppf(0.95, hits + 1, n - hits))
