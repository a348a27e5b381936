"""What reading texts costs beside vectors: a million photos with words, with and without them.

    SEARCHLAB_DATASETS=../shared/data python -m benchmarks.words.bench_words --cache /tmp/scenes
    python -m benchmarks.words.bench_words --dataset spliced-3M --build-only
    python -m benchmarks.words.bench_words --smoke --out "$(mktemp -d)"

Writes results/words/<dataset>/searchlab.json, and tantivy.json where that library is installed;
with --build-only results/words/<dataset>/build.json: how long the text index takes, and how much
memory beside the photo table. The photos have captions spliced from halves of real ones
(`benchmarks.words.texts`) and made vectors (`searchlab.studies.vectors.scenes`), which have nothing
to do with each other; queries are words, captions, names and typing errors, embedded by `mini`
beforehand, without a condition and with one that 10 % or 1 % of the photos meet.

Every query is ranked by an engine that reads texts and by one that does not, in turns, on one
thread: the median of --runs times for each query, then percentiles over queries. Recall is the
share of the first 20 of the exact merged ranking that are among the first 20 of the approximate
one. Tantivy indexes the same texts in its best form (English stems, one segment) and finds the best
20, without vectors.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from rich.console import Console

from benchmarks.common.fresh_process import in_fresh_process
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.words.texts import (
    after_date_of,
    described_photos,
    make_queries,
)
from searchlab.cli.console import ConsoleProgress
from searchlab.config import Config
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.evaluation.datasets import bundled_root
from searchlab.evaluation.datasets.external import external_root
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.models import load_model
from searchlab.models.shipped_calibration import calibrate
from searchlab.photos.table import PhotoTable
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import build_index
from searchlab.search.queries import Query
from searchlab.search.words.index import WordIndex
from searchlab.studies.vectors.scenes import open_scenes
from searchlab.studies.vectors.spliced import read_captions

K = 20
T = TypeVar("T")
_MIB = 2**20
_CONDITIONS = {"none": 1.0, "10 %": 0.1, "1 %": 0.01}


class _Engines(NamedTuple):
    """One that does not read texts, and one that does."""

    plain: SearchEngine
    both: SearchEngine


def measure_searchlab(
    captions: list[str], n: int, cache: Path, n_queries: int, runs: int, seed: int
) -> dict[str, Any]:
    """Build both indexes, and rank every query with and without texts."""
    model = load_model("mini")
    table = described_photos(captions, n, seed)
    words, metrics = _build(table)
    photos, _ = open_scenes(cache, n, model.dim, seed=seed)
    config = calibrate(Config(model="mini", index="clustered", seed=seed))
    started = time.perf_counter()
    index = build_index(photos, config, table.labels)
    metrics["vector index, build s"] = round(time.perf_counter() - started, 3)
    metrics["vector index, MiB"] = round(index.size_bytes / _MIB, 3)
    reading = Config.from_dict(config.to_dict() | {"words": vars(USUAL_WORDS)})
    plain = SearchEngine(table, index, model, config, words=words)
    both = SearchEngine(table, index, model, reading, facets=plain.facets, words=words)
    rows = []
    for kind, texts in make_queries(captions, n_queries, seed).items():
        for engine in (plain, both):
            engine.warm(texts)
        for name, share in _CONDITIONS.items():
            condition = PhotoFilter(after_date=None if share == 1 else after_date_of(share))
            queries = [Query(text=text, filter=condition) for text in texts]
            rows.append(
                {"query": kind, "condition": name}
                | _measure_queries(_Engines(plain, both), queries, runs)
            )
    return {"metrics": metrics, "rows": rows}


def measure_build(captions: list[str], n: int, seed: int) -> dict[str, Any]:
    """Build the text index alone."""
    return {"metrics": _build(described_photos(captions, n, seed))[1], "rows": []}


def _build(table: PhotoTable) -> tuple[WordIndex, dict[str, float]]:
    before = _reset_peak_mib()
    started = time.perf_counter()
    words = WordIndex.build(table)
    metrics = {
        "text index, build s": time.perf_counter() - started,
        "text index, MiB": words.size_bytes / _MIB,
        "text index, peak MiB while building": _memory_mib("VmHWM") - before,
    }
    return words, {name: round(value, 3) for name, value in metrics.items()}


def _measure_queries(engines: _Engines, queries: list[Query], runs: int) -> dict[str, Any]:
    texts = [query.text or "" for query in queries]
    matches = [len(engines.both.words.match(text)) for text in texts]
    recalls = [_recall(engines.both, query) for query in queries]
    without = _times(lambda query: engines.plain.rank(query, K), queries, runs)
    words, forget = engines.both.words, engines.both.words.found_before.forget
    merged = _times(lambda query: engines.both.rank(query, K), queries, runs, forget)
    matching = _times(words.match, texts, runs, forget)
    return {
        "vectors p50 ms": _percentile(without, 50),
        "both p50 ms": _percentile(merged, 50),
        "more, p50 ms": _percentile(merged - without, 50),
        "more, p95 ms": _percentile(merged - without, 95),
        "more, most ms": _percentile(merged - without, 100),
        "texts alone p50 ms": _percentile(matching, 50),
        "recall@20, mean": round(float(np.mean(recalls)), 4),
        "recall@20, worst": round(min(recalls), 4),
        "photos with words, median": float(np.median(matches)),
        "photos with words, most": max(matches),
    }


def _recall(engine: SearchEngine, query: Query) -> float:
    """Return the share of the exact first photos that the engine finds."""
    exact = engine.rank(replace(query, min_recall=1.0), K).rows
    ours = engine.rank(query, K).rows
    return float(np.isin(exact, ours).mean()) if len(exact) else 1.0


def measure_tantivy(
    captions: list[str], n: int, n_queries: int, runs: int, seed: int
) -> dict[str, Any] | None:
    """Index the same texts with tantivy; None where it is not installed."""
    try:
        import tantivy
    except ImportError:
        return None
    table = described_photos(captions, n, seed)
    schema = tantivy.SchemaBuilder()
    for name in ("title", "photographer_full_name", "file"):
        schema.add_text_field(name, stored=False, tokenizer_name="en_stem", index_option="freq")
    schema.add_integer_field("row", fast=True)
    with tempfile.TemporaryDirectory() as folder:
        index = tantivy.Index(schema.build(), path=folder)
        started = time.perf_counter()
        writer = index.writer(heap_size=512 * _MIB, num_threads=1)
        columns = (table.texts(name) for name in ("title", "photographer_full_name", "file"))
        for row, (title, name, file) in enumerate(zip(*columns, strict=True)):
            writer.add_document(
                tantivy.Document(title=title, photographer_full_name=name, file=file, row=row)
            )
        writer.commit()
        writer.wait_merging_threads()
        build_s = time.perf_counter() - started
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        index.reload()
        searcher = index.searcher()

        def find(text: str) -> list[int]:
            plain = "".join(c if c.isalnum() else " " for c in text)
            query = index.parse_query(plain, ["title", "photographer_full_name"])
            hits = searcher.search(query, limit=K, count=False).hits
            return list(searcher.fast_field_values("row", [address for _, address in hits]))

        rows = []
        for kind, texts in make_queries(captions, n_queries, seed).items():
            for text in texts:
                find(text)
            rows.append(
                {"query": kind, "texts alone p50 ms": _percentile(_times(find, texts, runs), 50)}
            )
    metrics = {"text index, build s": round(build_s, 3), "text index, MiB": round(size / _MIB, 3)}
    return {"metrics": metrics | {"segments": searcher.num_segments}, "rows": rows}


def _times(
    answer: Callable[[T], Any],
    queries: list[T],
    runs: int,
    forget: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """Return the median milliseconds of each query, which is asked for the first time."""
    times = np.empty((runs, len(queries)))
    for run in range(runs):
        forget()
        for place, query in enumerate(queries):
            started = time.perf_counter()
            answer(query)
            times[run, place] = 1000 * (time.perf_counter() - started)
    return np.asarray(np.median(times, axis=0))


def _percentile(values: np.ndarray, percent: float) -> float:
    return round(float(np.percentile(values, percent)), 4)


def _reset_peak_mib() -> float:
    """Let the peak of this process's memory begin anew; return what it holds now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory_mib("VmRSS")


def _memory_mib(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def main() -> None:
    """Measure, record, print."""
    parser = bench_parser(__doc__, dataset="spliced-1M")
    parser.add_argument("--cache", type=Path, help="folder that keeps the vectors")
    parser.add_argument("--queries", type=int, default=100, help="queries of each kind")
    parser.add_argument("--build-only", action="store_true", help="build the text index alone")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.runs, options.queries = "spliced-2k", 1, 5
    text = options.dataset.rpartition("-")[2]
    n = int(text[:-1]) * {"k": 1_000, "M": 1_000_000}[text[-1]]
    captions = _smoke_captions() if options.smoke else read_captions(root())
    settings = (options.queries, options.runs, options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        cache = options.cache or Path(scratch)
        if not (options.smoke or options.build_only):
            progress = ConsoleProgress(Console(stderr=True))
            open_scenes(cache, n, load_model("mini").dim, seed=options.seed, progress=progress)
        systems: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
            ("searchlab", measure_searchlab, (captions, n, cache, *settings)),
            ("tantivy", measure_tantivy, (captions, n, *settings)),
        ]
        if options.build_only:
            systems = [("build", measure_build, (captions, n, options.seed))]
        for name, work, arguments in systems:
            values = on_record(options, "words", name)
            if values is None:
                values = in_fresh_process(work, *arguments)
                if values is None:
                    sys.stdout.write(f"{name} is not installed, so it is not measured\n")
                    continue
                values |= {
                    "parameters": {"n_photos": n, "queries": options.queries, "k": K},
                    "manifest": make_manifest(
                        "words", models=models_of("mini"), seed=options.seed, threads=1
                    ),
                }
                record(options, "words", name, values)
            for what, value in values["metrics"].items():
                sys.stdout.write(f"{name:12}{what:40}{value:>12,.2f}\n")
            for row in values["rows"]:
                sys.stdout.write(f"{name:12}{row}\n")


def root() -> Path:
    """Return the folder of captions; end the script where none is named."""
    place = external_root()
    if place is None:
        sys.exit("SEARCHLAB_DATASETS must name the folder with flickr8k-train and web-photos")
    return place


def _smoke_captions() -> list[str]:
    lines = (bundled_root() / "demo" / "queries.tsv").read_text(encoding="utf-8").splitlines()
    return [f"a photo of {line.split(chr(9))[-1]} on a beach" for line in lines[1:200]]


if __name__ == "__main__":
    main()
