"""hnswlib at its best: what more threads, huge pages and an `ef` for each kind of query bring.

    python -m benchmarks.index.bench_graph                          # scenes-200k-512, 15 minutes
    python -m benchmarks.index.bench_graph --dataset photos-mini --cache DIR      # real photos
    python -m benchmarks.index.bench_graph --smoke --out "$(mktemp -d)"

Writes results/graph/<dataset>/hnsw.json with a chart beside it, and skips what is there (--force
measures again).

Two graphs of the same vectors are built, each in a process of its own: one by one thread, the same
at every build, and one by a thread for each processor. Then processes that may use one processor
open them and answer queries, --runs times in turn: the first graph as it is, the same in huge pages
(`GLIBC_TUNABLES=glibc.malloc.hugetlb=1` in the environment), and the second graph. A query's time
is processor time, the least of the runs; reported is the median over queries. Recall@20 is against
exact search.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.common.again import only
from benchmarks.common.fresh_process import in_fresh_process
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.config import Config
from searchlab.evaluation.charts import chart, look, save_chart
from searchlab.evaluation.metrics import recall_at_k
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.search.indexes import ExactIndex, HnswIndex, open_index
from searchlab.studies.vectors.made import VectorSet
from searchlab.studies.vectors.real import REAL, vector_set

K = 20
EFFORTS = (20, 50, 100, 200, 400, 800, 1600)
KINDS = ("image", "text")
TARGETS = (0.95, 0.99)
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


class Way(NamedTuple):
    """A graph and how its process is started."""

    name: str
    graph: str
    environment: Mapping[str, str]


WAYS = (
    Way("one thread", "one", {}),
    Way("one thread, huge pages", "one", HUGE_PAGES),
    Way("all threads", "all", {}),
)


def build(folder: Path, graph: str, threads: int, seed: int) -> dict[str, float]:
    """Build a graph of the vectors in a folder and save it there."""
    vectors = np.load(folder / "photos.npy")
    started, used = time.perf_counter(), time.process_time()
    index = HnswIndex(vectors, threads=threads, seed=seed)
    spent = {"wall_s": time.perf_counter() - started, "cpu_s": time.process_time() - used}
    (folder / graph).mkdir()
    index.save(folder / graph)
    return spent


def answer_queries(folder: Path, graph: str) -> dict[str, Any]:
    """Open a graph and answer all queries with every `ef`.

    Returns:
        `open_s`, `huge_mib`, and by kind and ef, such as `image 50`, milliseconds and answers.
    """
    vectors = np.load(folder / "photos.npy", mmap_mode="r")
    started = time.perf_counter()
    index = open_index(
        folder / graph, vectors, Config(index="hnsw"), labels=np.arange(len(vectors))
    )
    figures: dict[str, Any] = {"open_s": time.perf_counter() - started, "huge_mib": huge_mib()}
    for kind in KINDS:
        queries = np.load(folder / f"{kind}.npy")
        for ef in EFFORTS:
            index.search(queries, K, effort=ef)
            milliseconds, rows = [], []
            for query in queries:
                used = time.process_time()
                answer = index.search(query[np.newaxis], K, effort=ef)
                milliseconds.append(1000 * (time.process_time() - used))
                rows.append(answer)
            figures[f"{kind} {ef}"] = (milliseconds, rows)
    return figures


def huge_mib() -> float:
    """Return the MiB of this process in huge pages; 0 where the system does not say."""
    file = Path("/proc/self/smaps_rollup")
    lines = file.read_text(encoding="ascii").splitlines() if file.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages")) / 1024


def measure(
    vectors: VectorSet, *, runs: int, seed: int, progress: ConsoleProgress
) -> dict[str, Any]:
    """Build both graphs, and let every way answer in turn."""
    exact = {kind: ExactIndex(vectors.photos).search(vectors.queries[kind], K) for kind in KINDS}
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    metrics: dict[str, float] = {"cores": cores}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        np.save(folder / "photos.npy", vectors.photos)
        for kind in KINDS:
            np.save(folder / f"{kind}.npy", vectors.queries[kind])
        with progress.step("graph", 2 + runs * len(WAYS), unit="processes") as step:
            for graph, threads in (("one", 1), ("all", cores)):
                spent = in_fresh_process(build, folder, graph, threads, seed, threads=threads)
                metrics |= {f"build {key}, {graph}": value for key, value in spent.items()}
                step.advance(1)
            answers: dict[str, list[dict[str, Any]]] = {way.name: [] for way in WAYS}
            for _ in range(runs):
                for way in WAYS:
                    environment = way.environment
                    answer = in_fresh_process(
                        answer_queries, folder, way.graph, environment=environment
                    )
                    answers[way.name].append(answer)
                    step.advance(1)
    points = []
    for name, answer in answers.items():
        metrics[f"open_s, {name}"] = min(one["open_s"] for one in answer)
        metrics[f"huge_mib, {name}"] = max(one["huge_mib"] for one in answer)
        for kind in KINDS:
            for ef in EFFORTS:
                least = np.min([one[f"{kind} {ef}"][0] for one in answer], axis=0)
                points.append(
                    {
                        "way": name,
                        "queries": kind,
                        "ef_search": ef,
                        "recall": measure_recall(answer[0][f"{kind} {ef}"][1], exact[kind]),
                        "p50_ms": float(np.median(least)),
                    }
                )
    return {
        "metrics": round_floats(metrics | compare_ways(points, metrics)),
        "points": list(map(round_floats, points)),
    }


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Build the graph of one thread again, and count what it finds; without times.

    Raises:
        NotFoundError: SEARCHLAB_DATASETS does not hold the photos.
    """
    seed, parameters = int(measurement["manifest"]["seed"]), measurement["parameters"]
    progress = ConsoleProgress(Console(file=StringIO()))
    vectors = vector_set(
        str(measurement["dataset"]),
        n_queries=int(parameters["n_queries"]),
        seed=seed,
        progress=progress,
    )
    points = measure(vectors, runs=1, seed=seed, progress=progress)["points"]
    first = [point for point in points if point["way"] == WAYS[0].name]
    figures = only(first, "way", "queries", "ef_search", "recall", of=len(points))
    return {"points": figures}


def measure_recall(answers: Sequence[Any], exact: Any) -> float:
    """Measure recall@20 of answers that came one by one."""
    rows = np.concatenate([answer.rows for answer in answers])
    scores = np.concatenate([answer.scores for answer in answers])
    return recall_at_k(type(exact)(rows, scores), exact)


def compare_ways(
    points: Sequence[Mapping[str, Any]], metrics: Mapping[str, float]
) -> dict[str, float]:
    """Compare builds, huge pages and recall of the three ways, and find the `ef` of each target."""
    costs = {
        f"build {key}, all / one": metrics[f"build {key}, all"] / metrics[f"build {key}, one"]
        for key in ("wall_s", "cpu_s")
    }
    for kind in KINDS:
        first, huge, _ = (list_milliseconds(points, way.name, kind) for way in WAYS)
        costs[f"p50_ms {kind}, huge pages / plain"] = float(np.median(huge / first))
        for target in TARGETS:
            reaching = [
                p
                for p in points
                if (p["way"], p["queries"]) == (WAYS[0].name, kind) and p["recall"] >= target
            ]
            if reaching:
                costs[f"ef {kind} at {target}"] = min(point["ef_search"] for point in reaching)
    one, other = (
        np.array([point["recall"] for point in points if point["way"] == way.name])
        for way in (WAYS[0], WAYS[2])
    )
    costs["recall, all - one, at worst"] = float(np.min(other - one))
    return costs


def list_milliseconds(
    points: Sequence[Mapping[str, Any]], way: str, kind: str
) -> NDArray[np.float64]:
    """List the medians of one way and kind by rising ef."""
    return np.array([p["p50_ms"] for p in points if (p["way"], p["queries"]) == (way, kind)])


def round_floats(values: Mapping[str, Any]) -> dict[str, Any]:
    """Cut floats to four places."""
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in values.items()}


def draw(points: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw recall against the median time, with the `ef` beside each point of the first way."""
    with chart(10, 4.6, columns=2, sharey=True) as (figure, axes):
        for axis, kind in zip(axes, KINDS, strict=True):
            for number, way in enumerate(WAYS):
                line = [p for p in points if (p["way"], p["queries"]) == (way.name, kind)]
                axis.plot(
                    [point["p50_ms"] for point in line],
                    [point["recall"] for point in line],
                    label=way.name,
                    **look(number),
                )
                for point in line if number == 0 else ():
                    place = (point["p50_ms"], point["recall"])
                    axis.annotate(
                        f"ef {point['ef_search']}",
                        place,
                        (4, -11),
                        textcoords="offset points",
                        fontsize=7,
                        color="#555555",
                    )
            axis.set(xscale="log", xlabel="median of a query (ms of processor), lower is better")
            axis.set_title(f"Queries like {'photos' if kind == 'image' else 'captions'}")
        axes[0].set_ylabel(f"recall@{K}, higher is better")
        axes[0].legend(loc="lower right")
        figure.suptitle(
            "What a walk through the graph finds, in which time: ef is how many candidates it keeps"
        )
        return save_chart(figure, folder / "hnsw")


def table(values: Mapping[str, Any]) -> str:
    """Format figures and points as text."""
    lines = [f"{name}: {value}" for name, value in values["metrics"].items()]
    lines.append(f"{'way':24}{'queries':9}{'ef':>6}{'recall@20':>11}{'p50 ms':>9}")
    lines += [
        f"{p['way']:24}{p['queries']:9}{p['ef_search']:>6}{p['recall']:>11.4f}{p['p50_ms']:>9.3f}"
        for p in values["points"]
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and write."""
    parser = bench_parser(__doc__, dataset="scenes-200k-512")
    parser.set_defaults(runs=3)
    parser.add_argument("--queries", type=int, default=200, help="queries of each kind")
    parser.add_argument("--cache", type=Path, help=f"keeps the vectors of {', '.join(REAL)}")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.queries, options.runs = "clustered-2k-32", 10, 1
    values = on_record(options, "graph", "hnsw")
    if values is None:
        progress = ConsoleProgress(Console(stderr=True))
        vectors = vector_set(
            options.dataset,
            n_queries=options.queries,
            seed=options.seed,
            progress=progress,
            cache=options.cache,
        )
        values = measure(vectors, runs=options.runs, seed=options.seed, progress=progress)
        values["parameters"] = {
            "k": K,
            "n_photos": len(vectors.photos),
            "dim": vectors.photos.shape[1],
            "n_queries": options.queries,
            "runs": options.runs,
            "about": vectors.about,
        }
        values["manifest"] = make_manifest("graph", seed=options.seed, threads=options.threads)
        charts = draw(values["points"], options.out / "graph" / options.dataset)
        record(options, "graph", "hnsw", values, beside=charts)
    sys.stdout.write(table(values) + "\n")


if __name__ == "__main__":
    main()
