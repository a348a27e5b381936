"""hnswlib over settings of its build: what M and ef_construction cost, and what they buy.

    SEARCHLAB_DATASETS=... python -m benchmarks.index.bench_graph_settings --cache DIR  # 2 minutes
    SEARCHLAB_DATASETS=... python -m benchmarks.index.bench_graph_settings --dataset spliced-100k \
        --cache DIR  # 100,000 real text vectors, 30 minutes
    python -m benchmarks.index.bench_graph_settings --smoke --out "$(mktemp -d)"

Writes results/graph/<dataset>/settings.json, and skips what is there (--force measures again). Each
graph is built by one thread, and asked with every `ef`; the clustered index is asked the same in
the same run. For each kind of query a row has the least `ef` that finds 0.99 of the 20 nearest, and
its median time; empty where none does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.common.peers import PEERS
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.search.indexes import ExactIndex
from searchlab.studies.index.recall import fastest_at, measure_search
from searchlab.studies.vectors.made import VectorSet
from searchlab.studies.vectors.real import REAL, vector_set

BENCHMARK, NAME = "graph", "settings"
K, TARGET = 20, 0.99
EFFORTS = (20, 40, 80, 160, 320, 640, 1280)
KINDS = ("image", "text")
SETTINGS = tuple((M, ef) for M in (8, 16, 32, 48) for ef in (100, 200, 400))
USUAL = (16, 200)


def measure(
    vectors: VectorSet, settings: tuple[tuple[int, int], ...], *, runs: int, seed: int
) -> list[dict[str, Any]]:
    """Build and ask every graph, then the clustered index; a row for each."""
    progress = ConsoleProgress(Console(stderr=True))
    exact = {kind: ExactIndex(vectors.photos).search(vectors.queries[kind], K) for kind in KINDS}
    rows = []
    with progress.step("graph", len(settings) + 1, unit="indexes") as step, threadpool_limits(1):
        for M, ef_construction in settings:
            made = {"M": M, "ef_construction": ef_construction}
            peer = PEERS["hnswlib"].make(seed=seed, **made)
            rows.append({"system": "hnswlib", **made, **ask(peer, EFFORTS, vectors, exact, runs)})
            step.advance(1)
        ours = PEERS["searchlab-clustered"].make(seed=seed)
        rows.append(
            {"system": "searchlab-clustered", **ask(ours, ours.efforts, vectors, exact, runs)}
        )
        step.advance(1)
    return rows


def ask(
    peer: Any, efforts: tuple[Any, ...], vectors: VectorSet, exact: Mapping[str, Any], runs: int
) -> dict[str, Any]:
    """Build one index and ask it with every effort; returns what the build and the target cost."""
    peer.load()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        used = time.process_time()
        peer.build(vectors.photos, {}, Path(scratch))
        row: dict[str, Any] = {"build_cpu_s": round(time.process_time() - used, 2)}
        for kind in KINDS:
            points = []
            for effort in efforts:
                peer.set_effort(effort)
                asked = vectors.queries[kind]
                measured = measure_search(
                    peer.search, vectors.photos, asked, exact[kind], runs=runs
                )
                points.append({"effort": effort, **measured})
                if measured["recall"] >= TARGET:
                    break  # a larger effort only costs more
            best = fastest_at(points, TARGET)
            row[f"most recall {kind}"] = round(max(point["recall"] for point in points), 4)
            row[f"effort {kind}"] = best and best["effort"]
            row[f"recall {kind}"] = best and round(best["recall"], 4)
            row[f"p50_ms {kind}"] = best and round(best["p50_ms"], 4)
        peer.close()
    return row


def compare(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Take from the rows the best of all settings, the usual ones and ours, by kind of query."""
    graphs = [row for row in rows if row["system"] == "hnswlib"]
    (ours,) = (row for row in rows if row["system"] != "hnswlib")
    metrics: dict[str, float] = {}
    for kind in KINDS:
        of_usual = next((r for r in graphs if (r["M"], r["ef_construction"]) == USUAL), None)
        reaching = [row for row in graphs if row[f"p50_ms {kind}"] is not None]
        best = min(reaching, key=lambda row: row[f"p50_ms {kind}"], default=None)
        named = {"usual": of_usual, "best": best, "clustered": ours}
        for name, row in named.items():
            if row is not None and row[f"p50_ms {kind}"] is not None:
                metrics[f"p50_ms {kind}, {name}"] = row[f"p50_ms {kind}"]
    return metrics


def main() -> None:
    """Measure and write, unless it is on record."""
    parser = bench_parser(__doc__, dataset="photos-mini")
    parser.set_defaults(runs=3)
    parser.add_argument("--queries", type=int, default=200, help="queries of each kind")
    parser.add_argument("--cache", type=Path, help=f"keeps the vectors of {', '.join(REAL)}")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.queries, options.runs = "clustered-2k-32", 10, 1
    if on_record(options, BENCHMARK, NAME) is not None:
        return
    vectors = vector_set(
        options.dataset,
        n_queries=options.queries,
        seed=options.seed,
        progress=ConsoleProgress(Console(stderr=True)),
        cache=options.cache,
    )
    settings = (USUAL,) if options.smoke else SETTINGS
    rows = measure(vectors, settings, runs=options.runs, seed=options.seed)
    parameters = {
        "k": K,
        "target": TARGET,
        "efforts": list(EFFORTS),
        "n_photos": len(vectors.photos),
        "dim": vectors.photos.shape[1],
        "n_queries": options.queries,
        "runs": options.runs,
        "about": vectors.about,
    }
    manifest = make_manifest(
        BENCHMARK, seed=options.seed, threads=options.threads, data={"vectors": vectors.digest}
    )
    values = {
        "parameters": parameters,
        "metrics": compare(rows),
        "rows": rows,
        "manifest": manifest,
    }
    record(options, BENCHMARK, NAME, values)
    for row in rows:
        sys.stdout.write(f"{row}\n")


if __name__ == "__main__":
    main()
