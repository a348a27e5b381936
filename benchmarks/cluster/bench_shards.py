"""What it costs to search a library on shards: to cut, to ask elsewhere, to merge, to lose one.

    python -m benchmarks.cluster.bench_shards --cache /tmp/scenes  # needs the extra `cluster`
    SEARCHLAB_DATASETS=... python -m benchmarks.cluster.bench_shards --dataset spliced-1M
    python -m benchmarks.cluster.bench_shards --smoke --out "$(mktemp -d)"

Writes results/shards/<dataset>/costs.json. Datasets: `scenes-N`, made vectors, and what
`searchlab.studies.vectors.real` makes of real ones, whose queries are texts. A library of them with
the clustered index is searched for 20 neighbours, a query at a time, with the recall of
`searchlab`'s defaults:

- `whole`: as it is, in this process.
- `in turn`: cut into shards that this process searches one after the other: what cutting and
  merging cost.
- `actors`: the shards are actors of Ray, on this machine: what asking elsewhere costs, too. With
  fewer processors than shards they take turns, so that this is more than several machines take.
- `slow replica`: of two replicas of each of two shards one is stopped, which hedging must hide.
- `recover_s`: seconds from the death of an actor until its shard answers again.

Milliseconds are medians and 95th or 99th percentiles over the queries of --runs rounds, in which
the ways take turns. `bytes` is what a query sends and receives, all shards together, as pickles.
`recall` is against exact search. --smoke measures without Ray, and says nothing of it.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.common.vectors import read_vectors
from benchmarks.opening.bench_opening import write_library
from searchlab.cli.console import ConsoleProgress
from searchlab.cluster.ray_shards import serve_shards
from searchlab.cluster.shard_files import Place, manifest_digest, open_part
from searchlab.cluster.sharded_index import ShardedIndex
from searchlab.cluster.shards import LocalShards, Part, cut_evenly
from searchlab.config import Config
from searchlab.errors import UnavailableError
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.library.library import Library, open_library
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes import VectorIndex

K = 20
COUNTS = (1, 2, 4, 8)
N_QUERIES = 200
_ACTOR = "ray::ShardServer"
_LOOK_S = 0.05  # between two looks at what Ray does in its own time


class CountingShards(LocalShards):
    """Shards in this process that count what they would have to send.

    Attributes:
        n_bytes: Pickled sizes of questions and answers.
    """

    n_bytes = 0

    def ask(self, method: str, asked: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """Ask some shards, and count."""
        answers = super().ask(method, asked)
        self.n_bytes += sum(len(pickle.dumps(one)) for one in (*asked.values(), *answers.values()))
        return answers


def open_parts(library: Library, n_shards: int) -> list[Part]:
    """Open the parts of a library in this process."""
    engine = library.engine
    digest = manifest_digest(library.folder, engine.snapshot_id)
    return [
        open_part(library.folder, Place(engine.snapshot_id, digest, rows.start, rows.stop))
        for rows in cut_evenly(len(engine.table), n_shards)
    ]


def count_bytes(parts: list[Part], config: Config, queries: Embeddings) -> int:
    """Count the bytes of a query, which is measured apart, since pickling takes time."""
    counting = CountingShards(parts)
    time_queries(ShardedIndex(counting, config), queries)
    return round(counting.n_bytes / len(queries))


def time_queries(index: VectorIndex, queries: Embeddings) -> list[float]:
    """Search one query after the other; returns milliseconds of each."""
    times = []
    for query in queries:
        started = time.perf_counter()
        index.search(query[np.newaxis], K)
        times.append(1e3 * (time.perf_counter() - started))
    return times


def take_turns(
    ways: Mapping[str, VectorIndex], queries: Embeddings, runs: int
) -> dict[str, dict[str, float]]:
    """Time every way in each round, after one that does not count."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(runs + 1):
        for name, index in ways.items():
            taken = time_queries(index, queries)
            if run:
                times[name] += taken
    return {name: describe(taken) for name, taken in times.items()}


def describe(times: list[float]) -> dict[str, float]:
    """Return the percentiles of milliseconds."""
    return {f"p{q}_ms": round(float(np.percentile(times, q)), 3) for q in (50, 95, 99)}


def recall_of(index: VectorIndex, queries: Embeddings, exact: NDArray[np.int64]) -> float:
    """Return the mean share of the exact neighbours that a search finds."""
    found = index.search(queries, K).rows
    shares = [len(np.intersect1d(a, b)) / K for a, b in zip(found, exact, strict=True)]
    return round(float(np.mean(shares)), 4)


def measure_here(library: Library, queries: Embeddings, runs: int) -> dict[str, Any]:
    """Measure the library whole, and cut in this process."""
    whole = library.engine.index
    exact = np.array([whole.nearest(query, K).rows for query in queries])
    ways: dict[str, VectorIndex] = {"whole": whole}
    config = library.engine.config
    parts = {n: open_parts(library, n) for n in COUNTS}
    ways |= {f"in turn, {n}": ShardedIndex(LocalShards(some), config) for n, some in parts.items()}
    figures: dict[str, Any] = take_turns(ways, queries, runs)
    for name, index in ways.items():
        figures[name]["recall"] = recall_of(index, queries, exact)
    for n, some in parts.items():
        figures[f"in turn, {n}"]["bytes"] = count_bytes(some, config, queries)
    return figures


def measure_actors(
    folder: Path, queries: Embeddings, runs: int, on: str, done: Callable[[int], object]
) -> dict[str, Any]:
    """Measure the shards as actors, one with a stopped replica, and one that died."""
    figures: dict[str, Any] = {}
    options = {"cpus": 0.01, "timeout_s": 60.0}
    for n in COUNTS:
        with serve_shards(folder, on, n_shards=n, **options) as library:
            figures |= take_turns({f"actors, {n}": library.engine.index}, queries, runs)
        done(1)
    with serve_shards(folder, on, n_shards=2, n_replicas=2, **options) as library:
        index = library.engine.index
        figures |= take_turns({"both replicas": index}, queries, runs)
        with stopped(an_actor(4)):
            figures |= take_turns({"slow replica": index}, queries, runs)
    done(1)
    with serve_shards(folder, on, n_shards=2, **options) as library:
        index = library.engine.index
        time_queries(index, queries[:5])
        an_actor(2).send_signal(signal.SIGKILL)
        figures["recover_s"] = round(seconds_until(lambda: time_queries(index, queries[:1])), 2)
    return figures


def an_actor(n_actors: int) -> psutil.Process:
    """Return the process of a shard's actor on this machine, once those before are gone."""
    while True:
        found = [
            process
            for process in psutil.process_iter(["cmdline"])
            if any(word.startswith(_ACTOR) for word in process.info["cmdline"] or ())
        ]
        if len(found) == n_actors:
            return found[0]
        time.sleep(_LOOK_S)


@contextmanager
def stopped(process: psutil.Process) -> Iterator[None]:
    """Keep a process from running."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def seconds_until(work: Callable[[], object], limit_s: float = 300.0) -> float:
    """Try again until it works, and return the seconds that took."""
    started = time.monotonic()
    while True:
        try:
            work()
        except UnavailableError:
            if time.monotonic() - started > limit_s:
                raise
            time.sleep(_LOOK_S)
        else:
            return time.monotonic() - started


def main() -> None:
    """Measure and record."""
    parser = bench_parser(__doc__, dataset="scenes-1M")
    parser.set_defaults(runs=3)
    parser.add_argument("--cache", type=Path, help="folder that keeps the vectors")
    parser.add_argument("--on", default="ray:local", help="cluster whose nodes reach --cache")
    options = parser.parse_args()
    n_queries = N_QUERIES
    if options.smoke:
        options.dataset, options.runs, options.on, n_queries = "scenes-2k", 1, "", 5
    if on_record(options, "shards", "costs") is not None:
        return
    progress = ConsoleProgress(Console(stderr=True))
    with tempfile.TemporaryDirectory() as scratch:
        cache = options.cache or Path(scratch)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            library_folder = Path(folder) / "library"
            rows, by_kind = read_vectors(
                options.dataset, cache, n_queries=n_queries, seed=options.seed, progress=progress
            )
            queries = by_kind["made" if "made" in by_kind else "text"]
            write_library(library_folder, rows, options.seed)
            library = open_library(library_folder)
            with progress.step("searching", 2 + len(COUNTS), unit="ways") as step:
                figures = measure_here(library, queries, options.runs)
                step.advance(1)
                if options.on:
                    figures |= measure_actors(
                        library_folder, queries, options.runs, options.on, step.advance
                    )
    recover = {"recover_s": figures.pop("recover_s")} if options.on else {}
    metrics = recover | {
        f"{way}.{name}": value for way, row in figures.items() for name, value in row.items()
    }
    for name, value in metrics.items():
        sys.stdout.write(f"{name:30}{value:>12,.3f}\n")
    values = {
        "parameters": {
            "n_photos": len(rows),
            "n_queries": n_queries,
            "runs": options.runs,
            "k": K,
            "processors": os.cpu_count(),
            "on": options.on,
        },
        "metrics": metrics,
        "ways": [{"way": way, **row} for way, row in figures.items()],
        "manifest": make_manifest("shards", models=models_of("mini"), seed=options.seed),
    }
    record(options, "shards", "costs", values)


if __name__ == "__main__":
    main()
