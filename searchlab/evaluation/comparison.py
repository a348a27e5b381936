"""Comparison: several results, which of them differ significantly, and which one to serve.

Data and statistics only; `searchlab.evaluation.reporting` presents them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from searchlab.errors import InputError
from searchlab.evaluation.promotion import choose
from searchlab.evaluation.results import Result, incompatibility
from searchlab.evaluation.significance.power import Power
from searchlab.evaluation.significance.standings import ALPHA, Standings


class Comparison:
    """Results on the same queries and photos, measured by the same code on one machine.

    Attributes:
        alpha: Greatest chance of calling any system worse that is equal to a leader.
        n_left_out: Number of results that could not be compared with these.
    """

    def __init__(
        self,
        results: Iterable[Result],
        *,
        alpha: float = ALPHA,
        seed: int = 0,
        n_left_out: int = 0,
    ) -> None:
        """Check that the results can be compared.

        Args:
            results: At least one, each configuration once.
            alpha: Greatest chance of calling any system worse that is equal to a leader.
            seed: Seed of the tests.
            n_left_out: Number of results that could not be compared with these, for the caption.

        Raises:
            InputError: They have different data, queries, metrics, code or machines, or a
                configuration occurs twice.
        """
        unordered = list(results)
        settings = {result.setting for result in unordered}
        by_config = {result.config_id: result for result in unordered}
        if len(settings) != 1 or len(by_config) < len(unordered):
            reasons = [incompatibility(unordered[0], other) for other in unordered[1:]]
            listed = next(filter(None, reasons), [result.name for result in unordered])
            msg = (
                "a report must have results of one dataset, revision, photos, queries, metrics, "
                f"code and machine, each config once, got {listed}; evaluate them together"
            )
            raise InputError(msg)
        self.alpha = alpha
        self.n_left_out = n_left_out
        self._by_config = by_config
        self._seed = seed

    @cached_property
    def standings(self) -> Standings:
        """The results as scores of the headline metric, by config_id."""
        scores = {
            config_id: result.scores.values[result.headline]
            for config_id, result in self._by_config.items()
        }
        labels = next(iter(self._by_config.values())).scores
        return Standings(
            scores,
            langs=labels.langs,
            clusters=labels.cluster_ids,
            alpha=self.alpha,
            seed=self._seed,
        )

    @cached_property
    def groups(self) -> list[list[Result]]:
        """Results in groups, best first; members cannot be told apart from their group's first."""
        return [[self._by_config[name] for name in group] for group in self.standings.groups]

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """All results, by rank group and then by headline metric, best first."""
        return tuple(result for group in self.groups for result in group)

    @property
    def ranks(self) -> dict[str, int]:
        """Config_id -> number of its group, from 1."""
        return self.standings.ranks

    @cached_property
    def names(self) -> dict[str, str]:
        """Config_id -> model and index in words, with a part of the id if that is ambiguous."""
        names = [result.name for result in self.results]
        return {
            result.config_id: result.name
            if names.count(result.name) == 1
            else f"{result.name} ({result.config_id[:6]})"
            for result in self.results
        }

    @property
    def title(self) -> str:
        """Name of the data."""
        first = self.results[0]
        return f"{first.benchmark} on {first.dataset}@{first.dataset_revision}"

    @cached_property
    def chosen(self) -> Result:
        """The result to serve; see `searchlab.evaluation.promotion.choose`."""
        return choose(self.groups[0])

    @property
    def p_values(self) -> dict[str, float]:
        """Config_id -> p-value of the paired test against the leader, with Holm's correction."""
        return self.standings.p_values

    @property
    def powers(self) -> dict[str, Power]:
        """Config_id -> power of the test against the leader; see `Standings.powers`."""
        return self.standings.powers

    @property
    def detectable(self) -> tuple[float, float] | None:
        """The least difference from the leader that can be shown; see `Standings.detectable`."""
        return self.standings.detectable

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the data, and every system with rank, figures and p-value."""
        first = self.results[0]
        systems = [
            {
                "system": self.names[result.config_id],
                "config_id": result.config_id,
                "rank": self.ranks[result.config_id],
                "is_chosen": result is self.chosen,
                "p_value": self.p_values.get(result.config_id),
                "n_languages": len(result.languages),
                "intervals": {name: list(i.macro) for name, i in result.intervals.items()},
                "metrics": {k: v for k, v in result.metrics.items() if k not in result.intervals},
            }
            for result in self.results
        ]
        return {
            "benchmark": first.benchmark,
            "dataset": first.dataset,
            "dataset_revision": first.dataset_revision,
            "n_queries": first.n_queries,
            "languages": list(first.languages),
            "alpha": self.alpha,
            "detectable": {name: power.to_dict() for name, power in self.powers.items()},
            "systems": systems,
        }
