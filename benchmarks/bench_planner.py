"""What a step through the graph costs beside scoring a photo: the figure behind `step_rows`.

    python benchmarks/bench_planner.py
    python benchmarks/bench_planner.py --smoke --out "$(mktemp -d)"

Writes results/planner/<dataset>/<config_id>.json and skips what is there (--force measures again).

Vectors come in clusters, as those of photos do; filters keep a random share of the rows, or whole
clusters (aligned with what queries look for, the hard case). Both ways answer the same queries in
turn, one at a time on one thread. Reported are the median milliseconds of each, the share of the
true neighbours that the graph found, and the `step_rows` with which the planner does best: the one
whose worst choice over all filters takes the fewest times the faster way's milliseconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from searchlab.config import Config
from searchlab.indexes import INDEXES, ExactIndex, Neighbors, VectorIndex
from searchlab.indexes.hnsw import walk_length
from searchlab.metrics import recall_at_k
from searchlab.models.protocol import Embeddings, unit_rows
from searchlab.results import environment

ROOT = Path(__file__).resolve().parent.parent
SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)


def clustered(n: int, dim: int, *, clusters: int, seed: int) -> tuple[Embeddings, np.ndarray]:
    """Unit rows about cluster centres, and each row's cluster."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, dim))
    member = rng.integers(0, clusters, n)
    rows = centres[member] + 0.8 * rng.standard_normal((n, dim))
    return unit_rows(rows), member


def timed(
    index: VectorIndex, queries: Embeddings, k: int, allowed: np.ndarray | None
) -> tuple[float, Neighbors]:
    """Median milliseconds of a query, and the answers."""
    seconds, rows, scores = [], [], []
    for query in queries:
        started = time.perf_counter()
        found = index.search(query[np.newaxis], k, allowed=allowed)
        seconds.append(time.perf_counter() - started)
        rows.append(found.rows[0])
        scores.append(found.scores[0])
    return 1000 * float(np.median(seconds)), Neighbors(np.array(rows), np.array(scores))


def measure(n: int, dim: int, n_queries: int, config: Config) -> dict[str, object]:
    """Time both ways at every selectivity."""
    vectors, member = clustered(n, dim, clusters=max(n // 500, 4), seed=config.seed)
    rng = np.random.default_rng(1)
    near = vectors[rng.choice(n, n_queries)] + 0.05 * rng.standard_normal((n_queries, dim))
    queries = unit_rows(near)
    started = time.perf_counter()
    graph = INDEXES["hnsw"](vectors, config, np.arange(n))
    build_s = time.perf_counter() - started
    exact = ExactIndex(vectors)
    table = []
    for kind in ("random", "aligned"):
        for share in SHARES:
            if kind == "random":
                allowed = rng.random(n) < share
            else:
                clusters = np.arange(member.max() + 1)
                allowed = np.isin(member, clusters[: max(1, round(share * len(clusters)))])
            allowed |= share == 1
            mask = None if share == 1 else allowed
            graph_ms, found = timed(graph, queries, config.depth, mask)
            exact_ms, true = timed(exact, queries, config.depth, mask)
            row = {
                "filter": kind,
                "n_allowed": int(allowed.sum()),
                "selectivity": round(float(allowed.mean()), 4),
                "graph_ms": round(graph_ms, 4),
                "exact_ms": round(exact_ms, 4),
                "recall@k": round(recall_at_k(found, true), 4),
            }
            table.append(row)
            sys.stdout.write(json.dumps(row) + "\n")
    return {"build_s": round(build_s, 1), "rows": table} | best_step_rows(table, n, config.depth)


def planned_over_best(row: dict[str, float], step_rows: int, n: int, k: int) -> float:
    """How many times the faster way's time the planner would take."""
    steps = walk_length(k, 1.0 if row["n_allowed"] == n else row["n_allowed"] / n)
    exact = row["n_allowed"] <= steps * step_rows
    taken = row["exact_ms"] if exact else row["graph_ms"]
    return taken / min(row["exact_ms"], row["graph_ms"])


def best_step_rows(table: list[dict[str, float]], n: int, k: int) -> dict[str, float]:
    """The value whose worst case over all filters is the mildest, and that worst case."""
    worst = {
        step_rows: max(planned_over_best(row, step_rows, n, k) for row in table)
        for step_rows in (1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60)
    }
    best = min(worst, key=lambda step_rows: worst[step_rows])
    return {"step_rows": best, "worst_planned/best": round(worst[best], 2)}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="clustered-100k-256")
    parser.add_argument("-k", type=int, default=200, help="depth of the ranking")
    parser.add_argument("--runs", type=int, default=100, help="queries")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="seconds, on few rows")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    n, dim = (2_000, 32) if options.smoke else (100_000, 256)
    dataset = f"clustered-{n}-{dim}" if options.smoke else options.dataset
    config = Config(model="none", index="hnsw", depth=options.k)
    path = options.out / "planner" / dataset / f"{config.config_id}.json"
    if path.exists() and not options.force:
        sys.stdout.write(f"{path} is there; --force measures again\n")
        return
    with threadpool_limits(limits=1):
        metrics = measure(n, dim, 10 if options.smoke else options.runs, config)
    result = {
        "schema": 1,
        "benchmark": "planner",
        "dataset": dataset,
        "config_id": config.config_id,
        "config": config.to_dict(),
        "metrics": metrics,
        "environment": environment(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"step_rows {metrics['step_rows']}: {path}\n")


if __name__ == "__main__":
    main()
