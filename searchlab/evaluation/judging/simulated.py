"""A simulated judge: clicks through a session as a person would, knows the answers, errs at times.

It shows that a study is big enough before people are asked, and that the machinery gives back what
was put in.
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
_PLAIN = 10


def simulate_judge(
    grading: Grading, truth: Qrels, *, error: float = 0.1, seed: int = 0, most: int | None = None
) -> int:
    """Grade what is open, sending what the browser would send.

    Args:
        grading: The session.
        truth: query_id -> photo_id -> grade; what is missing is not relevant.
        error: Chance of a grade that is one step off, 0 to 1; a tenth of it for photos that are
            not relevant, for nobody often takes a wrench for a frog.
        seed: Of the errors; they depend on the order of the pool too.
        most: Stop after so many, as if the judge went home.

    Returns:
        How many were graded.
    """
    rng = np.random.default_rng(seed)
    n_graded = 0
    while grading.current is not None and (most is None or n_graded < most):
        pair = Pair(*grading.current)
        grade = truth.get(pair.query_id, {}).get(pair.photo_id, 0)
        if rng.random() < (error if grade else error / _PLAIN):
            step = 1 if rng.random() < 0.5 else -1
            grade += step if 0 <= grade + step <= _BEST else -step
        grading.act({"do": "choose", "choice": grade, "number": grading.number})
        n_graded += 1
    return n_graded


def simulate_preferences(
    comparison: BlindComparison, truth: Qrels, *, error: float = 0.1, seed: int = 0
) -> int:
    """Prefer the side with the better photos further up, and take neither where they are equal.

    Args:
        comparison: The session.
        truth: query_id -> photo_id -> grade; what is missing is not relevant.
        error: Chance of a preference at random, 0 to 1.
        seed: Of the errors.

    Returns:
        How many queries were judged.
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
