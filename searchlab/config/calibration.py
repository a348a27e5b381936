"""Calibration: from the cosines of one model to `relevance_score`, for each kind of query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, quote

QueryKind: TypeAlias = Literal["text", "image", "both"]
"""What a query brings: words, a picture, or a picture steered by words."""


DIGITS = 6
"""Digits of a score as it is shown."""


def finite_number(name: str, value: float, *, positive: bool = False) -> float:
    """Return a number as a float.

    Raises:
        InputError: It is no number, not finite, or not above 0 where it must be.
    """
    # A float also where an int was given, so that equal configurations have equal JSON.
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and (number > 0 or not positive):
            return number
    above = " above 0" if positive else ""
    msg = f"{name} must be a finite number{above}, got {quote(value)}"
    raise InputError(msg)


@dataclass(frozen=True)
class Curve:
    """A logistic curve from cosine to relevance: 1 / (1 + exp(-(slope * cosine + intercept))).

    Attributes:
        slope: Steepness, above 0, so that the order of cosines is kept.
        intercept: Log-odds of relevance at cosine 0.
    """

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", finite_number("slope", self.slope, positive=True))
        object.__setattr__(self, "intercept", finite_number("intercept", self.intercept))

    def __call__(self, cosines: NDArray[np.floating]) -> NDArray[np.float64]:
        """Turn cosines into scores, elementwise, 0 to 1, never decreasing in the cosine."""
        logits = self.slope * np.asarray(cosines, dtype=np.float64) + self.intercept
        return np.asarray(0.5 * (1 + np.tanh(0.5 * logits)), dtype=np.float64)

    def relevance(self, cosines: NDArray[np.floating]) -> NDArray[np.float64]:
        """Turn cosines into scores as they are shown, rounded to `DIGITS` digits."""
        return np.asarray(np.round(self(cosines), DIGITS))

    def cosine(self, score: float) -> float:
        """Return the cosine that has a score, as exactly as floats go; may be infinite.

        Args:
            score: At most 0 is reached by every cosine, at least 1 by none.
        """
        if not 0 < score < 1:
            return -math.inf if score <= 0 else math.inf
        return (math.log(score / (1 - score)) - self.intercept) / self.slope


FITTED_TEXT_ALPHA = 1.7
"""The `text_alpha` that curves of steered queries are fitted at: the default of a query."""


def _picture_share(text_alpha: float) -> float:
    return 1 / math.hypot(1, text_alpha)


def _interpolate(one: Curve, other: Curve, share: float) -> Curve:
    return Curve(
        one.slope + share * (other.slope - one.slope),
        one.intercept + share * (other.intercept - one.intercept),
    )


@dataclass(frozen=True)
class Calibration:
    """How cosines of one model become `relevance_score`, for each kind of query.

    Attributes:
        text: Curve of text queries.
        image: Curve of image queries.
        both: Curve of image queries steered by text, at the usual `text_alpha`.
        source: The dataset and revision it was fitted on; `"uncalibrated"` for a model that nobody
            has judged, whose scores order results but are no probabilities.
    """

    text: Curve
    image: Curve
    both: Curve
    source: str

    def curve(self, kind: QueryKind, *, text_alpha: float = FITTED_TEXT_ALPHA) -> Curve:
        """Return the curve of a kind of query.

        The curve of `both` was fitted at the usual `text_alpha`. Towards 0 it approaches that of
        `image`, as the query does, and towards infinity that of `text`: in proportion to the
        picture's share of the mixed vector, 1 / sqrt(1 + text_alpha ** 2).

        Args:
            kind: What the query brings.
            text_alpha: How much the text counts beside the picture, above 0; for `both` alone.
        """
        if kind != "both":
            return self.text if kind == "text" else self.image
        share, usual = _picture_share(text_alpha), _picture_share(FITTED_TEXT_ALPHA)
        if share >= usual:
            return _interpolate(self.image, self.both, (1 - share) / (1 - usual))
        return _interpolate(self.both, self.text, (usual - share) / usual)

    @classmethod
    def from_dict(cls, values: Any) -> Calibration:
        """Rebuild a Calibration from plain values.

        Raises:
            InputError: A field is missing, unknown or out of range.
        """
        try:
            curves = {kind: Curve(**values[kind]) for kind in ("text", "image", "both")}
            return cls(**curves, source=values["source"])
        except (KeyError, TypeError) as error:
            msg = f"a calibration must have text, image, both and source, got {quote(values)}"
            raise InputError(msg) from error


_PLAIN = Curve(slope=4.0, intercept=-1.0)
UNCALIBRATED = Calibration(text=_PLAIN, image=_PLAIN, both=_PLAIN, source="uncalibrated")
