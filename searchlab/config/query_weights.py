"""QueryWeights: what the words of a query say of the odds that a photo answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from searchlab.config.numbers import finite_number
from searchlab.errors import InputError, quote


class QueryTraits(NamedTuple):
    """What a score depends on beside the cosine.

    Attributes:
        background: Cosine that about one in a hundred photos at large has to the query.
        familiarity: How well the model knows the words, at most 0; see `TextReading`.
        length: Natural logarithm of how many pieces the text has for the model, 0 or more.
    """

    background: float
    familiarity: float
    length: float


@dataclass(frozen=True)
class QueryWeights:
    """Weights of a text query's traits in the log-odds of relevance.

    A cosine that is large for one query is small for another: "a bird" is near to birds alone,
    "a man with a hat" to half a library. A sentence says more that has to be right than a word.
    Letters that make no word are near to something too.

    Attributes:
        background: For each unit of the cosine.
        familiarity: For each unit of log probability a letter.
        length: For each unit of the logarithm.
        at_large: Digest of the photos at large that the weights were fitted with.
    """

    background: float
    familiarity: float
    length: float
    at_large: str

    def __post_init__(self) -> None:
        for name in QueryTraits._fields:
            object.__setattr__(self, name, finite_number(name, getattr(self, name)))
        if not isinstance(self.at_large, str):
            msg = f"at_large must be a digest, got {quote(self.at_large)}"
            raise InputError(msg)

    def log_odds(self, traits: QueryTraits) -> float:
        """Return what the traits of a query add to the intercept of its curve."""
        return (
            self.background * traits.background
            + self.familiarity * traits.familiarity
            + self.length * traits.length
        )

    @classmethod
    def from_dict(cls, values: Any) -> QueryWeights:
        """Rebuild weights from plain values.

        Raises:
            InputError: A field is missing, unknown or out of range.
        """
        try:
            return cls(**values)
        except TypeError as error:
            names = "background, familiarity, length and at_large"
            msg = f"weights of a query must have {names}, got {quote(values)}"
            raise InputError(msg) from error
