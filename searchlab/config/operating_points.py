"""Operating points: what was measured of an index on one library and machine.

`searchlab tune` measures them, a `Config` carries them, and the planner goes by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from searchlab.errors import InputError, quote

MAX_EFFORT = 100_000


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """What one effort finds for one kind of query, and from how many photos on it pays.

    Attributes:
        kind: `"image"` or `"text"`.
        effort: The `ef` of a graph, or the recall target of a clustered index.
        recalls: Share of the true nearest photos that it found, 0 to 1, at each of
            `OperatingPoints.shares`: the least over filters that keep photos at random and over
            those that keep whole regions.
        exact_below: Where a filter keeps at most this many photos, scoring all of them costs no
            more than a search.
    """

    kind: str
    effort: float
    recalls: tuple[float, ...]
    exact_below: int

    def __post_init__(self) -> None:
        if self.kind not in ("image", "text"):
            msg = f"kind must be image or text, got {quote(self.kind)}"
            raise InputError(msg)
        object.__setattr__(self, "recalls", _shares("recalls", self.recalls))
        _check_count("exact_below", self.exact_below)
        if not _is_number(self.effort) or not 0 < self.effort <= MAX_EFFORT:
            limits = f"above 0 and at most {MAX_EFFORT}"
            msg = f"effort must be a number {limits}, got {quote(self.effort)}"
            raise InputError(msg)
        object.__setattr__(self, "effort", float(self.effort))


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The effort that a plan takes, and what it may be expected to find.

    Attributes:
        effort: The `ef` of a graph, or the recall target of a clustered index.
        recall: Share of the true nearest photos, 0 to 1.
        exact_below: Where a filter keeps at most this many photos, scoring all of them costs no
            more than a search.
        basis: What was measured, in words.
    """

    effort: float
    recall: float
    exact_below: int
    basis: str


@dataclass(frozen=True, kw_only=True)
class OperatingPoints:
    """What was measured of one index.

    Attributes:
        index_id: `Config.index_id` of what was measured.
        n_photos: Photos in the library at that time.
        k: Neighbours searched for; the recalls are shares of them.
        n_queries: Queries of each kind.
        shares: Shares of photos that the filters let through, from 1 downwards.
        reaches: Operating points of each kind of query, the least effort first.
    """

    index_id: str
    n_photos: int
    k: int
    n_queries: int
    shares: tuple[float, ...]
    reaches: tuple[OperatingPoint, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", _shares("shares", self.shares))
        object.__setattr__(self, "reaches", tuple(self.reaches))
        for name in ("n_photos", "k", "n_queries"):
            _check_count(name, getattr(self, name))
        if not isinstance(self.index_id, str):
            msg = f"index_id must be a string, got {quote(self.index_id)}"
            raise InputError(msg)
        falling = all(a > b for a, b in zip(self.shares, self.shares[1:], strict=False))
        if self.shares[:1] != (1.0,) or not falling:
            msg = f"shares must fall from 1, got {quote(self.shares)}"
            raise InputError(msg)
        if any(len(point.recalls) != len(self.shares) for point in self.reaches):
            msg = f"recalls must be one for each of the {len(self.shares)} shares of a tuning"
            raise InputError(msg)

    def expected(self, kind: str, share: float, *, least: float) -> Expected | None:
        """Say which effort to take: the least that is expected to reach a recall.

        Args:
            kind: Kind of the query; for `both`, the worse of image and text queries counts.
            share: Share of photos that its filter lets through, 0 to 1.
            least: The recall to reach, 0 to 1.

        Returns:
            The least effort that reaches it, or where none does the one that comes nearest; None
            where nothing was measured for such queries.
        """
        points = self._of(kind)
        if not points or share < self.shares[-1]:
            return None
        # The two measured shares around this one.
        high = max(place for place, measured in enumerate(self.shares) if measured >= share)
        low = high if self.shares[high] == share else high + 1
        expected = [min(point.recalls[high], point.recalls[low]) for point in points]
        enough = [place for place, recall in enumerate(expected) if recall >= least]
        best = enough[0] if enough else expected.index(max(expected))
        basis = (
            f"measured on {self.n_photos:,} photos with {self.n_queries} "
            f"{'image and text' if kind == 'both' else kind} queries "
            f"{_band(self.shares[low], self.shares[high])}"
        )
        chosen = points[best]
        return Expected(
            effort=chosen.effort, recall=expected[best], exact_below=chosen.exact_below, basis=basis
        )

    def _of(self, kind: str) -> list[OperatingPoint]:
        if kind != "both":
            return [point for point in self.reaches if point.kind == kind]
        texts = {point.effort: point for point in self._of("text")}
        return [
            replace(
                image,
                recalls=tuple(map(min, image.recalls, texts[image.effort].recalls)),
                exact_below=max(image.exact_below, texts[image.effort].exact_below),
            )
            for image in self._of("image")
            if image.effort in texts
        ]

    @classmethod
    def from_dict(cls, values: Any) -> OperatingPoints:
        """Rebuild operating points from plain values.

        Raises:
            InputError: A field is missing, unknown or out of range.
        """
        try:
            plain: Mapping[str, Any] = dict(values)
            points = tuple(OperatingPoint(**point) for point in plain["reaches"])
            return cls(**{**plain, "reaches": points})
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            names = ", ".join(field.name for field in fields(cls))
            msg = f"a tuning must have {names}, got {quote(values)}"
            raise InputError(msg) from error


def _band(low: float, high: float) -> str:
    if low == high == 1:
        return "without a filter"
    ends = [f"{100 * share:.3g}" for share in (low, high)]
    return f"under filters that keep {' to '.join(dict.fromkeys(ends))} %"


def _shares(name: str, values: Sequence[float]) -> tuple[float, ...]:
    # Floats also where ints were given, so that equal tunings have equal JSON.
    if not isinstance(values, list | tuple) or not all(
        _is_number(value) and 0 <= value <= 1 for value in values
    ):
        msg = f"{name} must be numbers from 0 to 1, got {quote(values)}"
        raise InputError(msg)
    return tuple(map(float, values))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        msg = f"{name} must be an integer of 0 or more, got {quote(value)}"
        raise InputError(msg)
