"""Several systems with a score for each query: intervals, groups of equals, power, frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.evaluation.significance import GroupedIntervals, bootstrap_intervals
from searchlab.evaluation.significance.standings import ALPHA, Standings
from searchlab.files import require_pandas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class ScoredSystems:
    """Several systems on the same queries, or on the same tasks.

    Attributes:
        systems: Names, in the order given.
        scores: System -> metric -> (n_queries,) scores; the first metric ranks.
        query_ids: (n_queries,) ids, sorted.
        langs: (n_queries,) languages, which count the same; all "all" if they are not known.
        clusters: (n_queries,) what each query is about; those about one thing are drawn together.
        unanswered: System -> number of queries that it does not answer; each scores 0.
        files: System -> path and SHA-256, where it is a file.
        unit: What is averaged, in the plural.
        about: What queries are about, in the plural.
        left_out: Number of queries that not every system has, or that nothing is relevant to.
        alpha: Greatest chance of calling any system worse that is equal to a leader.
        seed: Seed of intervals and tests.
    """

    systems: tuple[str, ...]
    scores: Mapping[str, Mapping[str, NDArray[np.float64]]]
    query_ids: tuple[str, ...]
    langs: tuple[str, ...]
    clusters: tuple[str, ...]
    unanswered: Mapping[str, int]
    files: Mapping[str, Mapping[str, str]]
    unit: str = "queries"
    about: str = "documents"
    left_out: int = 0
    alpha: float = ALPHA
    seed: int = 0

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics; the first one ranks."""
        return tuple(self.scores[self.systems[0]])

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages, sorted."""
        return tuple(sorted(set(self.langs)))

    @cached_property
    def standings(self) -> Standings:
        """Groups of equals, p-values and power by the first metric."""
        return Standings(
            {name: self.scores[name][self.metrics[0]] for name in self.systems},
            langs=self.langs,
            clusters=self.clusters,
            alpha=self.alpha,
            seed=self.seed,
        )

    @cached_property
    def intervals(self) -> dict[str, dict[str, GroupedIntervals]]:
        """System -> metric -> mean over languages, mean over queries, each language."""
        return {
            name: bootstrap_intervals(
                self.scores[name], groups=self.langs, clusters=self.clusters, seed=self.seed
            )
            for name in self.systems
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: every system with rank, intervals, p-value, power and scores."""
        ranks, p_values = self.standings.ranks, self.standings.p_values
        powers = self.standings.powers
        return {
            "metrics": list(self.metrics),
            "unit": self.unit,
            "n": len(self.query_ids),
            "n_left_out": self.left_out,
            "languages": list(self.languages),
            "alpha": self.alpha,
            "seed": self.seed,
            "systems": [
                {
                    "system": name,
                    "rank": ranks[name],
                    "p_value": p_values.get(name),
                    "n_unanswered": self.unanswered[name],
                    "intervals": {m: i.to_dict() for m, i in self.intervals[name].items()},
                    "power": powers[name].to_dict() if name in powers else None,
                    **self.files[name],
                }
                for name in self.standings.order
            ],
            "queries": {
                "query_id": list(self.query_ids),
                "lang": list(self.langs),
                "about": list(self.clusters),
                "scores": {
                    name: {m: [round(float(v), 6) for v in self.scores[name][m]] for m in values}
                    for name, values in self.scores.items()
                },
            },
        }

    def frame(self) -> pd.DataFrame:
        """Return a row for each system, best first, with figures as numbers."""
        require_pandas()
        import pandas as pd

        rows = []
        for name in self.standings.order:
            row: dict[str, Any] = {"system": name, "rank": self.standings.ranks[name]}
            for metric, each in self.intervals[name].items():
                row |= {metric: each.macro.mean}
                row |= {f"{metric} low": each.macro.low, f"{metric} high": each.macro.high}
            row["p_value"] = self.standings.p_values.get(name)
            rows.append(row | {"n_unanswered": self.unanswered[name]})
        return pd.DataFrame(rows).set_index("system")

    def queries_frame(self) -> pd.DataFrame:
        """Return a row for each query and system: language, what it is about, every metric."""
        require_pandas()
        import pandas as pd

        tables = []
        for name in self.systems:
            labels = {"query_id": self.query_ids, "lang": self.langs, "about": self.clusters}
            tables.append(pd.DataFrame({"system": name} | labels | dict(self.scores[name])))
        return pd.concat(tables, ignore_index=True)
