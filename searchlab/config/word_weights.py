"""WordWeights: what words that are written about a photo count beside what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from searchlab.config.calibration import finite_number
from searchlab.errors import InputError, quote

_MOST = 400  # steps of gains are counted in 16 bits


@dataclass(frozen=True)
class WordWeights:
    """What a photo gains in log-odds of relevance by words of the query.

    A photo gains `c ** sharpness * (coverage + precision * p)`, where c is the share of the query
    that is written about it and p the share of its title or description that is words of the query,
    both 0 to 1. Without such words it gains and loses nothing. A photo whose title, description or
    file name is just the query gains so much that it comes before all others.

    Attributes:
        coverage: 0 to 400.
        precision: 0 to 400.
        sharpness: 0 to 400; above 1, all words of a query together count more than their parts.
    """

    coverage: float
    precision: float
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        for name in ("coverage", "precision", "sharpness"):
            value = finite_number(name, getattr(self, name))
            if not 0 <= value <= _MOST:
                msg = f"{name} must be from 0 to {_MOST}, got {quote(value)}"
                raise InputError(msg)
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, values: Any) -> WordWeights:
        """Rebuild weights from plain values.

        Raises:
            InputError: A field is missing, unknown or out of range.
        """
        try:
            return cls(**values)
        except TypeError as error:
            msg = f"weights of words must be coverage, precision and sharpness, got {quote(values)}"
            raise InputError(msg) from error


USUAL_WORDS = WordWeights(coverage=12.0, precision=0.0, sharpness=2.0)
"""Of new libraries: the least of those that rank best over captions, short texts and names, with
texts on all photos and on half of them (`benchmarks/words/bench_word_weights.py`)."""
