"""A simulated judge: clicks through a session like a person, knows the answers, and sometimes errs.

It shows whether a study is big enough before people are asked, and that the evaluation of the
journals gives back the grades that were put in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from searchlab.evaluation.judging.grading import GRADES, Grading
from searchlab.evaluation.judging.pools import Pair
from searchlab.evaluation.judging.preferences import BlindComparison

if TYPE_CHECKING:
    from searchlab.evaluation.metrics import Qrels

_BEST = len(GRADES) - 1
_RARER_IF_IRRELEVANT = 10


def simulate_judge(
    grading: Grading, truth: Qrels, *, error: float = 0.1, seed: int = 0, most: int | None = None
) -> int:
    """Grade the open items of a session, with the messages that a browser would send.

    Args:
        grading: The session.
        truth: query_id -> photo_id -> grade; missing pairs are not relevant.
        error: Chance of a grade that is off by one, 0 to 1; a tenth of it for photos that are not
            relevant, which people rarely mistake.
        seed: Seed of the errors, which also depend on the order of the pool.
        most: Number of pairs after which the judge stops; all if left out.

    Returns:
        Number of graded pairs.
    """
    rng = np.random.default_rng(seed)
    n_graded = 0
    while grading.current is not None and (most is None or n_graded < most):
        pair = Pair(*grading.current)
        grade = truth.get(pair.query_id, {}).get(pair.photo_id, 0)
        if rng.random() < (error if grade else error / _RARER_IF_IRRELEVANT):
            step = 1 if rng.random() < 0.5 else -1
            grade += step if 0 <= grade + step <= _BEST else -step
        grading.act({"do": "choose", "choice": grade, "number": grading.number})
        n_graded += 1
    return n_graded


def simulate_preferences(
    comparison: BlindComparison, truth: Qrels, *, error: float = 0.1, seed: int = 0
) -> int:
    """Prefer the side with the higher discounted sum of grades, and neither if they are equal.

    Args:
        comparison: The session.
        truth: query_id -> photo_id -> grade; missing pairs are not relevant.
        error: Chance of a random preference, 0 to 1.
        seed: Seed of the errors.

    Returns:
        Number of judged queries.
    """
    rng = np.random.default_rng(seed)
    n_judged = 0
    while comparison.current is not None:
        (query_id,) = comparison.current
        grades = truth.get(query_id, {})
        left, right = (
            sum(
                grades.get(photo, 0) / np.log2(rank + 1) for rank, photo in enumerate(side, start=1)
            )
            for side in comparison.sides(query_id)
        )
        choice = "tie" if np.isclose(left, right) else "left" if left > right else "right"
        if rng.random() < error:
            choice = ("left", "tie", "right")[rng.integers(3)]
        comparison.act({"do": "choose", "choice": choice, "number": comparison.number})
        n_judged += 1
    return n_judged
