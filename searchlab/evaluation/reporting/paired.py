"""Two results query by query: what one wins and loses against the other, and what that shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from searchlab.evaluation.reporting.pictures import Pictures
from searchlab.evaluation.results import Result
from searchlab.evaluation.significance import Interval
from searchlab.evaluation.significance.power import Power

SAME = 1e-9
"""Scores of a query that are as near as this are a tie."""


@dataclass(frozen=True)
class Change:
    """One query under both systems.

    Attributes:
        query_id: Which.
        lang: Its language.
        cluster_id: Its best judged photo.
        text: Its words, empty where they are not known.
        before: Score of the first system.
        after: Score of the second one.
    """

    query_id: str
    lang: str
    cluster_id: str
    text: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """After less before: above 0 is a win of the second system."""
        return self.after - self.before


@dataclass(frozen=True)
class Tally:
    """Queries of one language, or all, counted by how the second system did.

    Attributes:
        wins: Queries on which it scored more.
        ties: As much.
        losses: Less.
        difference: Of the means, with its 95 % interval.
        p_value: Of the paired permutation test; by language with Holm's correction over all.
    """

    wins: int
    ties: int
    losses: int
    difference: Interval
    p_value: float

    @property
    def n_queries(self) -> int:
        """Queries counted."""
        return self.wins + self.ties + self.losses


@dataclass(frozen=True, eq=False, repr=False)
class PairedResults:
    """The second of two results against the first.

    Attributes:
        a: The first.
        b: The second.
        metric: That they are compared by.
        whole: All queries; the difference is of macro averages over languages.
        languages: Each language.
        changes: Every query, the worst loss first, then the greatest win last.
        power: What these queries can show; None where both score the same on all of them.
        runs: query_id -> photo_ids of both, empty where they are not known.
        qrels: query_id -> photo_id -> grade, empty where they are not known.
        pictures: For the page; None for names alone.
    """

    a: Result
    b: Result
    metric: str
    whole: Tally
    languages: dict[str, Tally]
    changes: tuple[Change, ...]
    power: Power | None
    runs: tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]
    qrels: Mapping[str, Mapping[str, int]]
    pictures: Pictures | None = None

    @property
    def regressions(self) -> list[Change]:
        """Queries that the second system loses, worst first."""
        return [change for change in self.changes if change.difference < -SAME]

    @property
    def improvements(self) -> list[Change]:
        """Queries that it wins, best first."""
        return [change for change in reversed(self.changes) if change.difference > SAME]

    @property
    def names(self) -> tuple[str, str]:
        """Names of both, with a part of the config_id where they would be the same."""
        if self.a.name != self.b.name or self.a.config_id == self.b.config_id:
            return self.a.name, self.b.name
        before, after = (f"{one.name} ({one.config_id[:6]})" for one in (self.a, self.b))
        return before, after

    @property
    def setting(self) -> str:
        """What was asked, of which data, when."""
        dates = sorted({str(one.manifest["date"])[:10] for one in (self.a, self.b)})
        return (
            f"{self.a.benchmark} on {self.a.dataset}@{self.a.dataset_revision}, "
            f"{self.whole.n_queries:,} queries, measured {' and '.join(dates)}"
        )

    @property
    def verdict(self) -> str:
        """One sentence: better, worse, or not to be told apart."""
        difference = self.whole.difference
        before, after = self.names
        if self.whole.ties == self.whole.n_queries:
            return f"{after} and {before} score the same {self.metric} on every query"
        shown = f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
        if self.whole.p_value < 0.05:
            word = "better" if difference.mean > 0 else "worse"
            return f"{after} is {word} than {before}: {self.metric} {shown}"
        return f"{after} and {before} cannot be told apart: {self.metric} {shown}"
