"""What an index finds, how fast, and what it costs to build and to hold; peers beside ours.

    python -m benchmarks.index.bench_index  # clustered-100k-256, 15 minutes
    python -m benchmarks.index.bench_index --dataset smooth-100k-256 --systems hnswlib
    SEARCHLAB_DATASETS=... python -m benchmarks.index.bench_index --dataset flickr8k-mini
    python -m benchmarks.index.bench_index --smoke --out "$(mktemp -d)"

Writes results/index/<dataset>/<system>.json for each system, and summary.json with two charts
beside it. Skips what is on record (--force measures again). Peers need
`pip install 'searchlab[peers]'`; one that is not installed is named as such.

Every system runs in a process of its own, bound to as many processors as --threads says. The build
takes in vectors that lie in memory and ends when queries can be answered. Queries come one at a
time, each --runs times; a query's median counts, and percentiles are over queries. Recall is
against exact float32 search, ties counted as found. Memory is what the process grew by, plus the
caller's vectors where a system searches those.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.fresh_process import Usage, size_mib
from benchmarks.common.index_charts import draw_costs, draw_recall
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
from searchlab.cli.console import ConsoleProgress
from searchlab.search.indexes import ExactIndex, Neighbors
from searchlab.studies.index.recall import fastest_at, measure_search
from searchlab.studies.vectors.made import VectorSet
from searchlab.studies.vectors.real import REAL, vector_set

SYSTEMS = (
    "searchlab-hnsw",
    "searchlab-hnsw-M8",
    "searchlab-hnsw-M32",
    "searchlab-exact",
    "searchlab-clustered",
    "searchlab-int8",
    "hnswlib",
    "hnswlib-huge",
    "faiss-hnsw",
    "faiss-flat",
    "faiss-ivf-sq8",
    "faiss-ivf-rabitq",
    "usearch",
    "usearch-f16",
    "lancedb",
    "pgvector",
    "milvus-lite",
    "qdrant-local",
    "chroma",
)
OURS = "searchlab-hnsw"
DEPTHS = (10, 100)
TARGETS = (0.95, 0.99)
KINDS = ("image", "text")


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Build one system and ask it all queries with every effort."""
    progress = ConsoleProgress(Console(stderr=True))
    n_queries = 10 if options.smoke else options.queries
    vectors = vector_set(
        options.dataset,
        n_queries=n_queries,
        seed=options.seed,
        progress=progress,
        cache=options.cache,
    )
    peer = PEERS[name].make(seed=options.seed, threads=options.threads)
    peer.load()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        before, started = Usage.now(), time.perf_counter()
        peer.build(vectors.photos, {}, Path(scratch))
        build_s, after = time.perf_counter() - started, Usage.now(*peer.pids)
        borrowed = vectors.photos.nbytes / 2**20 if peer.borrows else 0.0
        peer.save(Path(scratch))
        metrics = {
            "build_s": build_s,
            "build_cpu_s": after.cpu_s - before.cpu_s,
            "memory_mib": after.resident_mib - before.resident_mib + borrowed,
            "stored_mib": size_mib(Path(scratch)),
        }
        points = _points(name, peer, vectors, options.runs, progress)
        peer.close()
    return {
        "parameters": {
            "system": peer.settings,
            "n_photos": len(vectors.photos),
            "dim": vectors.photos.shape[1],
            "n_queries": n_queries,
            "runs": options.runs,
            "threads": options.threads,
            "about": vectors.about,
        },
        "metrics": _round_floats(metrics | _at_targets(points)),
        "points": [_round_floats(point) for point in points],
        "vectors": vectors.digest,
    }


def _points(
    name: str, peer: Peer, vectors: VectorSet, runs: int, progress: ConsoleProgress
) -> list[dict[str, Any]]:
    exact = {
        kind: ExactIndex(vectors.photos).search(rows, max(DEPTHS))
        for kind, rows in vectors.queries.items()
    }
    points = []
    efforts: tuple[int | None, ...] = peer.efforts or (None,)
    with progress.step(name, len(efforts) * len(KINDS) * len(DEPTHS), unit="points") as step:
        for effort in efforts:
            if effort is not None:
                peer.set_effort(effort)
            for kind, queries in vectors.queries.items():
                for k in DEPTHS:
                    true = Neighbors(exact[kind].rows[:, :k], exact[kind].scores[:, :k])
                    measured = measure_search(peer.search, vectors.photos, queries, true, runs=runs)
                    started = time.perf_counter()
                    peer.search_many(queries, k)
                    per_s = len(queries) / (time.perf_counter() - started)
                    labels = {"effort": effort, "queries": kind, "k": k, "batch_per_s": per_s}
                    points.append({**labels, **measured})
                    step.advance(1)
    return points


def _at_targets(points: list[dict[str, Any]]) -> dict[str, float]:
    metrics = {}
    for kind in KINDS:
        of_kind = [point for point in points if (point["queries"], point["k"]) == (kind, 10)]
        metrics[f"recall@10 {kind}"] = max(point["recall"] for point in of_kind)
        for target in TARGETS:
            point = fastest_at(of_kind, target)
            if point is not None:
                metrics |= {
                    f"{time} {kind} at {target}": point[time] for time in ("p50_ms", "p99_ms")
                }
                metrics[f"batch_per_s {kind} at {target}"] = point["batch_per_s"]
    return metrics


def _round_floats(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in values.items()}


def summarise(options: argparse.Namespace, outcome: Outcome) -> str:
    """Write summary.json and its charts; returns the table, ratios first."""
    folder = options.out / "index" / options.dataset
    charts = [*draw_recall(outcome.records, folder), *draw_costs(outcome.records, folder)]
    tables = make_tables(outcome)
    values = {
        "parameters": {"compared_with": OURS, "k": 10, "threads": options.threads},
        **tables,
        "missing": outcome.missing,
        "manifest": summary_manifest(options, "index", outcome.records.values()),
    }
    record(options, "index", "summary", values, beside=charts)
    return _table(outcome, tables["metrics"])


def recompute(measurement: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the tables of a summary again from the records that lie beside it now."""
    return make_tables(recorded_beside(measurement, folder))


def make_tables(outcome: Outcome) -> dict[str, Any]:
    """Compare the systems with ours, and put them into rows."""
    ours = outcome.records.get(OURS, {"metrics": {}})["metrics"]
    metrics: dict[str, float] = {}
    for name, system in outcome.records.items():
        for key, value in system["metrics"].items():
            if ours.get(key) and "recall" not in key:
                metrics[f"{name} / {OURS} {key}"] = round(value / ours[key], 3)
    rows = [
        {
            "system": name,
            **origin_of(system),
            "n_queries": system["parameters"]["n_queries"],
            **system["metrics"],
        }
        for name, system in outcome.records.items()
    ]
    return {"metrics": metrics, "rows": rows}


def _table(outcome: Outcome, ratios: Mapping[str, float]) -> str:
    columns = [f"p50_ms {kind} at {target}" for kind in KINDS for target in TARGETS]
    columns += ["build_s", "memory_mib", "stored_mib"]
    titles = [c.replace("p50_ms ", "").replace(" at ", " ≥") for c in columns]
    lines = [
        f"Times as much as {OURS} (and p50 in ms at that recall@10, seconds, MiB)",
        f"{'':20}" + "".join(f"{title:>18}" for title in titles),
    ]
    for name, system in outcome.records.items():
        cells = ""
        for column in columns:
            ratio, value = ratios.get(f"{name} / {OURS} {column}"), system["metrics"].get(column)
            cell = "not reached" if value is None else f"{value:,.2f}"
            cell = cell if ratio is None else f"{ratio:.2f}x ({value:,.2f})"
            cells += f"{cell:>18}"
        lines.append(f"{name:20}{cells}")
    lines += [f"{name:20}{reason}" for name, reason in outcome.missing.items()]
    return "\n".join(lines)


def main() -> None:
    """Measure, summarise, draw."""
    parser = bench_parser(__doc__, dataset="clustered-100k-256")
    parser.set_defaults(runs=3)
    parser.add_argument("--queries", type=int, default=100, help="of each kind")
    parser.add_argument("--cache", type=Path, help=f"keeps the vectors of {', '.join(REAL)}")
    add_systems(parser, SYSTEMS)
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.runs = "clustered-2k-32", 1
    outcome = measure_systems(options, "index", SYSTEMS, measure)
    sys.stdout.write(summarise(options, outcome) + "\n")
    if outcome.failed:
        sys.exit(f"failed: {', '.join(outcome.failed)}")


if __name__ == "__main__":
    main()
