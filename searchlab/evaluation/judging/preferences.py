"""Blind A/B: the judge compares two rankings side by side, and learns at the end which was which.

Grades rate single photos; a preference compares whole pages, with properties that grades do not
show: variety, order, near duplicates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from searchlab.errors import ConflictError, InputError
from searchlab.evaluation.judging.journal import Item
from searchlab.evaluation.judging.notebook import NotebookSession
from searchlab.evaluation.judging.proportions import proportion_interval, sign_test
from searchlab.evaluation.judging.session import Pictures
from searchlab.evaluation.significance import Interval
from searchlab.search.queries import check_count

if TYPE_CHECKING:
    from searchlab.evaluation.datasets.labelled import LabelledQuery

RankedIds: TypeAlias = Mapping[str, Sequence[str]]
"""query_id -> photo_ids, best first."""


class HasQueries(Protocol):
    """Whatever has queries, such as a data set."""

    @property
    def queries(self) -> Sequence[LabelledQuery]:
        """The queries."""


PREFERENCES: Mapping[int | str, str] = {
    "left": "left is better",
    "tie": "no difference",
    "right": "right is better",
}
MAX_DEPTH = 30


@dataclass(frozen=True)
class Outcome:
    """The outcome of a blind comparison.

    Attributes:
        systems: Names of the two systems.
        wins: How often each was preferred.
        ties: How often neither was preferred.
        n_same: Number of queries with equal rankings, which were not shown and do not count.
        n_left: How often the left side was preferred, whichever system was there.
        share: Share of queries where the first system was preferred, ties counted as half, with its
            95 % interval.
        p_value: P-value of the sign test, without ties.
    """

    systems: tuple[str, str]
    wins: tuple[int, int]
    ties: int
    n_same: int
    n_left: int
    share: Interval
    p_value: float

    def __str__(self) -> str:
        first, second = self.systems
        verdict = "a difference" if self.p_value < 0.05 else "no difference that this many can show"
        return (
            f"{first} preferred {self.wins[0]} times, {second} {self.wins[1]}, neither "
            f"{self.ties}; {self.n_same} queries alike\nshare of {first}: {self.share}, sign test "
            f"p = {self.p_value:.3f}: {verdict}"
        )


class BlindComparison(NotebookSession):
    """A session in which a judge compares two systems without knowing which is on which side.

    The sides are drawn at random for each query, as often left as right. Queries with equal
    rankings are not shown.

    Example:
        >>> ab = BlindComparison(dataset, runs, "ann-ab.jsonl", judge="ann",
        ...                      pictures=pictures_of(library, small=True))  # doctest: +SKIP
    """

    what = "preferences"

    def __init__(
        self,
        dataset: HasQueries,
        runs: Mapping[str, RankedIds],
        journal: Path | str,
        *,
        judge: str,
        pictures: Pictures,
        depth: int = 6,
        seed: int = 0,
    ) -> None:
        """Draw the sides, and continue a journal, or begin one.

        Args:
            dataset: The queries.
            runs: Two systems -> query_id -> photo_ids, best first.
            journal: The judge's file.
            judge: Name of the judge.
            pictures: Source of pictures, such as `pictures_of(library, small=True)`.
            depth: Number of photos on each side, 1 to 30.
            seed: Seed of order and sides.

        Raises:
            InputError: There are not two runs, or their rankings are equal for every query.
            MismatchError: The journal is of another comparison, or another judge's.
        """
        drawn = _draw(dataset, runs, depth=depth, seed=seed)
        self._first, self._second = runs
        self._queries, self._sides = drawn.queries, drawn.sides
        self._swapped, self._n_same = drawn.swapped, drawn.n_same
        order = list(drawn.sides)
        scenes = [(self._queries[i].text, self._queries[i].photo_id, self._sides[i]) for i in order]
        super().__init__(
            [(query_id,) for query_id in order],
            journal,
            pool_id=_digest(repr(scenes))[:12],
            judge=judge,
            pictures=pictures,
        )

    @staticmethod
    def check(dataset: HasQueries, runs: Mapping[str, RankedIds], *, depth: int, seed: int) -> None:
        """Check that a comparison can be made of two runs.

        Raises:
            InputError: There are not two runs, or their rankings are equal for every query.
        """
        _draw(dataset, runs, depth=depth, seed=seed)

    @property
    def choices(self) -> Mapping[int | str, str]:
        """Preferences with their names."""
        return PREFERENCES

    def sides(self, query_id: str) -> tuple[list[str], list[str]]:
        """Return the photos on the left and on the right, best first, without names of systems."""
        left, right = self._sides[query_id]
        return left, right

    def scene(self, item: Item) -> dict[str, Any]:
        """Return what is shown for a query: its words and two columns of pictures."""
        (query_id,) = item
        query = self._queries[query_id]
        return {
            "query": query.text or "",
            "lang": query.lang,
            "place": "",
            "asked": self.picture(query.photo_id) if query.photo_id else b"",
            "sides": [[self.picture(p) for p in photos] for photos in self.sides(query_id)],
        }

    def outcome(self, *, early: bool = False) -> Outcome:
        """Say which system was preferred.

        Args:
            early: Whether to end before all queries are judged. Stop judging then: going on until
                the score pleases would make the test worthless.

        Raises:
            ConflictError: Some queries are neither judged nor skipped, and `early` is not set.
            InputError: No query was judged.
        """
        if not (self.is_done or early):
            left = len(self.items) - self.n_done
            msg = f"a blind comparison must be finished first, got {left} left; or stop with early"
            raise ConflictError(msg)
        side_of = {item[0]: side for item, side in self.journal.choices.items()}
        if not side_of:
            msg = "a comparison must have a preference, got none; judge at least one query"
            raise InputError(msg)
        first_wins = [
            (side == "left") != (i in self._swapped) for i, side in side_of.items() if side != "tie"
        ]
        wins, losses = sum(first_wins), len(first_wins) - sum(first_wins)
        ties = len(side_of) - len(first_wins)
        return Outcome(
            (self._first, self._second),
            (wins, losses),
            ties,
            self._n_same,
            sum(side == "left" for side in side_of.values()),
            proportion_interval(wins + ties / 2, len(side_of)),
            sign_test(wins, losses),
        )


class _Drawn(NamedTuple):
    """What is compared: the queries whose rankings differ, in the order shown, and their sides."""

    queries: dict[str, LabelledQuery]
    sides: dict[str, tuple[list[str], list[str]]]
    swapped: frozenset[str]
    n_same: int


def _draw(dataset: HasQueries, runs: Mapping[str, RankedIds], *, depth: int, seed: int) -> _Drawn:
    check_count("depth", depth, MAX_DEPTH)
    if len(runs) != 2:
        msg = f"a comparison must be of two runs, got {len(runs)}"
        raise InputError(msg)
    one, other = runs.values()
    queries = {query.query_id: query for query in dataset.queries}
    both = {i: (list(one.get(i, ()))[:depth], list(other.get(i, ()))[:depth]) for i in queries}
    order = sorted(
        (i for i, (a, b) in both.items() if a != b), key=lambda i: _digest(f"{seed}:{i}")
    )
    if not order:
        msg = f"two runs must differ, got the same first {depth} photos for every query"
        raise InputError(msg)
    by_hash = sorted(order, key=lambda i: _digest(f"{seed}:side:{i}"))
    swapped = frozenset(by_hash[: len(by_hash) // 2])
    sides = {i: both[i][::-1] if i in swapped else both[i] for i in order}
    return _Drawn(queries, sides, swapped, len(both) - len(order))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
