"""What it costs to page on: to photo 1,000 of a query, page by page or in one jump.

    SEARCHLAB_DATASETS=... python -m benchmarks.paging.bench_deep_pages --cache /tmp/vectors
    python -m benchmarks.paging.bench_deep_pages --dataset scenes-1M --cache /tmp/vectors
    python -m benchmarks.paging.bench_deep_pages --smoke --out "$(mktemp -d)"

Writes results/deep_pages/<dataset>/walks.json. A library of a million vectors with the clustered
index and the defaults of `searchlab` is asked by vectors of photos and of texts that are not in it,
in pages of 20:

- `paged on`: each page by the cursor of the one before. The photos up to a thousand are searched
  for by the first page after the first, and kept for those after it.
- `ranked anew`: each page as if nobody had asked for the ones before, as in a jump.

Both are measured in turns, walk by walk. Milliseconds of a page are over all pages of all walks,
but for the first ones, which are never kept; those of a walk are sums. `recall@1000` is the share
of the true first thousand that the pages show.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.common.vectors import read_vectors
from benchmarks.opening.bench_opening import write_library
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.library.library import open_library
from searchlab.models.protocol import Embeddings
from searchlab.progress import Step
from searchlab.search.engine import SearchEngine
from searchlab.search.queries import Query

BENCHMARK, NAME = "deep_pages", "walks"
PER_PAGE, DEEPEST = 20, 1_000
N_WALKS = 30


class Walk(NamedTuple):
    """A walk through the pages of one query.

    Attributes:
        ms: Milliseconds of each page.
        rows: Photos that were shown, in order.
    """

    ms: list[float]
    rows: NDArray[np.int64]


def page_on(engine: SearchEngine, vector: Embeddings, n_pages: int) -> Walk:
    """Walk by cursors."""
    times, rows, cursor = [], [], None
    for _ in range(n_pages):
        asked = Query(image=b"") if cursor is None else None
        started = time.perf_counter()
        part = engine.slice(asked, per_page=PER_PAGE, cursor=cursor, reference=vector)
        times.append(1e3 * (time.perf_counter() - started))
        rows.append(part.rows)
        cursor = part.next_cursor
    return Walk(times, np.concatenate(rows))


def rank_anew(engine: SearchEngine, vector: Embeddings, n_pages: int) -> Walk:
    """Ask for each page by a query that differs in what does not count without a text."""
    times, rows = [], []
    for page in range(1, n_pages + 1):
        query = Query(image=b"", text_alpha=1 + page / 1_000)
        started = time.perf_counter()
        part = engine.slice(query, per_page=PER_PAGE, page=page, reference=vector)
        times.append(1e3 * (time.perf_counter() - started))
        rows.append(part.rows)
    return Walk(times, np.concatenate(rows))


def measure(engine: SearchEngine, queries: Embeddings, n_pages: int, step: Step) -> dict[str, Any]:
    """Walk both ways for each query; returns figures by way."""
    walks: dict[str, list[Walk]] = {"paged on": [], "ranked anew": []}
    recalls = []
    for number, query in enumerate(queries):
        vector = np.ascontiguousarray(query)
        on = page_on(engine, vector, n_pages)
        anew = rank_anew(engine, vector, n_pages)
        if on.rows.tolist() != anew.rows.tolist():
            msg = f"pages must be the same however they are asked for, got others for {number}"
            raise AssertionError(msg)
        truth = engine.index.nearest(vector, len(on.rows)).rows
        recalls.append(len(np.intersect1d(on.rows, truth)) / len(truth))
        if number:  # the first one finds nothing in any cache
            walks["paged on"].append(on)
            walks["ranked anew"].append(anew)
        step.advance(1)
    figures = {way: describe(some) for way, some in walks.items()}
    figures["paged on"]["recall@1000"] = round(float(np.mean(recalls)), 4)
    return figures


def describe(walks: list[Walk]) -> dict[str, float]:
    """Return figures of walks that were made in one way."""
    later = list(itertools.chain.from_iterable(walk.ms[1:] for walk in walks))
    return {
        "first_page_p50_ms": _round(np.median([walk.ms[0] for walk in walks])),
        "page_p50_ms": _round(np.median(later)),
        "page_p95_ms": _round(np.percentile(later, 95)),
        "page_p99_ms": _round(np.percentile(later, 99)),
        "page_most_ms": _round(max(later)),
        "page_mean_ms": _round(np.mean(later)),
        "last_page_p50_ms": _round(np.median([walk.ms[-1] for walk in walks])),
        "walk_p50_ms": _round(np.median([sum(walk.ms) for walk in walks])),
    }


def _round(value: Any) -> float:
    return round(float(value), 3)


def main() -> None:
    """Measure and record."""
    parser = bench_parser(__doc__, dataset="spliced-1M")
    parser.add_argument("--cache", type=Path, help="folder that keeps the vectors")
    options = parser.parse_args()
    n_walks, n_pages = N_WALKS + 1, DEEPEST // PER_PAGE
    if options.smoke:
        options.dataset, n_walks = "scenes-2k", 3
    if on_record(options, BENCHMARK, NAME) is not None:
        return
    progress = ConsoleProgress(Console(stderr=True))
    with tempfile.TemporaryDirectory() as scratch:
        cache = options.cache or Path(scratch)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            rows, queries = read_vectors(
                options.dataset, cache, n_queries=n_walks, seed=options.seed, progress=progress
            )
            write_library(Path(folder) / "library", rows, options.seed)
            engine = open_library(Path(folder) / "library").engine
            n_queries = sum(map(len, queries.values()))
            with progress.step("walking", n_queries, unit="walks") as step:
                figures = {
                    f"{way}, {kind}": row
                    for kind, vectors in queries.items()
                    for way, row in measure(engine, vectors, n_pages, step).items()
                }
    for way, row in figures.items():
        sys.stdout.write(f"{way}: {row}\n")
    values = {
        "parameters": {
            "n_photos": len(rows),
            "walks": n_walks - 1,
            "pages": n_pages,
            "per_page": PER_PAGE,
        },
        "metrics": {
            f"{way}.{name}": value for way, row in figures.items() for name, value in row.items()
        },
        "rows": [{"way": way, **row} for way, row in figures.items()],
        "manifest": make_manifest(BENCHMARK, models=models_of("mini"), seed=options.seed),
    }
    record(options, BENCHMARK, NAME, values)


if __name__ == "__main__":
    main()
