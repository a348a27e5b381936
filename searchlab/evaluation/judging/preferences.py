"""Blind A/B: two rankings side by side, the judge says which is better, and learns last which was.

Grades compare photos; a preference compares whole pages, with what grades do not see: variety,
order, near duplicates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.errors import ConflictError, InputError
from searchlab.evaluation.judging.journal import Item
from searchlab.evaluation.judging.notebook import NotebookSession
from searchlab.evaluation.judging.proportions import proportion_interval, sign_test
from searchlab.evaluation.judging.session import Pictures
from searchlab.evaluation.significance import Interval
from searchlab.search.queries import check_count

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.evaluation.metrics import Run

PREFERENCES: Mapping[int | str, str] = {
    "left": "left is better",
    "tie": "no difference",
    "right": "right is better",
}
MAX_DEPTH = 30


@dataclass(frozen=True)
class Outcome:
    """What a blind comparison found.

    Attributes:
        systems: The two names.
        wins: How often each was preferred.
        ties: How often neither.
        n_same: Queries that both answer alike; they were not shown and are not counted.
        n_left: How often the left side was preferred, whoever stood there.
        share: Of queries where the first was preferred, ties counted as half, with its 95 %
            interval.
        p_value: Of the sign test, ties left out.
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
    """A judge who compares two systems without knowing which stands where.

    Which side a system takes is drawn by the seed for each query, as often left as right. Queries
    that both answer alike are not shown.

    Example:
        >>> ab = BlindComparison(dataset, runs, "ann-ab.jsonl", judge="ann",
        ...                      pictures=pictures_of(library, small=True))  # doctest: +SKIP
    """

    what = "preferences"

    def __init__(
        self,
        dataset: Dataset,
        runs: Mapping[str, Run],
        journal: Path | str,
        *,
        judge: str,
        pictures: Pictures,
        depth: int = 6,
        seed: int = 0,
    ) -> None:
        """Draw the sides, and go on where the journal ends, or begin one.

        Args:
            dataset: The queries.
            runs: Two systems -> query_id -> photo_ids, best first.
            journal: The judge's file.
            judge: A name.
            pictures: Such as `pictures_of(library, small=True)`.
            depth: Photos on each side, 1 to 30.
            seed: Of order and sides.

        Raises:
            InputError: Not two runs, or they answer every query alike.
            MismatchError: The journal is of another comparison or another judge's.
        """
        check_count("depth", depth, MAX_DEPTH)
        if len(runs) != 2:
            msg = f"a comparison must be of two runs, got {len(runs)}"
            raise InputError(msg)
        (self._first, one), (self._second, other) = runs.items()
        self._queries = {query.query_id: query for query in dataset.queries}
        both = {
            i: (list(one.get(i, ()))[:depth], list(other.get(i, ()))[:depth]) for i in self._queries
        }
        order = sorted(
            (i for i, (a, b) in both.items() if a != b), key=lambda i: _digest(f"{seed}:{i}")
        )
        if not order:
            msg = f"two runs must differ, got the same first {depth} photos for every query"
            raise InputError(msg)
        self._n_same = len(both) - len(order)
        drawn = sorted(order, key=lambda i: _digest(f"{seed}:side:{i}"))
        self._turned = frozenset(drawn[: len(drawn) // 2])
        self._sides = {i: both[i][::-1] if i in self._turned else both[i] for i in order}
        shown = [(self._queries[i].text, self._queries[i].photo_id, self._sides[i]) for i in order]
        super().__init__(
            [(query_id,) for query_id in order],
            journal,
            pool_id=_digest(repr(shown))[:12],
            judge=judge,
            pictures=pictures,
        )

    @property
    def choices(self) -> Mapping[int | str, str]:
        """Sides."""
        return PREFERENCES

    def sides(self, query_id: str) -> tuple[list[str], list[str]]:
        """Return the photos on the left and on the right, best first; not which system it is."""
        left, right = self._sides[query_id]
        return left, right

    def scene(self, item: Item) -> dict[str, Any]:
        """Query and two columns of pictures."""
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
            early: Say so before all is judged. Looking at the score and then going on until it
                pleases makes the test worthless, so stop for good.

        Raises:
            ConflictError: Not all is judged or skipped.
            InputError: Nothing was judged.
        """
        if not (self.is_done or early):
            left = len(self.items) - self.n_done
            msg = f"a blind comparison must be finished first, got {left} left; or stop with early"
            raise ConflictError(msg)
        said = {item[0]: side for item, side in self.journal.choices.items()}
        if not said:
            msg = "a comparison must have a preference, got none; judge at least one query"
            raise InputError(msg)
        sides = [
            (side == "left") != (i in self._turned) for i, side in said.items() if side != "tie"
        ]
        wins, losses = sum(sides), len(sides) - sum(sides)
        ties = len(said) - len(sides)
        return Outcome(
            (self._first, self._second),
            (wins, losses),
            ties,
            self._n_same,
            sum(side == "left" for side in said.values()),
            proportion_interval(wins + ties / 2, len(said)),
            sign_test(wins, losses),
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
