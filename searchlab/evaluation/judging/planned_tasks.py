"""Judging tasks of the photos that tell most, and what follows from them.

The plan lies in the task's own file: rankings, queries and seed, from which the same photos are
drawn again to be weighed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from searchlab.errors import DataError, InputError
from searchlab.evaluation.judging.partial import PartialEstimate
from searchlab.evaluation.judging.sampling import JudgingPlan, plan_judging
from searchlab.evaluation.judging.tasks import (
    JudgingTask,
    find_file,
    open_task,
    place_task,
    query_values,
    read_query,
)


def create_planned_task(
    library: Path, name: str, plan: JudgingPlan, n: int, *, title: str = "", made_by: str = ""
) -> JudgingTask:
    """Put the `n` most urgent photos of a plan beside a library for judges.

    Raises:
        ConflictError: There is a task of this name.
        InputError: The name or the title cannot be one, or the plan has fewer photos.
    """
    values = {
        "n": n,
        "metric": plan.metric,
        "seed": plan.seed,
        "between": plan.between,
        "queries": [query_values(query) for query in plan.queries.values()],
        "judged": plan.judged,
        "runs": {
            system: {query_id: list(found) for query_id, found in run.items()}
            for system, run in plan.runs.items()
        },
    }
    more = {"plan": values}
    return place_task(library, name, plan.first(n), title=title, made_by=made_by, more=more)


def estimate_task(library: Path, name: str) -> PartialEstimate:
    """Estimate how good the systems of a planned task are, from the median of its judges' grades.

    Raises:
        NotFoundError: There is no such task.
        DataError: Its file is damaged, or its photos are not those of its plan.
        InputError: It has no plan, or a photo of it is without a grade.
    """
    plan, n, task = _read_plan(library, name)
    return plan.estimate(task.qrels("median"), n=n)


def go_on_with(library: Path, name: str) -> JudgingPlan:
    """Plan what to judge after a task: by what tells the systems apart that may be the best.

    Raises:
        NotFoundError: There is no such task.
        DataError: Its file is damaged, or its photos are not those of its plan.
        InputError: It has no plan, a photo of it is without a grade, or nothing is left to judge.
    """
    plan, n, task = _read_plan(library, name)
    qrels = task.qrels("median")
    return plan.go_on(qrels, between=plan.estimate(qrels, n=n).undecided)


def _read_plan(library: Path, name: str) -> tuple[JudgingPlan, int, JudgingTask]:
    task = open_task(library, name)
    path = find_file(library, name, "task.json")
    values: dict[str, Any] | None = json.loads(path.read_bytes()).get("plan")
    if values is None:
        msg = (
            f"an estimate must be of a task whose photos were drawn, got {name!r}; make one by "
            "`searchlab judge create --most`"
        )
        raise InputError(msg)
    try:
        n = int(values["n"])
        plan = plan_judging(
            [read_query(query) for query in values["queries"]],
            values["runs"],
            metric=values["metric"],
            judged=values["judged"],
            between=values["between"],
            seed=values["seed"],
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path} must hold the plan of its photos, got: {error}; make another task"
        raise DataError(msg) from error
    if set(plan.pairs[:n]) != set(task.pool.pairs):
        msg = f"{path} must hold the photos of its plan, got others; make another task"
        raise DataError(msg)
    return plan, n, task
