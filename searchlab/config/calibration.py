"""Calibration: from the cosines of one model to `relevance_score`, for each kind of query."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.config.numbers import finite_number
from searchlab.config.query_weights import QueryTraits, QueryWeights
from searchlab.errors import InputError, quote

QueryKind: TypeAlias = Literal["text", "image", "both"]
"""What a query brings: words, a picture, or a picture steered by words."""


DIGITS = 6
"""Digits of a score as it is shown."""


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
        query: What a text query itself adds to the log-odds; None where every text query has the
            same curve.
    """

    text: Curve
    image: Curve
    both: Curve
    source: str
    query: QueryWeights | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether scores are probabilities, and not only an order."""
        return self.source != UNCALIBRATED.source

    def curve(
        self,
        kind: QueryKind,
        *,
        text_alpha: float = FITTED_TEXT_ALPHA,
        traits: QueryTraits | None = None,
    ) -> Curve:
        """Return the curve of a query.

        The curve of `both` was fitted at the usual `text_alpha`. Towards 0 it approaches that of
        `image`, as the query does, and towards infinity that of `text`: in proportion to the
        picture's share of the mixed vector, 1 / sqrt(1 + text_alpha ** 2).

        Args:
            kind: What the query brings.
            text_alpha: How much the text counts beside the picture, above 0; for `both` alone.
            traits: Of a text query, where its model tells them; left out, the curve is that of a
                query whose traits add nothing.
        """
        if kind == "image":
            return self.image
        if kind == "text":
            if self.query is None or traits is None:
                return self.text
            shift = self.query.log_odds(traits)
            return replace(self.text, intercept=self.text.intercept + shift)
        share, usual = _picture_share(text_alpha), _picture_share(FITTED_TEXT_ALPHA)
        if share >= usual:
            return _interpolate(self.image, self.both, (1 - share) / (1 - usual))
        return _interpolate(self.both, self.text, (usual - share) / usual)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without `query` where there is none."""
        values = asdict(self)
        return values if self.query is not None else {k: values[k] for k in values if k != "query"}

    @classmethod
    def from_dict(cls, values: Any) -> Calibration:
        """Rebuild a Calibration from plain values.

        Raises:
            InputError: A field is missing, unknown or out of range.
        """
        try:
            curves = {kind: Curve(**values[kind]) for kind in ("text", "image", "both")}
            weights = values.get("query")
            query = None if weights is None else QueryWeights.from_dict(weights)
            return cls(**curves, source=values["source"], query=query)
        except (KeyError, TypeError, AttributeError) as error:
            msg = f"a calibration must have text, image, both and source, got {quote(values)}"
            raise InputError(msg) from error


_PLAIN = Curve(slope=4.0, intercept=-1.0)
UNCALIBRATED = Calibration(text=_PLAIN, image=_PLAIN, both=_PLAIN, source="uncalibrated")
