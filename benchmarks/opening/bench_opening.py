"""How soon a new process answers from a library of a million photos, and what memory it holds.

    python -m benchmarks.opening.bench_opening --cache /tmp/scenes  # 3 minutes on two cores
    python -m benchmarks.opening.bench_opening --smoke --out "$(mktemp -d)"

Writes results/opening/<dataset>/first_query.json, and skips what is on record (--force measures
again). A library is written as `searchlab index` writes one, with the clustered index, facets, and
the vectors of `searchlab.studies.vectors.scenes` as if `mini` had made them; its photos differ in
date, source and licence. Then a new process opens it and answers a text query, one with a filter,
and a thousand of both kinds. This is done --runs times and the median counts. Files are in the page
cache, as at the second start of a day; `cold` is the first run, for which the operating system was
told to drop them.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console

from benchmarks.common.fresh_process import in_fresh_process, size_mib
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.config import Config
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.library.library import create_library, open_library
from searchlab.library.snapshots import write_snapshot
from searchlab.models import load_model
from searchlab.models.canaries import CanaryCheck
from searchlab.models.protocol import Embeddings
from searchlab.progress import Progress
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import build_index
from searchlab.search.queries import Query
from searchlab.search.words.index import WordIndex
from searchlab.studies.filters.atlas import Atlas
from searchlab.studies.filters.atlas_engine import photo_table
from searchlab.studies.vectors.scenes import open_scenes

_TEXTS = ("a red boat", "children playing in the snow", "old castle at night", "market", "a dog")


def make_library(folder: Path, n: int, cache: Path, seed: int) -> dict[str, float]:
    """Write a library of n made vectors; returns seconds and mebibytes."""
    progress = ConsoleProgress(Console(stderr=True))
    photos, _ = open_scenes(cache, n, load_model("mini").dim, seed=seed, progress=progress)
    return write_library(folder, photos, seed)


def write_library(folder: Path, photos: Embeddings, seed: int) -> dict[str, float]:
    """Write a library of photos of which there are vectors alone; returns seconds and mebibytes."""
    model = load_model("mini")
    config = Config(model="mini", model_id=model.model_id, index="clustered", seed=seed)
    table = photo_table(Atlas(photos, n_queries=1, seed=seed).columns, "chance")
    library = create_library(folder)
    started = time.perf_counter()
    index = build_index(photos, config, table.labels)
    built = time.perf_counter()
    write_snapshot(
        library.folder,
        config=config,
        roots=(),
        table=table,
        vectors=photos,
        index=index,
        words=WordIndex.build(table),
        next_label=len(photos),
        canaries=CanaryCheck.record(model),
    )
    written = time.perf_counter()
    return {
        "build_s": built - started,
        "write_s": written - built,
        "stored_mib": size_mib(library.folder),
    }


def measure_first_query(folder: Path, n_queries: int) -> dict[str, float]:
    """Open a library and search it; runs in a process of its own."""
    started = time.perf_counter()
    library = open_library(folder)
    engine = library.engine
    opened = time.perf_counter()
    query = Query(text=_TEXTS[0])
    library.search(query)
    answered = time.perf_counter()
    filtered_query = Query(text=_TEXTS[1], filter=PhotoFilter(source=("source-03",)))
    library.search(filtered_query)
    filtered = time.perf_counter()
    memory = psutil.Process().memory_info()
    times = []
    for query in _make_queries(n_queries):
        before = time.perf_counter()
        engine.search(query)
        times.append(time.perf_counter() - before)
    later = psutil.Process().memory_info()
    return {
        "open_s": opened - started,
        "first_s": answered - started,
        "first_filtered_ms": 1000 * (filtered - answered),
        "p50_ms": 1000 * statistics.median(times),
        "resident_gb": memory.rss / 1e9,
        "own_gb": (memory.rss - memory.shared) / 1e9,
        "resident_gb_later": later.rss / 1e9,
    }


def _make_queries(n: int) -> Iterator[Query]:
    for number in range(n):
        text = _TEXTS[number % len(_TEXTS)]
        source = (f"source-{number % 20:02}",) if number % 2 else ()
        yield Query(text=text, filter=PhotoFilter(source=source))


def drop_from_cache(folder: Path) -> None:
    """Tell the operating system to drop the library's files from the page cache, if it can."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(
    n: int, n_queries: int, cache: Path, runs: int, seed: int, progress: Progress
) -> dict[str, Any]:
    """Write the library, then open it again and again."""
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        folder = Path(scratch) / "library"
        costs = in_fresh_process(make_library, folder, n, cache, seed, threads=os.cpu_count() or 1)
        drop_from_cache(folder)
        rows = []
        with progress.step("opening", runs + 1, unit="runs") as step:
            for _ in range(runs + 1):
                rows.append(in_fresh_process(measure_first_query, folder, n_queries))
                step.advance(1)
    cold, *warm = rows
    metrics = costs | {f"cold {name}": cold[name] for name in ("open_s", "first_s")}
    metrics |= {name: float(np.median([run[name] for run in warm])) for name in cold}
    return {name: round(value, 4) for name, value in metrics.items()}


def main() -> None:
    """Measure and record."""
    parser = bench_parser(__doc__, dataset="scenes-1M")
    parser.set_defaults(runs=3)
    parser.add_argument("--cache", type=Path, help="folder that keeps the vectors")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.runs = "scenes-2k", 1
    text = options.dataset.rpartition("-")[2]
    n = int(text[:-1]) * {"k": 1_000, "M": 1_000_000}[text[-1]]
    values = on_record(options, "opening", "first_query")
    if values is None:
        progress = ConsoleProgress(Console(stderr=True))
        with tempfile.TemporaryDirectory() as scratch:
            cache = options.cache or Path(scratch)
            n_queries = 20 if options.smoke else 1_000
            metrics = measure(n, n_queries, cache, options.runs, options.seed, progress)
        values = {
            "parameters": {"n_photos": n, "index": "clustered", "runs": options.runs},
            "metrics": metrics,
            "manifest": make_manifest("opening", models=models_of("mini"), seed=options.seed),
        }
        record(options, "opening", "first_query", values)
    for name, value in values["metrics"].items():
        sys.stdout.write(f"{name:20}{value:>12,.3f}\n")


if __name__ == "__main__":
    main()
