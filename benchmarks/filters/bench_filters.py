"""Filter atlas: recall, short pages, time and plan under filters of every strictness and relation.

    python -m benchmarks.filters.bench_filters                                # clustered-100k-256
    python -m benchmarks.filters.bench_filters --systems searchlab-planned,hnswlib
    python -m benchmarks.filters.bench_filters --dataset smooth-100k-256
    SEARCHLAB_DATASETS=... python -m benchmarks.filters.bench_filters --dataset photos-mini
    python -m benchmarks.filters.bench_filters --smoke --out "$(mktemp -d)"

Writes results/filters/<dataset>/<system>.json with a row for every cell, and summary.json with
charts beside it. Skips what is on record (--force measures again). The cells are those of
`searchlab.studies.filters.atlas`: 100 % to 0.01 % of the photos; unrelated to the query, near it,
or far from it; by one, two or three conditions; queries like photos, and with one condition also
like captions. Over the vectors of real photos (`photos-mini`, `flickr8k-mini`, `demo-mini`)
queries are held-out photos and real captions. Peers need `pip install 'searchlab[peers]'`.

Every system gets the query's vector. The time from there to the ten rows is measured: ours is
`SearchEngine.rank` with the mask of its `PhotoFilter`, the plan and the search, as it is served;
peers filter in the way that they offer, and where that takes a mask, making the mask is part of the
time. Graphs keep 200 candidates, and our clustered index is to find 99 in 100. Every system runs in
a process of its own on one processor. A cell stops after --budget seconds but has three queries at
least (`n_queries`: p95 and p99 of few queries say little), and a system stops after --limit
seconds: the cells that it did not reach are left out and counted. An answer is short when it holds
fewer photos than min(10, allowed).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.common.peer_runs import (
    Outcome,
    add_systems,
    measure_systems,
    origin_of,
    recorded_beside,
    summary_manifest,
)
from benchmarks.common.peers import PEERS, Peer
from benchmarks.common.recording import bench_parser, record
from benchmarks.filters.charts import draw_plans, draw_short, draw_speed, key_cells
from searchlab.cli.console import ConsoleProgress
from searchlab.studies.filters.atlas import SHARES, Atlas, Kind, cells, measure_cell
from searchlab.studies.vectors.real import POOL, REAL, vector_set

SYSTEMS = (
    "searchlab-clustered",
    "searchlab-planned",
    "searchlab-exact",
    "searchlab-graph",
    "searchlab-pgvector",
    "hnswlib",
    "faiss-hnsw",
    "faiss-flat",
    "faiss-ivf-sq8",
    "lancedb",
    "pgvector",
    "milvus-lite",
    "qdrant-local",
    "chroma",
    "usearch",
)
OURS = ("searchlab-clustered", "searchlab-planned")
KINDS: tuple[Kind, ...] = ("image", "text")
K = 10
_SMOKE_SHARES = (1.0, 0.2, 0.01, 0.001)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Build one system and go through all cells."""
    progress = ConsoleProgress(Console(stderr=True))
    is_real = options.dataset in REAL
    vectors = vector_set(
        options.dataset,
        n_queries=POOL if is_real else 1,
        seed=options.seed,
        progress=progress,
        cache=options.cache,
    )
    atlas = Atlas(
        vectors.photos,
        n_queries=options.queries,
        seed=options.seed,
        real=vectors.queries if is_real else None,
    )
    peer = PEERS[name].make(seed=options.seed, threads=options.threads)
    result = {"vectors": vectors.digest}
    if not peer.filters:
        return result | {
            "parameters": _parameters(peer, options, atlas),
            "metrics": {},
            "cells": [],
        }
    places = sorted(
        cells(_SMOKE_SHARES if options.smoke else SHARES, kinds=KINDS),
        key=lambda cell: (cell.n_conditions, -cell.share),
    )
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        progress.step(name, len(places), unit="cells") as step,
    ):
        step.note("building")
        peer.build(atlas.vectors, atlas.columns, Path(scratch))
        if peer.efforts:
            peer.set_effort(peer.filter_effort)
        started = time.perf_counter()
        for cell in places:
            if time.perf_counter() - started > options.limit:
                break
            step.note(cell.name)
            row = measure_cell(peer.search_filtered, atlas, cell, k=K, budget_s=options.budget)
            rows.append(row | {"plan": peer.plan})
            step.advance(1)
        peer.close()
    return result | {
        # Asked last, since a server tells its version and its limits only when it runs.
        "parameters": _parameters(peer, options, atlas),
        "metrics": _summarise_cells(rows),
        "cells": [_round_floats(row) for row in rows],
    }


def _parameters(peer: Peer, options: argparse.Namespace, atlas: Atlas) -> dict[str, Any]:
    return {
        "system": peer.settings,
        "filters": peer.filters or "it has no filter in its Python package",
        "k": K,
        "effort": peer.filter_effort,
        "n_photos": len(atlas.vectors),
        "dim": atlas.vectors.shape[1],
        "n_queries": options.queries,
        "budget_s": options.budget,
        "limit_s": options.limit,
        "threads": options.threads,
    }


def _round_floats(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}


def _summarise_cells(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    if not rows:
        return {}
    plans = Counter(row["plan"] for row in rows)
    metrics: dict[str, float] = {
        "cells": len(rows),
        "share of cells with recall@10 of 0.99": np.mean([row["recall"] >= 0.99 for row in rows]),
        "recall@10 mean": np.mean([row["recall"] for row in rows]),
        "recall@10 worst cell": min(row["recall"] for row in rows),
        "short mean": np.mean([row["short"] for row in rows]),
        "short worst cell": max(row["short"] for row in rows),
        "wrong worst cell": max(row["wrong"] for row in rows),
    }
    for figure in ("p50_ms", "p95_ms", "p99_ms"):
        metrics[f"{figure} mean"] = np.exp(np.mean(np.log([row[figure] for row in rows])))
        metrics[f"{figure} worst cell"] = max(row[figure] for row in rows)
    return {k: round(float(v), 4) for k, v in metrics.items()} | {
        f"cells by {plan}": count for plan, count in plans.items()
    }


def summarise(options: argparse.Namespace, outcome: Outcome) -> str:
    """Write summary.json and its charts; returns the table, ratios first."""
    for name in [name for name, values in outcome.records.items() if not values["cells"]]:
        outcome.missing[name] = outcome.records.pop(name)["parameters"]["filters"]
    folder = options.out / "filters" / options.dataset
    charts = [*draw_short(outcome.records, folder), *draw_plans(outcome.records, folder)]
    for kind in KINDS:
        charts += draw_speed(outcome.records, folder, kind=kind)
    tables = make_tables(outcome)
    values = {
        "parameters": {"compared_with": list(OURS), "k": K, "threads": options.threads},
        **tables,
        "missing": outcome.missing,
        "manifest": summary_manifest(options, "filters", outcome.records.values()),
    }
    record(options, "filters", "summary", values, beside=charts)
    return _table(outcome, tables["metrics"])


def recompute(measurement: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the tables of a summary again from the records that lie beside it now."""
    return make_tables(recorded_beside(measurement, folder))


def make_tables(outcome: Outcome) -> dict[str, Any]:
    """Compare the systems with each of ours, and put them into rows."""
    metrics: dict[str, float] = {}
    for ours in OURS:
        metrics |= _ratios(outcome, ours)
    rows = [
        {"system": name, **origin_of(system), **_ways(system), **system["metrics"]}
        for name, system in outcome.records.items()
    ]
    return {"metrics": metrics, "rows": rows}


def _ways(system: Mapping[str, Any]) -> dict[str, str]:
    """Say how a system filters, and of how many queries the median of a cell is taken."""
    counts = [cell["n_queries"] for cell in system["cells"]]
    queries = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(counts[0])
    return {"filters": system["parameters"]["filters"], "queries": queries}


def _ratios(outcome: Outcome, base: str) -> dict[str, float]:
    """Compare every system with one of ours, cell by cell where both were measured."""
    metrics: dict[str, float] = {}
    ours = key_cells(outcome.records[base]) if base in outcome.records else {}
    for name, system in outcome.records.items():
        pairs = [(cell, ours[place]) for place, cell in key_cells(system).items() if place in ours]
        if not pairs:
            continue
        for figure in ("p50_ms", "p95_ms"):
            ratios = [theirs[figure] / mine[figure] for theirs, mine in pairs]
            metrics[f"{name} / {base} {figure}"] = _mean(ratios)
            metrics[f"{name} / {base} {figure} worst cell"] = max(ratios)
            metrics[f"{name} / {base} {figure} best cell"] = min(ratios)
        for percent in (100, 10, 1, 0.1):
            ratios = [a["p50_ms"] / b["p50_ms"] for a, b in pairs if 100 * a["share"] == percent]
            if ratios:
                place = f"at {percent:g}%" if percent < 100 else "without a filter"
                metrics[f"{name} / {base} p50_ms {place}"] = _mean(ratios)
        wide = [a["p50_ms"] / b["p50_ms"] for a, b in pairs if 0.1 <= a["share"] < 1]
        if wide:
            metrics[f"{name} / {base} p50_ms at 10% and more"] = _mean(wide)
        reaching = [theirs for theirs, _ in pairs if theirs["recall"] >= 0.95]
        metrics[f"{name} share of cells with recall@10 of 0.95"] = len(reaching) / len(pairs)
    return {name: round(value, 4) for name, value in metrics.items()}


def _mean(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def _table(outcome: Outcome, ratios: Mapping[str, float]) -> str:
    base = next((name for name in OURS if name in outcome.records), OURS[0])
    lines = [
        f"Times the milliseconds of {base} (geometric mean over cells; the best, the worst cell)",
        f"{'':20}{'p50':>8}{'best':>8}{'worst':>9}{'p95':>8}{'recall@10':>11}{'worst':>7}"
        f"{'short':>8}{'worst':>7}{'p50 ms':>9}{'p95 ms':>9}{'cells':>7}",
    ]
    for name, system in outcome.records.items():
        figures = system["metrics"]
        p50 = f"{name} / {base} p50_ms"
        times = (
            f"{ratios[p50]:>7.2f}x{ratios[f'{p50} best cell']:>7.2f}x"
            f"{ratios[f'{p50} worst cell']:>8.2f}x{ratios[f'{name} / {base} p95_ms']:>7.2f}x"
            if p50 in ratios
            else f"{'-':>33}"
        )
        lines.append(
            f"{name:20}{times}"
            f"{figures['recall@10 mean']:>11.3f}{figures['recall@10 worst cell']:>7.3f}"
            f"{figures['short mean']:>8.1%}{figures['short worst cell']:>7.0%}"
            f"{figures['p50_ms mean']:>9.3f}{figures['p95_ms mean']:>9.3f}{figures['cells']:>7.0f}"
        )
    lines += [f"{name:20}{reason}" for name, reason in outcome.missing.items()]
    return "\n".join(lines)


def main() -> None:
    """Measure, summarise, draw."""
    parser = bench_parser(__doc__, dataset="clustered-100k-256")
    parser.add_argument("--queries", type=int, default=100, help="most queries of a cell")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds of a cell")
    parser.add_argument("--limit", type=float, default=60, help="seconds of a system's cells")
    parser.add_argument("--cache", type=Path, help=f"keeps the vectors of {', '.join(REAL)}")
    add_systems(parser, SYSTEMS)
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.queries, options.budget = "clustered-2k-32", 5, 0.0
    outcome = measure_systems(options, "filters", SYSTEMS, measure)
    sys.stdout.write(summarise(options, outcome) + "\n")
    if outcome.failed:
        sys.exit(f"failed: {', '.join(outcome.failed)}")


if __name__ == "__main__":
    main()
