"""How far do a few hundred judgments go, chosen in three ways?

    python -m benchmarks.few_judgments.bench_few_judgments             some minutes
    python -m benchmarks.few_judgments.bench_few_judgments --smoke --out "$(mktemp -d)"

Writes results/few_judgments/demo/ways.json. The queries on the bundled photos for which rankings by
four systems are on record are taken for a population, and their judgments for the truth: what has
none counts as not relevant. Queries are drawn from it again and again, and of the photos that the
systems found for them some are judged:

- planned: as `plan_judging` orders them, by how far the systems disagree;
- alike: each photo by the same chance, with the same estimate;
- pool: the first places of all systems until the judgments are used up; what was not judged is
  taken for not relevant, as usual.

`error` is the root mean square error of the differences between systems against what all judgments
of the drawn queries say, `covered` the share of 95 % intervals that hold what all judgments of all
queries say, of means and of differences from the best, and `order` how often the systems stand in
the same order as by all judgments of the drawn queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.common.again import measure_again
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.datasets import Dataset, LabelledQuery, load_dataset
from searchlab.evaluation.judging.partial import PartialEstimate
from searchlab.evaluation.judging.pools import Pair
from searchlab.evaluation.judging.sampling import JudgingPlan, plan_judging
from searchlab.evaluation.metrics import Qrels, Run
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.results import load_result, read_run_beside

BENCHMARK, NAME, DATASET = "few_judgments", "ways", "demo"
RESULTS = Path(__file__).resolve().parents[2] / "results" / "search_quality" / DATASET
METRIC: Final = "precision@5"
SYSTEMS: Final = ("mini", "captions", "palette", "hybrid:captions=0.3,mini=0.7")
LANGUAGES: Final = ("en", "de", "fr", "es", "nl")
QUERIES, BUDGETS = 150, (100, 200, 400, 800)
_SAMPLES = 300


class Population(NamedTuple):
    """Queries, what each system found for them, and all judgments."""

    queries: list[LabelledQuery]
    runs: dict[str, Run]
    qrels: Qrels

    def draw(self, rng: np.random.Generator) -> Population:
        """Draw as many queries of each language, with replacement: twice drawn are two."""
        drawn = [
            (query, replace(query, query_id=f"{number} {query.query_id}"))
            for lang in LANGUAGES
            for own in [[query for query in self.queries if query.lang == lang]]
            for number, place in enumerate(rng.choice(len(own), QUERIES // len(LANGUAGES)))
            for query in [own[place]]
        ]
        return Population(
            [copy for _, copy in drawn],
            {
                name: {copy.query_id: run[query.query_id] for query, copy in drawn}
                for name, run in self.runs.items()
            },
            {copy.query_id: self.qrels[query.query_id] for query, copy in drawn},
        )

    def plan(self, seed: int = 0) -> JudgingPlan:
        """Plan what to judge of them."""
        return plan_judging(self.queries, self.runs, metric=METRIC, seed=seed)


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Draw, judge and estimate again, by the recorded seed."""
    return measure_again(measure, measurement, rounds=int(measurement["parameters"]["rounds"]))


def measure(options: argparse.Namespace) -> None:
    """Draw, judge, estimate, record."""
    if on_record(options, BENCHMARK, NAME) is not None:
        return
    rounds, budgets = (5, BUDGETS[:1]) if options.smoke else (options.rounds, BUDGETS)
    population = read_population(load_dataset(DATASET))
    truth = estimate_all(population)
    rows: list[dict[str, Any]] = []
    n_photos: list[int] = []
    progress = ConsoleProgress(Console(stderr=True))
    with progress.step("judging", rounds * len(budgets)) as step:
        for budget in budgets:
            found: dict[str, list[dict[str, Any]]] = {"planned": [], "alike": [], "pool": []}
            for number in range(rounds):
                rng = np.random.default_rng([options.seed, budget, number])
                drawn = population.draw(rng)
                plan = drawn.plan(seed=number)
                n_photos.append(len(plan))
                whole = estimate_all(drawn)
                for way, estimate in {
                    "planned": judge_first(plan, drawn.qrels, budget),
                    "alike": judge_first(alike(plan, rng), drawn.qrels, budget),
                    "pool": judge_pool(plan, drawn.qrels, budget),
                }.items():
                    found[way].append(compare(estimate, whole, truth))
                step.advance(1)
            rows += [
                {"judgments": budget, "way": way, **summarise(each)} for way, each in found.items()
            ]
    values = {
        "parameters": {
            "metric": METRIC,
            "queries": QUERIES,
            "languages": list(LANGUAGES),
            "rounds": rounds,
            "systems": list(SYSTEMS),
            "samples": _SAMPLES,
        },
        "metrics": {
            "queries": len(population.queries),
            "photos to judge": round(float(np.mean(n_photos))),
            "least covered, planned": min(
                min(row["means covered"], row["differences covered"])
                for row in rows
                if row["way"] == "planned"
            ),
        },
        "rows": rows,
        "manifest": make_manifest(BENCHMARK, seed=options.seed, threads=1),
    }
    record(options, BENCHMARK, NAME, values)
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


def main() -> None:
    """Measure as the command line says."""
    parser = bench_parser(__doc__, dataset=DATASET, datasets=[DATASET])
    parser.add_argument("--rounds", type=int, default=120, help="draws of each budget")
    measure(parser.parse_args())


def read_population(dataset: Dataset) -> Population:
    """Read the rankings of the systems that are on record, for the queries that all have."""
    runs: dict[str, Run] = {}
    for path in sorted(RESULTS.glob("*.json")):
        result = load_result(path)
        if result.config.model in SYSTEMS and result.name == f"{result.config.model} × exact":
            runs[result.config.model] = read_run_beside(path)
    if set(runs) != set(SYSTEMS):
        msg = f"{RESULTS} must hold the rankings of {', '.join(SYSTEMS)}, got {', '.join(runs)}"
        raise SystemExit(msg)
    queries = [
        query
        for query in dataset.queries
        if query.lang in LANGUAGES and all(query.query_id in run for run in runs.values())
    ]
    return Population(queries, runs, dataset.qrels)


def judge(pairs: Sequence[Pair], truth: Qrels) -> dict[str, dict[str, int]]:
    """Grade photos as the judgments on record do."""
    qrels: dict[str, dict[str, int]] = {}
    for query_id, photo in pairs:
        qrels.setdefault(query_id, {})[photo] = truth[query_id].get(photo, 0)
    return qrels


def estimate_all(population: Population) -> PartialEstimate:
    """Estimate from all judgments."""
    plan = population.plan()
    return plan.estimate(judge(plan.pairs, population.qrels), samples=1)


def judge_first(plan: JudgingPlan, truth: Qrels, n: int) -> PartialEstimate:
    """Judge the first photos of a plan, and estimate."""
    n = min(n, len(plan))
    return plan.estimate(judge(plan.pairs[:n], truth), n=n, samples=_SAMPLES)


def alike(plan: JudgingPlan, rng: np.random.Generator) -> JudgingPlan:
    """Return the plan with the same chance for each photo."""
    drawn = rng.random(len(plan))
    order = np.argsort(drawn)
    return replace(
        plan,
        pairs=tuple(plan.pairs[place] for place in order),
        priorities=drawn[order],
        importance=np.ones(len(plan)),
        shares=plan.shares[:, order],
    )


def judge_pool(plan: JudgingPlan, truth: Qrels, n: int) -> PartialEstimate:
    """Judge the first places of all systems, and take all else for not relevant."""
    first = {
        pair: min(
            list(run.get(pair.query_id, ())).index(pair.photo_id)
            for run in plan.runs.values()
            if pair.photo_id in list(run.get(pair.query_id, ()))
        )
        for pair in plan.pairs
    }
    judged = set(sorted(plan.pairs, key=lambda pair: (first[pair], pair))[:n])
    graded = {
        query_id: {
            photo: grade if Pair(query_id, photo) in judged else 0
            for photo, grade in grades.items()
        }
        for query_id, grades in judge(plan.pairs, truth).items()
    }
    return plan.estimate(graded, samples=_SAMPLES)


def compare(
    found: PartialEstimate, whole: PartialEstimate, truth: PartialEstimate
) -> dict[str, Any]:
    """Compare an estimate with all judgments of its queries, and with those of the population."""
    errors = [
        (found.means[a].mean - found.means[b].mean) - (whole.means[a].mean - whole.means[b].mean)
        for a, b in combinations(SYSTEMS, 2)
    ]
    best = next(iter(found.means))
    return {
        "errors": errors,
        "means": [
            mean.low <= truth.means[name].mean <= mean.high for name, mean in found.means.items()
        ],
        "differences": [
            gap.low <= truth.means[best].mean - truth.means[name].mean <= gap.high
            for name, gap in found.differences.items()
        ],
        "width": float(np.mean([gap.high - gap.low for gap in found.differences.values()])),
        "order": list(found.means) == list(whole.means),
    }


def summarise(rounds: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the figures over all rounds."""
    return {
        "error": round(float(np.sqrt(np.mean(np.square([one["errors"] for one in rounds])))), 4),
        "means covered": round(float(np.mean([one["means"] for one in rounds])), 3),
        "differences covered": round(float(np.mean([one["differences"] for one in rounds])), 3),
        "width": round(float(np.mean([one["width"] for one in rounds])), 4),
        "same order": round(float(np.mean([one["order"] for one in rounds])), 3),
    }


if __name__ == "__main__":
    main()
