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
    """Read what judges have graded; what they skipped or did not reach is missing.

    Args:
        journals: Of one pool, one a judge.

    Returns:
        judge -> (query_id, photo_id) -> grade.

    Raises:
        MismatchError: They are of different pools, of preferences, or a judge comes twice.
        InputError: There is none.
    """
    read = [one if isinstance(one, Journal) else Journal(one) for one in journals]
    kinds = {(journal.what, journal.pool_id) for journal in read}
    judges = [journal.judge for journal in read]
    if not read:
        msg = "journals must be at least one, got none"
        raise InputError(msg)
    if len(kinds) > 1 or kinds != {("grades", read[0].pool_id)} or len(set(judges)) < len(judges):
        listed = ", ".join(f"{j.what} of {j.pool_id} by {j.judge}" for j in read)
        msg = f"journals must hold grades of one pool, one file a judge, got {listed}"
        raise MismatchError(msg)
    return {
        journal.judge: {Pair(*item): int(grade) for item, grade in journal.choices.items()}
        for journal in read
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
    """Make one grade out of several; `write_qrels` writes the outcome.

    Args:
        grades: judge -> pair -> grade.
        rule: `median` (of an even number the lower of the two in the middle), `majority` (what more
            than half of those who graded it say, else unjudged), or `strict` (what all judges say,
            if all have graded it, else unjudged).

    Returns:
        query_id -> photo_id -> grade, sorted; unjudged pairs are missing, never 0.

    Raises:
        InputError: An unknown rule.
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
    """Put new judgments in the place of a dataset's own.

    Queries without a photo of grade `least` or above are left out, for no system could answer them;
    `n_dropped` of the new dataset counts them.

    Args:
        dataset: Photos and queries.
        qrels: As `merge_grades` gives them.
        name: Of the new dataset; that of the old one with `-judged` if left out.
        least: The grade that the metrics count from, such as 2 for `recall@10/l2`; 1 or above.

    Raises:
        InputError: Judgments of unknown queries or photos, or no query is left.
    """
    dry = {
        i for i, grades in qrels.items() if all(grade < max(1, least) for grade in grades.values())
    }
    answerable = {query_id: grades for query_id, grades in qrels.items() if query_id not in dry}
    queries = [query for query in dataset.queries if query.query_id in answerable]
    made = dataset.derive(name or f"{dataset.name}-judged", queries, answerable)
    return replace(made, n_dropped=len(dry))


@dataclass(frozen=True)
class Missed:
    """What photos drawn at random tell of the pool.

    Attributes:
        n_drawn: Photos that no system ranked, and that were graded.
        n_relevant: Those of them that are relevant.
        most: Upper end of the 95 % interval of the share, 0 to 1.
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
    """Estimate how many relevant photos no system has found, from those drawn at random.

    Example:
        `print(missed(pool, merge_grades(grades)))`
    """
    grades = [qrels.get(pair.query_id, {}).get(pair.photo_id) for pair in pool.drawn]
    graded = [grade for grade in grades if grade is not None]
    n_relevant = sum(grade >= 1 for grade in graded)
    return Missed(len(graded), n_relevant, upper_bound_95(n_relevant, len(graded)))
