"""Weighing: one comparison over several tasks that a configuration will face, by their weights.

A library's photos may be described or not, so a configuration is measured with texts withheld and
with texts there, and chosen by the weighted mean of each query's scores. The same tests as for one
task say which configurations cannot be told apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from searchlab.errors import InputError
from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.promotion import TaskEvidence, promote
from searchlab.evaluation.results import Result
from searchlab.evaluation.significance import bootstrap_intervals

TEXTS_WITHHELD: Final = 0.5
TEXTS_THERE: Final = 0.5
"""Weights of the two tasks: about as many photos as have a title, tags or a telling file name have
none, and nobody knows beforehand which of them a library holds; so both count the same."""


@dataclass(frozen=True, eq=False)
class Task:
    """Results of several configurations on one task.

    Attributes:
        comparison: The results.
        weight: Share of the task, above 0.
    """

    comparison: Comparison
    weight: float


class WeighedTasks:
    """Results of the same configurations and queries on several tasks, weighed into one comparison.

    Attributes:
        tasks: Each with its weight; the last one is that whose result is promoted.
    """

    def __init__(self, tasks: Sequence[Task], *, seed: int = 0) -> None:
        """Check that the tasks go together.

        Args:
            tasks: Two or more, whose weights add up to 1.
            seed: Seed of intervals and tests.

        Raises:
            InputError: They have different configurations, queries or metrics, or the weights do
                not add up to 1.
        """
        contents = {
            (
                frozenset(result.config_id for result in task.comparison.results),
                *((r.scores.query_ids, tuple(r.intervals)) for r in task.comparison.results[:1]),
            )
            for task in tasks
        }
        weights = [task.weight for task in tasks]
        if len(contents) != 1 or min(weights) <= 0 or abs(sum(weights) - 1) > 1e-9:
            msg = (
                "tasks must have the same configurations, queries and metrics, and weights that "
                f"add up to 1, got {len(contents)} kinds and weights {weights}; evaluate the same "
                "configurations on the same queries"
            )
            raise InputError(msg)
        self.tasks = tuple(tasks)
        self._seed = seed

    @cached_property
    def comparison(self) -> Comparison:
        """The weighted results; they are no measurements and lie in no file."""
        by_task = [
            {result.config_id: result for result in task.comparison.results} for task in self.tasks
        ]
        return Comparison(
            [self._weigh([results[config_id] for results in by_task]) for config_id in by_task[0]],
            seed=self._seed,
        )

    def _weigh(self, results: Sequence[Result]) -> Result:
        weights = np.array([task.weight for task in self.tasks])
        last = results[-1]
        values = {
            name: np.tensordot(weights, [result.scores.values[name] for result in results], axes=1)
            for name in last.scores.values
        }
        scores = replace(last.scores, values=values)
        intervals = bootstrap_intervals(
            values, groups=scores.langs, clusters=scores.cluster_ids, seed=self._seed
        )
        quality = {name: averages.macro.mean for name, averages in intervals.items()}
        revisions = " ".join(result.dataset_revision for result in results)
        return replace(
            last,
            dataset=" and ".join(result.dataset for result in results),
            dataset_revision=hashlib.sha256(revisions.encode()).hexdigest()[:12],
            metrics={**last.metrics, **quality},
            intervals=intervals,
            scores=scores,
        )

    def promote(
        self, path: Path | str, *, force: bool = False, replace_unlike: bool = False
    ) -> Path:
        """Write the configuration that is chosen over all tasks, with its figures on each.

        The arguments are those of `searchlab.evaluation.promotion.promote`; the result is that of
        the last task.
        """
        comparison, last = self.comparison, self.tasks[-1].comparison
        chosen = comparison.chosen
        tied = {result.config_id for result in comparison.groups[0]} - {chosen.config_id}
        return promote(
            _result_of(last, chosen.config_id),
            path,
            measured=last.results,
            tied_with=[result for result in last.results if result.config_id in tied],
            tasks=[
                TaskEvidence(_result_of(task.comparison, chosen.config_id), task.weight)
                for task in self.tasks
            ],
            force=force,
            replace_unlike=replace_unlike,
        )

    def explain(self) -> str:
        """Say in a sentence what is chosen, and how it and the next compare over all tasks."""
        comparison = self.comparison
        chosen, headline = comparison.chosen, comparison.chosen.headline
        shares = ", ".join(
            f"{task.weight:.0%} {task.comparison.results[0].dataset}" for task in self.tasks
        )
        others = [result for group in comparison.groups[1:] for result in group][:1]
        worse = "".join(
            f"; {other.name} {other.intervals[headline].macro} is shown to be worse"
            for other in others
        )
        return f"Weighed ({shares}): {chosen.name} {chosen.intervals[headline].macro}{worse}."


def _result_of(comparison: Comparison, config_id: str) -> Result:
    return next(result for result in comparison.results if result.config_id == config_id)
