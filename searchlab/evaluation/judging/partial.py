"""What a part of the judgments says: means and differences with intervals, and what was missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.evaluation.significance import Interval, bootstrap_intervals
from searchlab.files import require_pandas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class PartialEstimate:
    """Means of systems, estimated from judgments of some of their photos.

    Attributes:
        metric: Name of the metric.
        means: System -> mean over languages with its 95 % interval, best first. It covers both that
            only some photos were judged, and that the queries are a sample.
        differences: System -> how far the best one is above it, for all but the best.
        missed: Relevant photos a query, among those that had no judgment before.
        n_judged: Photos that were judged for it.
        n_open: Photos of the runs that nobody has judged.
    """

    metric: str
    means: dict[str, Interval]
    differences: dict[str, Interval]
    missed: Interval
    n_judged: int
    n_open: int

    @property
    def undecided(self) -> list[str]:
        """The best system and those that may be as good; alone, it is shown to be the best."""
        best = next(iter(self.means))
        return [best, *(name for name, gap in self.differences.items() if gap.low <= 0)]

    def frame(self) -> pd.DataFrame:
        """Return a row for each system, best first."""
        require_pandas()
        import pandas as pd

        rows = [
            {
                "system": name,
                self.metric: mean.mean,
                f"{self.metric} low": mean.low,
                f"{self.metric} high": mean.high,
                "below the best": self.differences[name].mean if name in self.differences else 0.0,
                "undecided": name in self.undecided,
            }
            for name, mean in self.means.items()
        ]
        return pd.DataFrame(rows).set_index("system")

    def __repr__(self) -> str:
        lines = [
            f"{self.metric} by {self.n_judged:,} of {self.n_judged + self.n_open:,} photos "
            "that had no judgment, 95 % intervals"
        ]
        for name, mean in self.means.items():
            gap = self.differences.get(name)
            below = "" if gap is None else f", {gap} below the best"
            lines.append(f"{name}: {mean}{below}")
        lines.append(f"relevant without a judgment before: {self.missed} a query")
        return "\n".join(lines)


def estimate_partial(
    metric: str,
    values: Mapping[str, NDArray[np.float64]],
    *,
    missed: NDArray[np.float64],
    langs: Sequence[str],
    clusters: Sequence[str],
    n_judged: int,
    n_open: int,
    samples: int,
    seed: int,
) -> PartialEstimate:
    """Put intervals around estimates of each query.

    Queries are resampled with their estimates. Since photos are drawn for each query apart, how far
    these scatter holds both sources of chance.

    Args:
        metric: Its name.
        values: System -> (n_queries,) estimated scores, which may be above 1.
        missed: (n_queries,) estimated numbers of relevant photos without a judgment before.
        langs: (n_queries,) languages.
        clusters: (n_queries,) what each query is about.
        n_judged: Photos that were judged.
        n_open: Photos that were not.
        samples: Number of resamples.
        seed: Seed of the resampling.
    """
    options: dict[str, Any] = {
        "groups": langs,
        "clusters": clusters,
        "samples": samples,
        "seed": seed,
    }
    means = {name: found.macro for name, found in bootstrap_intervals(values, **options).items()}
    order = sorted(means, key=lambda name: (-means[name].mean, name))
    best, *others = order
    gaps = {name: values[best] - values[name] for name in others}
    differences = {
        name: found.macro for name, found in bootstrap_intervals(gaps, **options).items()
    }
    return PartialEstimate(
        metric=metric,
        means={name: means[name] for name in order},
        differences=differences,
        missed=bootstrap_intervals({"missed": missed}, **options)["missed"].macro,
        n_judged=n_judged,
        n_open=n_open,
    )
