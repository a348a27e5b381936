"""What a step through the graph costs beside scoring a photo: the figure behind `step_rows`.

    python benchmarks/bench_planner.py                       # clustered-100k-256, 3 minutes
    python benchmarks/bench_planner.py --smoke --out "$(mktemp -d)"

Writes results/planner/<dataset>/step_rows.json with a chart beside it, and skips what is there
(--force measures again).

Vectors come in clusters, as those of photos do; filters keep a random share of the rows, or whole
clusters (aligned with what queries look for, the hard case). Both ways answer the same queries in
turn, one at a time on one thread. Reported are the median milliseconds of each, the share of the
true neighbours that the graph found, and the `step_rows` with which the planner does best: the one
whose worst choice over all filters takes the fewest times the faster way's milliseconds.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from threadpoolctl import threadpool_limits

from searchlab.benchmarking import bench_parser, on_record, record
from searchlab.charts import chart, look, save_chart
from searchlab.config import Config
from searchlab.console import ConsoleProgress
from searchlab.indexes import INDEXES, ExactIndex, Neighbors, VectorIndex
from searchlab.indexes.hnsw import walk_length
from searchlab.labs.vectors import clustered, near
from searchlab.manifest import make_manifest
from searchlab.metrics import recall_at_k
from searchlab.models.protocol import Embeddings

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
STEP_ROWS = (1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60)


def timed(
    index: VectorIndex, queries: Embeddings, k: int, allowed: NDArray[np.bool_] | None
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


def measure(n: int, dim: int, n_queries: int, config: Config) -> dict[str, Any]:
    """Time both ways at every selectivity."""
    vectors, member = clustered(n, dim, clusters=max(n // 500, 4), seed=config.seed)
    rng = np.random.default_rng(config.seed + 1)
    queries = near(vectors[rng.choice(n, n_queries)], seed=config.seed + 2)
    started = time.perf_counter()
    graph = INDEXES["hnsw"](vectors, config, np.arange(n))
    build_s = time.perf_counter() - started
    exact = ExactIndex(vectors)
    rows: list[dict[str, Any]] = []
    progress = ConsoleProgress(Console(stderr=True))
    with progress.step("planner", 2 * len(SHARES), unit="filters") as step:
        for kind in ("random", "aligned"):
            for share in SHARES:
                if kind == "random":
                    allowed = rng.random(n) < share
                else:
                    allowed = member < max(1, round(share * (member.max() + 1)))
                mask = None if share == 1 else allowed
                graph_ms, found = timed(graph, queries, config.depth, mask)
                exact_ms, true = timed(exact, queries, config.depth, mask)
                n_allowed = n if mask is None else int(np.count_nonzero(mask))
                rows.append(
                    {
                        "filter": kind,
                        "n_allowed": n_allowed,
                        "selectivity": round(n_allowed / n, 4),
                        "graph_ms": round(graph_ms, 4),
                        "exact_ms": round(exact_ms, 4),
                        "recall": round(recall_at_k(found, true), 4),
                    }
                )
                step.advance(1)
    metrics = {"build_s": round(build_s, 1), **best_step_rows(rows, n, config.depth)}
    return {"metrics": metrics, "rows": rows}


def planned_over_best(row: Mapping[str, Any], step_rows: int, n: int, k: int) -> float:
    """How many times the faster way's time the planner would take."""
    steps = walk_length(k, row["n_allowed"] / n)
    exact = row["n_allowed"] <= steps * step_rows
    taken = row["exact_ms"] if exact else row["graph_ms"]
    return float(taken / min(row["exact_ms"], row["graph_ms"]))


def best_step_rows(rows: Sequence[Mapping[str, Any]], n: int, k: int) -> dict[str, float]:
    """The value whose worst case over all filters is the mildest, that worst case, and ours."""
    worst = {
        step_rows: max(planned_over_best(row, step_rows, n, k) for row in rows)
        for step_rows in STEP_ROWS
    }
    best = min(worst, key=lambda step_rows: worst[step_rows])
    ours = Config().step_rows
    in_force = max(planned_over_best(row, ours, n, k) for row in rows)
    return {
        "step_rows": best,
        "worst planned/best": round(worst[best], 2),
        "step_rows in force": ours,
        "worst planned/best in force": round(in_force, 2),
    }


def draw(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw both ways against selectivity."""
    with chart(9, 4.2, columns=2, sharey=True) as (figure, axes):
        for axis, kind in zip(axes, ("random", "aligned"), strict=True):
            some = [row for row in rows if row["filter"] == kind]
            shares = [100 * row["selectivity"] for row in some]
            for number, way in enumerate(("graph", "exact")):
                axis.plot(shares, [row[f"{way}_ms"] for row in some], label=way, **look(number))
            axis.set(xscale="log", yscale="log", xlabel="photos that the filter keeps (%)")
            axis.set_xticks([100, 10, 1], ["100", "10", "1"])
            axis.invert_xaxis()
            axis.set_title("at random" if kind == "random" else "whole clusters")
        axes[0].set_ylabel("median of a query (ms), lower is better")
        axes[0].legend()
        figure.suptitle(
            "The stricter the filter, the dearer the graph and the cheaper exact search"
        )
        return save_chart(figure, folder / "step_rows")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay the rows out, ratio first."""
    lines = [f"{'filter':9}{'photos kept':>12}{'graph/exact':>13}{'graph ms':>10}{'exact ms':>10}"]
    lines += [
        f"{row['filter']:9}{row['selectivity']:>12.2%}{row['graph_ms'] / row['exact_ms']:>12.2f}x"
        f"{row['graph_ms']:>10.3f}{row['exact_ms']:>10.3f}"
        for row in rows
    ]
    return "\n".join(lines)


def size_of(dataset: str) -> tuple[int, int]:
    """Read photos and components from a name such as `clustered-100k-256`."""
    found = re.fullmatch(r"clustered-(\d+)(k?)-(\d+)", dataset)
    if found is None:
        sys.exit(f"--dataset must be clustered-N-DIM, such as clustered-100k-256, got {dataset!r}")
    return int(found[1]) * (1000 if found[2] else 1), int(found[3])


def main() -> None:
    """Measure and write."""
    parser = bench_parser(__doc__, dataset="clustered-100k-256")
    parser.add_argument("--depth", type=int, default=Config().depth, help="of the ranking")
    parser.add_argument("--queries", type=int, default=100)
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.queries = "clustered-2k-32", 10
    n, dim = size_of(options.dataset)
    config = Config(model="none", index="hnsw", depth=options.depth, seed=options.seed)
    found = on_record(options, "planner", "step_rows")
    if found is None:
        with threadpool_limits(limits=options.threads):
            found = measure(n, dim, options.queries, config)
        found["parameters"] = parameters_of(options)
        found |= {"config": config.to_dict(), "config_id": config.config_id}
        found["manifest"] = make_manifest(seed=options.seed, threads=options.threads)
        charts = draw(found["rows"], options.out / "planner" / options.dataset)
        record(options, "planner", "step_rows", found, beside=charts)
    sys.stdout.write(table(found["rows"]) + "\n")
    for name, value in found["metrics"].items():
        sys.stdout.write(f"{name}: {value}\n")


def parameters_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was asked, as it is recorded."""
    return {name: getattr(options, name) for name in ("depth", "queries", "threads", "smoke")}


if __name__ == "__main__":
    main()
