"""The queries of a result by how well they did, worst first, alone or beside another system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from searchlab.errors import InputError, quote
from searchlab.evaluation.results import Result

ORDERS = ("worst", "best")
_SAME_TO = 9  # digits: scores that differ by less are in the order of their ids


@dataclass(frozen=True)
class QueryScore:
    """One query of a result.

    Attributes:
        query_id: Id of the query.
        lang: Its language.
        about: Its best judged photo.
        text: Its words; empty if they are not known.
        score: Score of the system, 0 to 1.
        other: Score of the system that it is compared with; None without one.
    """

    query_id: str
    lang: str
    about: str
    text: str
    score: float
    other: float | None = None

    @property
    def difference(self) -> float:
        """Sort key: how much more the system scores than the other one, or than 0."""
        return self.score - (self.other or 0.0)


def list_query_scores(
    result: Result,
    *,
    against: Result | None = None,
    metric: str | None = None,
    lang: str = "",
    contains: str = "",
    order: str = "worst",
    texts: Mapping[str, str] | None = None,
) -> list[QueryScore]:
    """Return the queries of a result in the order of their scores, equal ones in that of their ids.

    Args:
        result: The system.
        against: A system measured on the same queries; the order is then that of the differences,
            the worst loss first.
        metric: The metric; the headline metric if left out.
        lang: Only queries of this language, if it is given.
        contains: Only queries whose words contain this, in upper or lower case.
        order: `worst` or `best` first.
        texts: Query_id -> words.

    Raises:
        InputError: There is no such metric or order, or the other system has other queries.
    """
    metric = metric or result.headline
    for name, value, known in (
        ("metric", metric, result.scores.values),
        ("order", order, ORDERS),
    ):
        if value not in known:
            msg = f"{name} must be one of {', '.join(known)}, got {quote(value)}"
            raise InputError(msg)
    scores = result.scores
    if against is not None and against.scores.query_ids != scores.query_ids:
        msg = f"against must have the same queries, got {against.name} with others"
        raise InputError(msg)
    others = None if against is None else against.scores.values[metric]
    words = texts or {}
    listed = [
        QueryScore(
            query_id,
            scores.langs[place],
            scores.cluster_ids[place],
            words.get(query_id, ""),
            float(scores.values[metric][place]),
            None if others is None else float(others[place]),
        )
        for place, query_id in enumerate(scores.query_ids)
        if not lang or scores.langs[place] == lang
    ]
    sought = contains.strip().casefold()
    sign = 1 if order == "worst" else -1
    return sorted(
        (one for one in listed if sought in one.text.casefold()),
        key=lambda one: (sign * round(one.difference, _SAME_TO), one.query_id),
    )
