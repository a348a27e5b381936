"""Do intervals of few clusters cover, and do tests of few clusters keep their level?

    python -m benchmarks.small_samples.bench_small_samples
    python -m benchmarks.small_samples.bench_small_samples --smoke --out "$(mktemp -d)"

Writes results/small_samples/scores/coverage.json. The scores of real queries that are on record are
taken for a population: its mean is known. Of its clusters (queries about one photo) 20, 50 and 87
are drawn again and again. `coverage` is the share of 95 % intervals that hold the mean, of
percentiles and of the studentised ones that searchlab gives; `level` is how often a test at 5 %
calls differences of mean 0 different, by flips alone and with the bootstrap beside them; `power
stated` is what `power_of` says of a difference, beside how often the test finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.results import load_result
from searchlab.evaluation.significance import bootstrap_interval, paired_test, permutation_test
from searchlab.evaluation.significance import intervals as interval_module
from searchlab.evaluation.significance.power import power_of

BENCHMARK, NAME = "small_samples", "coverage"
RESULTS = Path(__file__).resolve().parents[2] / "results" / "search_quality"
SIZES: Final = (20, 50, 87)
SCORES: Final = ("demo", "demo-similar", "demo-steered", "flickr8k", "flickr8k-steered")
METRIC, SYSTEM = "ndcg@10", "mini × exact"
_SAMPLES, _ALPHA = 600, 0.05

Floats = NDArray[np.float64]
DIFFERENCES: Final[dict[str, Callable[[np.random.Generator, int], Floats]]] = {
    "symmetric": lambda rng, n: rng.normal(size=n),
    "lopsided": lambda rng, n: rng.exponential(size=n) - 1,
    "very lopsided": lambda rng, n: rng.beta(0.3, 3, size=n) - 0.3 / 3.3,
    "few large gains": lambda rng, n: (rng.random(n) < 0.1) - 0.1,
}
"""Kind -> draws n differences of mean 0."""


class Population(NamedTuple):
    """Scores whose mean is known.

    Attributes:
        values: (n_queries,) scores.
        langs: (n_queries,) languages.
        members: The queries of each cluster.
    """

    values: Floats
    langs: NDArray[np.str_]
    members: list[NDArray[np.intp]]

    @property
    def mean(self) -> float:
        """The macro average over languages."""
        return float(np.mean([self.values[self.langs == one].mean() for one in set(self.langs)]))


def main() -> None:
    """Draw, count, record."""
    parser = bench_parser(__doc__, dataset="scores", datasets=["scores"])
    parser.add_argument("--rounds", type=int, default=600, help="draws of each kind and size")
    options = parser.parse_args()
    if on_record(options, BENCHMARK, NAME) is not None:
        return
    how_many = 1 if options.smoke else len(SCORES)
    values = measure(6 if options.smoke else options.rounds, options.seed, how_many)
    values["manifest"] = make_manifest(BENCHMARK, seed=options.seed, threads=1)
    record(options, BENCHMARK, NAME, values)
    for row in (*values["coverage"], *values["levels"]):
        print("  ".join(f"{value}" for value in row.values()))


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Draw and count again, by the recorded seed."""
    rounds, seed = measurement["parameters"]["rounds"], measurement["manifest"]["seed"]
    return measure(int(rounds), int(seed))


def measure(rounds: int, seed: int, how_many: int = len(SCORES)) -> dict[str, Any]:
    """Draw from so many of the populations and kinds of differences, and count."""
    names, kinds = SCORES[:how_many], list(DIFFERENCES)[:how_many]
    coverage = [
        {"scores": name, "clusters": n, **covered(read(name), n, rounds, seed)}
        for name in names
        for n in SIZES
    ]
    levels = [
        {"differences": kind, "clusters": n, **level_of(kind, n, rounds, seed)}
        for kind in kinds
        for n in SIZES
    ]
    return {
        "parameters": {"rounds": rounds, "samples": _SAMPLES, "metric": METRIC, "system": SYSTEM},
        "metrics": {
            f"least coverage, {way}, {n} clusters": min(
                row[way] for row in coverage if row["clusters"] == n
            )
            for way in ("percentile", "studentised")
            for n in SIZES
        },
        "coverage": coverage,
        "levels": levels,
    }


def read(name: str) -> Population:
    """Read the scores of one system on record."""
    for path in sorted((RESULTS / name).glob("*.json")):
        result = load_result(path)
        if result.name == SYSTEM:
            scores = result.scores
            of = np.asarray(scores.cluster_ids)
            members = [np.flatnonzero(of == cluster) for cluster in sorted(set(scores.cluster_ids))]
            return Population(scores.values[METRIC], np.asarray(scores.langs), members)
    msg = f"{RESULTS / name} must hold a result of {SYSTEM}; measure it with `searchlab evaluate`"
    raise SystemExit(msg)


def covered(population: Population, n: int, rounds: int, seed: int) -> dict[str, Any]:
    """Count the intervals that hold the mean of all scores, and measure how wide they are."""
    rng, true = np.random.default_rng([seed, n]), population.mean
    holds = {"percentile": 0, "studentised": 0}
    widths = dict.fromkeys(holds, 0.0)
    for _ in range(rounds):
        drawn = [population.members[i] for i in rng.integers(0, len(population.members), n)]
        rows = np.concatenate(drawn)
        clusters = np.repeat([f"{i:03}" for i in range(n)], [len(one) for one in drawn]).tolist()
        for way, few in (("percentile", 0), ("studentised", 100)):
            interval = interval_by(
                few, population.values[rows], population.langs[rows].tolist(), clusters
            )
            holds[way] += interval.low <= true <= interval.high
            widths[way] += interval.high - interval.low
    return {way: round(count / rounds, 3) for way, count in holds.items()} | {
        f"{way} width": round(width / rounds, 4) for way, width in widths.items()
    }


def interval_by(few: int, values: Floats, langs: Sequence[str], clusters: Sequence[str]) -> Any:
    """Estimate an interval, studentised below as many clusters."""
    usual = interval_module.FEW
    interval_module.FEW = few
    try:
        return bootstrap_interval(values, samples=_SAMPLES, groups=langs, clusters=clusters)
    finally:
        interval_module.FEW = usual


def level_of(kind: str, n: int, rounds: int, seed: int) -> dict[str, Any]:
    """Count how often differences of mean 0 are called different, and of another mean found."""
    rng, zeros = np.random.default_rng([seed, n]), np.zeros(n)
    draw = DIFFERENCES[kind]
    spread = float(np.std(draw(np.random.default_rng(seed), 100_000)))
    shift = 2.8 * spread / np.sqrt(n)
    counts = {"level, flips": 0, "level, both": 0, "found": 0}
    stated = []
    for _ in range(rounds):
        differences = draw(rng, n)
        counts["level, flips"] += _p(permutation_test, differences, zeros) < _ALPHA
        counts["level, both"] += _p(paired_test, differences, zeros) < _ALPHA
        counts["found"] += _p(paired_test, differences + shift, zeros) < _ALPHA
        if np.ptp(differences):
            stated.append(power_of(differences + shift, zeros).of(shift))
    return {name: round(count / rounds, 3) for name, count in counts.items()} | {
        "power stated": round(float(np.mean(stated)), 3)
    }


def _p(test: Callable[..., float], differences: Floats, zeros: Floats) -> float:
    return test(differences, zeros, samples=_SAMPLES)


if __name__ == "__main__":
    main()
