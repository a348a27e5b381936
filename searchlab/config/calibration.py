"""Calibration: from the cosines of one model to `relevance_score`, for each kind of query.

The curve of a text query also depends on what its words are to its model; see `QueryWeights`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, quote

QueryKind: TypeAlias = Literal["text", "image", "both"]
"""What a query brings: words, a picture, or a picture steered by words."""


DIGITS = 6
"""Digits of a score as it is shown."""

_MOST_RANKED = 16.0  # log-odds of a likely photo that has all words of the query; more add nothing


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
        logits = self._shown(self.slope * np.asarray(cosines, dtype=np.float64) + self.intercept)
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
        return (self._ranked(math.log(score / (1 - score))) - self.intercept) / self.slope

    def _shown(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn the log-odds that photos are ranked by into those that are shown."""
        return logits

    def _ranked(self, logit: float) -> float:
        """Return the least log-odds in the ranking that are shown as these."""
        return logit


@dataclass(frozen=True)
class WrittenCurve(Curve):
    """The curve of a query whose words are written about some photos.

    Words raise a photo in the ranking by more than they raise its chance of being relevant: the
    title "Ladybird" holds a word of the query "a bird". And where photos of birds are titled
    so, a photo without the word is seldom of a bird. Three steps allow for that, and keep the
    order: `first` is subtracted from all log-odds; of what is then above even odds only the share
    `above_even` counts; and then `loss` is subtracted.

    Attributes:
        above_even: Share of the log-odds above even that counts, above 0 to 1.
        loss: Subtracted last, 0 or more; it grows with the photos that have all words of the query.
        first: Subtracted first, 0 or more; it grows with the share of the query that the texts of
            the library have.
    """

    above_even: float = 1.0
    loss: float = 0.0
    first: float = 0.0

    def _shown(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = logits - self.first
        most = self.above_even * _MOST_RANKED
        counted = np.minimum(np.where(logits > 0, self.above_even * logits, logits), most)
        return counted - self.loss

    def _ranked(self, logit: float) -> float:
        logit += self.loss
        if logit > self.above_even * _MOST_RANKED:
            return math.inf
        return self.first + (logit / self.above_even if logit > 0 else logit)


FITTED_TEXT_ALPHA = 1.7
"""The `text_alpha` that curves of steered queries are fitted at: the default of a query."""


def _picture_share(text_alpha: float) -> float:
    return 1 / math.hypot(1, text_alpha)


def _interpolate(one: Curve, other: Curve, share: float) -> Curve:
    return Curve(
        one.slope + share * (other.slope - one.slope),
        one.intercept + share * (other.intercept - one.intercept),
    )


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

    The same cosine is large for one query and small for another: "a bird" is near to birds alone,
    "a man with a hat" to half a library. A sentence has more words that must all be right. And even
    letters that form no word are near to some photo.

    Attributes:
        background: Log-odds for each unit of the cosine `QueryTraits.background`.
        familiarity: Log-odds for each unit of `QueryTraits.familiarity`.
        length: Log-odds for each unit of `QueryTraits.length`.
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
        above_even: Share of the log-odds above even that counts for a text query whose words are
            written about some photos, above 0 to 1; see `WrittenCurve`.
        written_share: Log-odds that such a query loses for each unit of ln(1 + n), 0 or more, where
            n of 1,000 photos are expected to have all of its words.
        written_reach: Log-odds that it loses first where the texts have all of its words, 0 or
            more; else in proportion to the square of the share of the query that they have.
    """

    text: Curve
    image: Curve
    both: Curve
    source: str
    query: QueryWeights | None = None
    above_even: float = 1.0
    written_share: float = 0.0
    written_reach: float = 0.0

    def __post_init__(self) -> None:
        for name in ("written_share", "written_reach"):
            value = finite_number(name, getattr(self, name))
            if value < 0:
                msg = f"{name} must be 0 or more, got {quote(getattr(self, name))}"
                raise InputError(msg)
            object.__setattr__(self, name, value)
        above_even = finite_number("above_even", self.above_even, positive=True)
        if above_even > 1:
            msg = f"above_even must be above 0 and at most 1, got {quote(self.above_even)}"
            raise InputError(msg)
        object.__setattr__(self, "above_even", above_even)

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
        is_written: bool = False,
        share: float = 0.0,
        reach: float = 0.0,
    ) -> Curve:
        """Return the curve of a query.

        The curve of `both` was fitted at the usual `text_alpha`. Towards 0 it approaches that of
        `image`, as the query does, and towards infinity that of `text`: in proportion to the
        picture's share of the mixed vector, 1 / sqrt(1 + text_alpha ** 2).

        Args:
            kind: What the query brings.
            text_alpha: How much the text counts beside the picture, above 0; for `both` alone.
            traits: Of the words, where their model tells them; left out, the curve is that of a
                text query whose traits add nothing.
            is_written: Whether words of a text query are written about some photos.
            share: Of the photos, 0 to 1, that are expected to have all of these words.
            reach: Share of the query, 0 to 1, that the texts have; see `WordMatches.reach`.
        """
        if kind == "image":
            return self.image
        intercept = self.text.intercept
        if self.query is not None and traits is not None:
            intercept += self.query.log_odds(traits)
        if kind == "text":
            if is_written and (self.above_even < 1 or self.written_share or self.written_reach):
                loss = self.written_share * math.log1p(1000 * share)
                first = self.written_reach * reach**2
                return WrittenCurve(self.text.slope, intercept, self.above_even, loss, first)
            changed = intercept != self.text.intercept
            return Curve(self.text.slope, intercept) if changed else self.text
        share, usual = _picture_share(text_alpha), _picture_share(FITTED_TEXT_ALPHA)
        if share >= usual:
            return _interpolate(self.image, self.both, (1 - share) / (1 - usual))
        text = Curve(self.text.slope, intercept)
        return _interpolate(self.both, text, (usual - share) / usual)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without those of the last four that change nothing."""
        values = asdict(self)
        plain = {"query": None, "above_even": 1.0, "written_share": 0.0, "written_reach": 0.0}
        return {name: v for name, v in values.items() if name not in plain or v != plain[name]}

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
            return cls(
                **curves,
                source=values["source"],
                query=query,
                above_even=values.get("above_even", 1.0),
                written_share=values.get("written_share", 0.0),
                written_reach=values.get("written_reach", 0.0),
            )
        except (KeyError, TypeError, AttributeError) as error:
            msg = f"a calibration must have text, image, both and source, got {quote(values)}"
            raise InputError(msg) from error


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


_PLAIN = Curve(slope=4.0, intercept=-1.0)
UNCALIBRATED = Calibration(text=_PLAIN, image=_PLAIN, both=_PLAIN, source="uncalibrated")
