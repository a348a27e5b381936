"""Tolerances: how far a figure may be off when another processor computes it again.

Sums are rounded in another order by other instructions, so that cosines differ in their last bits.
Most figures are unmoved; where a count is made from cosines, one query in thousands may fall on the
other side of a threshold. Each study says which of its figures that moves, and by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Figures are recorded to six digits, so different rounding changes the last one by 1.
ROUNDING = 1.01e-6


@dataclass(frozen=True)
class Tolerance:
    """How far some figures may be off.

    Attributes:
        figures: Their place in the record, such as `points*.recall`; `*` stands for any text.
        absolute: Largest difference.
        factor: Largest ratio of the two, for ratios of times.
        why: What moves them, in words.
    """

    figures: str
    absolute: float = 0.0
    factor: float = 1.0
    why: str = ""

    def covers(self, where: str) -> bool:
        """Tell whether it is about the figure at a place in a record."""
        return fnmatchcase(where.replace("[", ".").replace("]", ""), self.figures)

    def allows(self, recorded: float, now: float) -> bool:
        """Tell whether two values of one figure are close enough."""
        if abs(recorded - now) <= self.absolute + 1e-9:
            return True
        both = sorted((recorded, now))
        return both[0] > 0 and both[1] <= self.factor * both[0]


RANKED_OTHERWISE = (
    Tolerance("metrics*", absolute=0.001, why="one query in a thousand ranked otherwise"),
    Tolerance("intervals*", absolute=0.002, why="one query in a thousand"),
)

CALIBRATED = (
    Tolerance("reliability*", absolute=1e-5, why="the last bits of a score, summed up"),
    Tolerance("diagrams*.n_pairs", factor=1.02, why="a pair on the edge of a bar"),
    Tolerance("diagrams*", absolute=0.002, why="a pair on the edge of a bar"),
    Tolerance("metrics.error*", absolute=1e-4, why="a photo on the edge of a threshold"),
    Tolerance("metrics.worst*", absolute=1e-4, why="the largest of these errors"),
    Tolerance("metrics.ece*", absolute=2e-4, why="a photo on the edge of a bar"),
    Tolerance("calibration.*", factor=1.0001, why="where a fit ends, in its fifth digit"),
    Tolerance("rows*.low", absolute=0.005, why="an interval's end is one of its samples"),
    Tolerance("rows*.high", absolute=0.005, why="an interval's end is one of its samples"),
    Tolerance("unanswerable*", absolute=0.001, why="two scores alike but for last bits"),
    Tolerance("rows*.n_shown", factor=1.02, why="a photo on the edge of a threshold"),
    Tolerance("rows*", absolute=0.001, why="a photo on the edge of a threshold"),
)
"""For calibration curves: photos on the edge of a bin, and sums of rounding errors."""


def is_close(where: str, recorded: float, now: float, tolerances: Sequence[Tolerance]) -> bool:
    """Tell whether a figure that was computed again counts as the same.

    Args:
        where: Its place in the record, such as `points[3].recall`.
        recorded: Its recorded value.
        now: Its value here.
        tolerances: Those of the study; a figure that none covers may be off by its rounding.
    """
    if abs(recorded - now) <= ROUNDING * max(1.0, abs(recorded)):
        return True
    return any(one.covers(where) and one.allows(recorded, now) for one in tolerances)
