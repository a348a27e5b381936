"""What each way of answering costs and finds: the figures that the planner decides by.

    python -m benchmarks.planner.bench_planner                       # scenes-100k-256, 4 minutes
    python -m benchmarks.planner.bench_planner --dataset clustered-100k-256
    python -m benchmarks.planner.bench_planner --smoke --out "$(mktemp -d)"

Writes results/planner/<dataset>/<index>.json for the graph and for the clustered index, each with a
chart beside it, and skips what is there (--force measures again).

It is what `searchlab tune` measures, by the same code, on vectors that anybody can make: queries of
both kinds, filters that keep a random share of the photos or whole regions of them, every effort.
The record has the tuning, and for the graph also the best `step_rows` for a planner without a
tuning: the value with the mildest worst case. A case is a filter; it is measured as the planned
way's time over the faster way's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.config import Config
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.tuning.chart import draw, table, verdict
from searchlab.evaluation.tuning.index_costs import MAX_QUERIES, measure
from searchlab.evaluation.tuning.tune import ask_by_photos
from searchlab.search.indexes import build_index
from searchlab.search.indexes.hnsw import walk_length
from searchlab.studies.vectors.made import VectorSet, made_vectors

STEP_ROWS = (1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60)


def compare_plan(row: Mapping[str, Any], step_rows: int, n: int, k: int) -> float:
    """Compute the planned way's time over the faster way's, for a planner without a tuning."""
    steps = walk_length(k, row["n_allowed"] / n)
    exact = row["n_allowed"] <= steps * step_rows
    planned_ms = row["exact_ms"] if exact else row["ms"]
    return float(planned_ms / min(row["exact_ms"], row["ms"]))


def find_step_rows(rows: Sequence[Mapping[str, Any]], config: Config, n: int) -> dict[str, float]:
    """Find the value whose worst case over all filters is the mildest, and compare it with ours."""
    at_effort = [row for row in rows if row["effort"] == max(config.ef_search, config.depth)]
    worst = {
        step_rows: max(compare_plan(row, step_rows, n, config.depth) for row in at_effort)
        for step_rows in (*STEP_ROWS, config.step_rows)
    }
    best = min(STEP_ROWS, key=lambda step_rows: worst[step_rows])
    return {
        "step_rows": best,
        "worst planned/best": round(worst[best], 2),
        "step_rows in force": config.step_rows,
        "worst planned/best in force": round(worst[config.step_rows], 2),
    }


def measure_kind(vectors: VectorSet, config: Config, options: argparse.Namespace) -> dict[str, Any]:
    """Build an index, measure it and draw the chart."""
    n, texts = len(vectors.photos), vectors.queries["text"]
    order = np.random.default_rng(options.seed).permutation(n)
    kinds = {
        "image": ask_by_photos(vectors.photos, order),
        "text": lambda number: (texts[number % len(texts)], None),
    }
    started = time.perf_counter()
    index = build_index(vectors.photos, config)
    build_s = time.perf_counter() - started
    progress = ConsoleProgress(Console(stderr=True))
    tuned = measure(
        index, config, kinds, seconds=options.seconds, seed=options.seed, progress=progress
    )
    sys.stdout.write(f"{table(tuned)}\n{verdict(tuned, config)}\n")
    metrics: dict[str, float] = {"build_s": round(build_s, 1), "seconds": round(tuned.seconds, 1)}
    if config.index == "hnsw":
        metrics |= find_step_rows(tuned.rows, config, n)
    charts = draw(tuned, config, options.out / "planner" / options.dataset / config.index)
    values = {"metrics": metrics, "tuning": asdict(tuned.tuning), "rows": tuned.rows}
    record(
        options,
        "planner",
        config.index,
        values
        | {"parameters": {name: getattr(options, name) for name in ("depth", "seconds", "smoke")}}
        | {"config": config.to_dict(), "config_id": config.config_id}
        | {
            "manifest": make_manifest(
                "planner", seed=options.seed, threads=1, data={"vectors": vectors.digest}
            )
        },
        beside=charts,
    )
    return values


def main() -> None:
    """Measure and write."""
    parser = bench_parser(__doc__, dataset="scenes-100k-256")
    parser.add_argument("--depth", type=int, default=Config().depth, help="depth of rankings")
    parser.add_argument("--seconds", type=float, default=60.0, help="about so many for each index")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.seconds = "scenes-2k-32", 0.01
    vectors = None
    for kind in ("clustered", "hnsw"):
        config = Config(model="none", index=kind, depth=options.depth, seed=options.seed)
        values = on_record(options, "planner", kind)
        if values is None:
            if vectors is None:
                vectors = made_vectors(options.dataset, n_queries=MAX_QUERIES, seed=options.seed)
            values = measure_kind(vectors, config, options)
        for name, value in values["metrics"].items():
            sys.stdout.write(f"{kind} {name}: {value}\n")


if __name__ == "__main__":
    main()
