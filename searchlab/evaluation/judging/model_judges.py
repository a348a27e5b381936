"""Models as judges: their grades are published only where they agree with those of people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, runtime_checkable

from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.datasets import LabelledQuery
from searchlab.evaluation.judging.agreement import Grades, JudgeAgreement, agreement
from searchlab.evaluation.judging.grading import GRADES
from searchlab.evaluation.judging.journal import open_journal
from searchlab.evaluation.judging.merge import merge_grades
from searchlab.evaluation.judging.pools import Pair, Pool
from searchlab.evaluation.judging.session import Picture, Pictures

TENTATIVE = 0.667
"""Krippendorff's alpha from which tentative conclusions may be drawn (Content Analysis, 2004)."""
LEAST_PAIRS = 50
LEAST_QUERIES = 10  # that are resampled: the interval of fewer is too narrow


@runtime_checkable
class Judge(Protocol):
    """Grades photos for queries: a model, here or behind an API.

    Attributes:
        name: Name of the judge, with the version of the model: another one is another judge.
    """

    name: str

    def grade(self, query: LabelledQuery, picture: Picture) -> int | None:
        """Grade a photo for a query from 0 (not relevant) to 3 (perfect); None if it cannot say."""
        ...


def judge_by_model(
    judge: Judge,
    pool: Pool,
    journal: Path | str,
    *,
    pictures: Pictures,
    people: Grades,
    least_alpha: float = TENTATIVE,
    least_pairs: int = LEAST_PAIRS,
    least_queries: int = LEAST_QUERIES,
    advance: Callable[[int], object] = lambda _number: None,
) -> JudgeAgreement:
    """Have a model grade a pool, and write its journal if it agrees with people; else nothing.

    Agreement is counted between the model and the median of the people, over the pairs of the pool
    that both have graded. The lower end of its interval over queries counts, so that few pairs do
    not pass by luck, nor few queries. What people have graded should be drawn at random from the
    pool: where only easy photos were graded, agreement on those is all that is shown.

    Args:
        judge: The model.
        pool: What it grades.
        journal: File for its grades, which must not be there yet.
        pictures: Source of pictures, such as `pictures_of(library)`.
        people: Judge -> pair -> grade, as `read_grades` returns them.
        least_alpha: Least lower end of the 95 % interval of Krippendorff's alpha.
        least_pairs: Least number of pairs in common.
        least_queries: Least number of queries that these are of.
        advance: Called with 1 for each pair.

    Returns:
        The agreement that was found.

    Raises:
        InputError: A grade is none from 0 to 3, too few pairs were graded by people, or the file is
            there.
        MismatchError: The model does not agree with people as far as it must.
    """
    path = Path(journal)
    merged = {
        Pair(query_id, photo): grade
        for query_id, grades in merge_grades(people).items()
        for photo, grade in grades.items()
    }
    common = merged.keys() & set(pool.pairs)
    if path.exists():
        msg = f"a model's journal must be a new file, got {path}, which exists; name another"
        raise InputError(msg)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"a model's journal must lie in a folder that can be written, got {path}: {error}"
        raise InputError(msg) from error
    n_queries = len({pair.query_id for pair in common})
    if len(common) < least_pairs or n_queries < least_queries:
        msg = (
            f"people must have graded {least_pairs} pairs of {least_queries} queries of the pool "
            f"or more, got {len(common)} of {n_queries}; grade more, drawn at random"
        )
        raise InputError(msg)
    graded = {}
    for pair in pool.pairs:
        grade = judge.grade(pool.queries[pair.query_id], pictures(pair.photo_id))
        if grade is not None and (isinstance(grade, bool) or grade not in GRADES):
            msg = f"{judge.name} must grade from 0 to {max(map(int, GRADES))}, got {grade!r}"
            raise InputError(msg)
        if grade is not None:
            graded[pair] = int(grade)
        advance(1)
    found = agreement(
        {
            "people": {pair: merged[pair] for pair in sorted(common)},
            judge.name: {pair: graded[pair] for pair in sorted(common) if pair in graded},
        }
    )
    if not found.alpha.low >= least_alpha or found.n_pairs < least_pairs:  # NaN is not enough
        msg = (
            f"{judge.name} must agree with people to an alpha of {least_alpha:g} or more, with its "
            f"interval, on {least_pairs} pairs or more, got {found.alpha} on {found.n_pairs}; "
            "nothing was written"
        )
        raise MismatchError(msg)
    # Written aside, so that a run that is broken off leaves no journal of a part.
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}") as aside:
        written = open_journal(
            Path(aside) / path.name, what="grades", pool_id=pool.pool_id, judge=judge.name
        )
        for pair in pool.pairs:
            written.record(pair, graded.get(pair))
        written.path.replace(path)
    return found
