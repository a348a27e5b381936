"""Shares of counts: intervals and tests that stay right for few, none and all."""

from __future__ import annotations

from math import exp, lgamma, log, sqrt

from searchlab.errors import InputError
from searchlab.evaluation.significance import Interval

_Z = 1.959963984540054  # 97.5 % of a normal distribution lies below
_STEPS = 60


def share_interval(wins: float, n: int) -> Interval:
    """Estimate a share with its 95 % interval.

    With ties counted as half a win the true spread is smaller, so the interval is too wide rather
    than too narrow.

    Args:
        wins: 0 to n.
        n: At least 1.

    Raises:
        InputError: Numbers out of range.

    References:
        Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927.
    """
    if not 0 <= wins <= n or n < 1:
        msg = f"wins must lie between 0 and n, n above 0, got {wins} of {n}"
        raise InputError(msg)
    share = wins / n
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def sign_test(wins: int, losses: int) -> float:
    """Test whether wins and losses are equally likely: exact, two-sided; ties are not counted.

    Example:
        >>> sign_test(9, 1)
        0.021484375

    References:
        Dixon and Mood, The statistical sign test, JASA 41, 1946.
    """
    n, fewer = wins + losses, min(wins, losses)
    ways = tail = 1
    for k in range(fewer):
        ways = ways * (n - k) // (k + 1)  # from n over k to n over k + 1
        tail += ways
    return min(1.0, 2 * tail / (1 << n))


def most_at_95(hits: int, n: int) -> float:
    """Upper end of the one-sided 95 % interval of a share; exact.

    Example:
        >>> round(most_at_95(0, 59), 3)
        0.05

    References:
        Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the
        binomial, Biometrika 26, 1934.
    """
    if hits >= n:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        share = (low + high) / 2
        tail = sum(exp(_log_chance(k, n, share)) for k in range(hits + 1))
        low, high = (share, high) if tail > 0.05 else (low, share)
    return high


def _log_chance(hits: int, n: int, share: float) -> float:
    # In logarithms, as the counts themselves overflow from some thousand draws on.
    ways = lgamma(n + 1) - lgamma(hits + 1) - lgamma(n - hits + 1)
    return ways + hits * log(share) + (n - hits) * log(1 - share)
