"""From journals to judgments: the grades of several judges become qrels, and a dataset."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.judging.agreement import Grades
from searchlab.evaluation.judging.journal import Journal
from searchlab.evaluation.judging.pools import Pair, Pool
from searchlab.evaluation.judging.proportions import upper_bound_95

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.evaluation.metrics import Qrels


def read_grades(journals: Iterable[Journal | Path | str]) -> dict[str, dict[Pair, int]]:
    """Read the grades of judges; pairs that they skipped or did not reach are missing.

    Args:
        journals: Journals of one pool, one for each judge.

    Returns:
        judge -> (query_id, photo_id) -> grade.

    Raises:
        MismatchError: They are of different pools, of preferences, or two are of one judge.
        InputError: There is no journal.
    """
    opened = [each if isinstance(each, Journal) else Journal(each) for each in journals]
    kinds = {(journal.what, journal.pool_id) for journal in opened}
    judges = [journal.judge for journal in opened]
    if not opened:
        msg = "journals must be at least one, got none"
        raise InputError(msg)
    if kinds != {("grades", opened[0].pool_id)} or len(set(judges)) < len(judges):
        listed = ", ".join(f"{j.what} of {j.pool_id} by {j.judge}" for j in opened)
        msg = f"journals must hold grades of one pool, one file a judge, got {listed}"
        raise MismatchError(msg)
    return {
        journal.judge: {Pair(*item): int(grade) for item, grade in journal.choices.items()}
        for journal in opened
    }


def _median(grades: Sequence[int], _n_judges: int) -> int | None:
    return statistics.median_low(grades)


def _majority(grades: Sequence[int], _n_judges: int) -> int | None:
    grade, n = Counter(grades).most_common(1)[0]
    return grade if 2 * n > len(grades) else None


def _strict(grades: Sequence[int], n_judges: int) -> int | None:
    return grades[0] if len(grades) == n_judges and len(set(grades)) == 1 else None


RULES: dict[str, Callable[[Sequence[int], int], int | None]] = {
    "majority": _majority,
    "median": _median,
    "strict": _strict,
}


def merge_grades(grades: Grades, *, rule: str = "median") -> dict[str, dict[str, int]]:
    """Merge the grades of several judges into one per pair; `write_qrels` can write them.

    Args:
        grades: judge -> pair -> grade.
        rule: `median` (the lower of the two in the middle for an even number), `majority` (the
            grade of more than half of those who graded the pair, else unjudged), or `strict` (the
            grade of all judges, if all have given the same one, else unjudged).

    Returns:
        query_id -> photo_id -> grade, sorted; unjudged pairs are missing, never 0.

    Raises:
        InputError: The rule is unknown.
    """
    if rule not in RULES:
        msg = f"rule must be one of {', '.join(RULES)}, got {rule!r}"
        raise InputError(msg)
    grades_of: dict[Pair, list[int]] = {}
    for judged in grades.values():
        for pair, grade in judged.items():
            grades_of.setdefault(Pair(*pair), []).append(grade)
    qrels: dict[str, dict[str, int]] = {}
    for pair in sorted(grades_of):
        merged = RULES[rule](grades_of[pair], len(grades))
        if merged is not None:
            qrels.setdefault(pair.query_id, {})[pair.photo_id] = merged
    return qrels


def build_judged_dataset(
    dataset: Dataset, qrels: Qrels, *, name: str = "", least: int = 1
) -> Dataset:
    """Make a dataset with new judgments in place of its own.

    Queries without a photo of grade `least` or above are left out, since no system could answer
    them; `n_dropped` of the new dataset counts them.

    Args:
        dataset: Photos and queries.
        qrels: Judgments, as `merge_grades` returns them.
        name: Name of the new dataset; that of the old one with `-judged` if left out.
        least: Least grade that the metrics count, such as 2 for `recall@10/l2`; at least 1.

    Raises:
        InputError: A query or photo of the judgments is unknown, or no query is left.
    """
    answerable = {
        query_id: grades
        for query_id, grades in qrels.items()
        if max(grades.values(), default=0) >= max(1, least)
    }
    queries = [query for query in dataset.queries if query.query_id in answerable]
    judged = dataset.derive(name or f"{dataset.name}-judged", queries, answerable)
    return replace(judged, n_dropped=len(qrels) - len(answerable))


@dataclass(frozen=True)
class Missed:
    """An estimate, from photos drawn at random, of the relevant photos that the pool missed.

    Attributes:
        n_drawn: Number of graded photos that no system ranked.
        n_relevant: Number of them that are relevant.
        most: Upper end of the one-sided 95 % interval of their share, 0 to 1.
    """

    n_drawn: int
    n_relevant: int
    most: float

    def __str__(self) -> str:
        return (
            f"{self.n_relevant} of {self.n_drawn} photos drawn at random are relevant; of all that "
            f"no system ranked, at most {100 * self.most:.1f} % are, with 95 % confidence"
        )


def missed(pool: Pool, qrels: Qrels) -> Missed:
    """Estimate the share of relevant photos among those that no system has ranked.

    Example:
        `print(missed(pool, merge_grades(grades)))`
    """
    grades = [qrels.get(pair.query_id, {}).get(pair.photo_id) for pair in pool.drawn]
    graded = [grade for grade in grades if grade is not None]
    n_relevant = sum(grade >= 1 for grade in graded)
    return Missed(len(graded), n_relevant, upper_bound_95(n_relevant, len(graded)))
