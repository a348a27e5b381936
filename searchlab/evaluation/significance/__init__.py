"""How far measured means can be trusted: intervals, paired tests, and groups of equals.

Queries are not always independent: five captions of one photo, or one label in eighty languages,
ask nearly the same thing. `clusters` says which queries belong together; these are resampled and
sign-flipped as one. Ignoring it would make intervals several times too narrow. `groups`, such as
languages, make the mean a macro average: every group counts the same, however many queries it has.
"""

from __future__ import annotations

from searchlab.evaluation.significance.intervals import (
    GroupedIntervals,
    Interval,
    bootstrap_interval,
    bootstrap_intervals,
)
from searchlab.evaluation.significance.leaders import holm, leader_tests, tie_groups
from searchlab.evaluation.significance.paired import contributions, paired_test, permutation_test

__all__ = [
    "GroupedIntervals",
    "Interval",
    "bootstrap_interval",
    "bootstrap_intervals",
    "contributions",
    "holm",
    "leader_tests",
    "paired_test",
    "permutation_test",
    "tie_groups",
]
