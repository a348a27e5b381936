"""What a part of the judgments says: means and differences with intervals, and what was missed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from searchlab.evaluation.significance import Interval, bootstrap_intervals
from searchlab.files import require_pandas

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
_Z = 1.96


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


@dataclass(frozen=True, eq=False)
class Drawn:
    """Photos that could be judged, in the order of a plan, and what came of the first ones.

    Attributes:
        effects: System -> (n_pairs,) what a grade that counts once adds to its mean.
        on_missed: (n_pairs,) what such a grade adds to the mean number of what was missed.
        gains: (n_judged,) how often the grades count.
        chances: (n_pairs,) chances to be judged, above 0 to 1.
    """

    effects: Mapping[str, Floats]
    on_missed: Floats
    gains: Floats
    chances: Floats

    def least_half_width(self, effects: Floats) -> float:
        """Return half the least width of a 95 % interval, however few relevant photos were found.

        Where hardly any was found among those with an effect, resampling sees no spread. The spread
        is therefore that of the relevant photos that were found and a few more of the usual kind:
        with none it is as wide as that of Poisson's law.

        Args:
            effects: (n_pairs,) what a grade that counts once adds to a mean or a difference.
        """
        squares = np.square(effects / self.chances) * (1 - self.chances)
        chances = self.chances * (effects != 0)
        if not chances.any():
            return 0.0
        usual = float(np.average(squares, weights=chances))
        most = max(1.0, float(self.gains.max(initial=0)))
        found = float(squares[: len(self.gains)] @ np.square(self.gains))
        return _Z * math.sqrt(found + _Z**2 * most**2 * usual)

    def widen(self, interval: Interval, effects: Floats, *, least: float = 0.0) -> Interval:
        """Widen an interval where it is narrower than it can be."""
        half = self.least_half_width(effects)
        low, high = interval.mean - half, interval.mean + half
        return Interval(interval.mean, min(interval.low, max(low, least)), max(interval.high, high))


def estimate_partial(
    metric: str,
    values: Mapping[str, Floats],
    *,
    missed: Floats,
    langs: Sequence[str],
    clusters: Sequence[str],
    drawn: Drawn,
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
        drawn: The photos that could be judged, and those that were.
        samples: Number of resamples.
        seed: Seed of the resampling.
    """
    options: dict[str, Any] = {
        "groups": langs,
        "clusters": clusters,
        "samples": samples,
        "seed": seed,
    }
    means = {
        name: drawn.widen(found.macro, drawn.effects[name])
        for name, found in bootstrap_intervals(values, **options).items()
    }
    order = sorted(means, key=lambda name: (-means[name].mean, name))
    best, *others = order
    gaps = {name: values[best] - values[name] for name in others}
    differences = {
        name: drawn.widen(found.macro, drawn.effects[best] - drawn.effects[name], least=-math.inf)
        for name, found in bootstrap_intervals(gaps, **options).items()
    }
    missing = bootstrap_intervals({"missed": missed}, **options)["missed"].macro
    return PartialEstimate(
        metric=metric,
        means={name: means[name] for name in order},
        differences=differences,
        missed=drawn.widen(missing, drawn.on_missed),
        n_judged=len(drawn.gains),
        n_open=len(drawn.chances) - len(drawn.gains),
    )
