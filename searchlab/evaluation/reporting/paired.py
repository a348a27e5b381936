"""Two results query by query: wins and losses of one against the other, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from searchlab.evaluation.reporting.pictures import Pictures
from searchlab.evaluation.results import Result
from searchlab.evaluation.significance import Interval
from searchlab.evaluation.significance.power import Power

SAME = 1e-9
"""Scores of a query that differ by no more than this are a tie."""


@dataclass(frozen=True)
class Change:
    """One query under both systems.

    Attributes:
        query_id: Id of the query.
        lang: Its language.
        cluster_id: Its best judged photo.
        text: Its words; empty if they are not known.
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
        """`after` minus `before`: above 0 is a win of the second system."""
        return self.after - self.before


@dataclass(frozen=True)
class Tally:
    """Queries of one language, or all, counted by how the second system did.

    Attributes:
        wins: Number of queries on which it scored higher.
        ties: Number of queries with equal scores.
        losses: Number of queries on which it scored lower.
        difference: Difference of the means, with its 95 % interval.
        p_value: P-value of the paired permutation test; for a language, with Holm's correction
            over all languages.
    """

    wins: int
    ties: int
    losses: int
    difference: Interval
    p_value: float

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.wins + self.ties + self.losses


@dataclass(frozen=True, eq=False, repr=False)
class PairedResults:
    """The second of two results compared with the first.

    Attributes:
        a: The first result.
        b: The second result.
        metric: Metric that they are compared by.
        whole: Counts of all queries; the difference is that of macro averages over languages.
        languages: Counts of each language.
        changes: Every query, from the worst loss to the greatest win.
        power: What these queries can show; None if both score the same on all of them.
        runs: query_id -> photo_ids of both systems; empty if they are not known.
        qrels: query_id -> photo_id -> grade; empty if they are not known.
        pictures: Source of pictures for the page; None for names alone.
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
        """Queries that the second system wins, best first."""
        return [change for change in reversed(self.changes) if change.difference > SAME]

    @property
    def names(self) -> tuple[str, str]:
        """Names of both, with a part of the config_id if they would be the same."""
        if self.a.name != self.b.name or self.a.config_id == self.b.config_id:
            return self.a.name, self.b.name
        before, after = (f"{one.name} ({one.config_id[:6]})" for one in (self.a, self.b))
        return before, after

    @property
    def setting(self) -> str:
        """Benchmark, dataset, number of queries and dates, in words."""
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
