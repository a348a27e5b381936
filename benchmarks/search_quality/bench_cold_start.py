"""How long a new process takes to the figures of a small evaluation, with our metrics and ranx's.

    python -m benchmarks.search_quality.bench_cold_start  # 10 minutes on two cores
    python -m benchmarks.search_quality.bench_cold_start --smoke --out "$(mktemp -d)"

Writes results/cold_start/<dataset>/metrics.json. `mini` answers a sample of queries over the
bundled photos once. Then new processes read these answers and the judgments, and print means of
four metrics: with searchlab's functions, which are numpy, or with ranx, which is compiled by numba
when it is first called. `empty` are processes whose folder for compiled code (NUMBA_CACHE_DIR) is
new, as after an installation or in CI; `filled` are those that find what the one before compiled.
The ways take turns, and the median counts: of `process_s`, from the start of the process to its
end, and of `figures_s`, imports of the metrics and the first call alone. `again_s` is a second call
in the same process. Both ways must give the same means.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.search_quality import small_evaluation
from benchmarks.search_quality.small_evaluation import METRICS, WAYS
from searchlab import build_demo_library
from searchlab.evaluation.datasets import Dataset, load_dataset
from searchlab.evaluation.provenance.manifest import data_hashes, make_manifest, models_of

BENCHMARK, NAME, MODEL = "cold_start", "metrics", "mini"
LANGUAGES = ("cs", "de", "en", "es", "fr")
_DEPTH = 10
_SAME = 1e-9
_ROOT = Path(__file__).resolve().parents[2]


def write_task(dataset: Dataset, path: Path) -> None:
    """Let `mini` answer the queries; judgments and answers are written as JSON."""
    with tempfile.TemporaryDirectory() as scratch:
        engine = build_demo_library(Path(scratch) / "library").engine
        run = {
            query.query_id: [
                photo.photo.photo_id for photo in engine.search(query.query(), per_page=_DEPTH)
            ]
            for query in dataset.queries
        }
    qrels = {query_id: dict(dataset.qrels[query_id]) for query_id in run}
    path.write_text(json.dumps({"qrels": qrels, "run": run}), encoding="utf-8")


def evaluate_once(way: str, task: Path, compiled: Path) -> dict[str, Any]:
    """Run a small evaluation in a new process.

    Args:
        way: One of `WAYS`.
        task: Judgments and answers.
        compiled: Folder that keeps what numba compiles.

    Returns:
        `means` by metric, `process_s`, `figures_s` and `again_s`.

    Raises:
        RuntimeError: The process fails, for example because ranx is not installed.
    """
    words = [sys.executable, "-m", small_evaluation.__name__, way, str(task)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(compiled), "PYTHONWARNINGS": "ignore"}
    started = time.perf_counter()
    done = subprocess.run(
        words, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        msg = f"{words} must end with 0, got {done.returncode}: {done.stderr[-1000:]}"
        raise RuntimeError(msg)
    return {**json.loads(done.stdout.splitlines()[-1]), "process_s": seconds}


def measure(task: Path, runs: int) -> list[dict[str, Any]]:
    """Run every way with an empty and then with the filled folder, in turns.

    Raises:
        RuntimeError: Two processes disagree about a mean.
    """
    rows = []
    for number in range(runs):
        for way in WAYS if number % 2 == 0 else WAYS[::-1]:
            with tempfile.TemporaryDirectory() as compiled:
                for cache in ("empty", "filled"):
                    row = evaluate_once(way, task, Path(compiled))
                    rows.append({"way": way, "cache": cache, **row})
    check_means(rows)
    return rows


def check_means(rows: list[dict[str, Any]]) -> None:
    """Refuse to time ways that do not compute the same.

    Raises:
        RuntimeError: Two rows disagree about a mean.
    """
    expected = rows[0]["means"]
    for row in rows:
        for metric, mean in expected.items():
            if abs(row["means"][metric] - mean) > _SAME:
                msg = (
                    f"all ways must give the same means, got {metric} {row['means'][metric]} "
                    f"from {row['way']} and {mean} from {rows[0]['way']}"
                )
                raise RuntimeError(msg)


def summarise(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the median of each time, by way and cache."""
    return {
        f"{way}, {cache}, {name}": round(
            statistics.median(
                row[name] for row in rows if (row["way"], row["cache"]) == (way, cache)
            ),
            4,
        )
        for way in WAYS
        for cache in ("empty", "filled")
        for name in ("process_s", "figures_s", "again_s")
    }


def main() -> None:
    """Measure and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=["demo"])
    parser.add_argument("--most", type=int, default=40, help="queries of a language")
    options = parser.parse_args()
    if options.smoke:
        options.runs, options.most = 1, 4
    values = on_record(options, BENCHMARK, NAME)
    if values is None:
        dataset = load_dataset(options.dataset).sample(LANGUAGES, options.most, options.seed)
        load_before = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as scratch:
            task = Path(scratch) / "task.json"
            write_task(dataset, task)
            rows = measure(task, options.runs)
        values = {
            "parameters": {
                "runs": options.runs,
                "n_queries": len(dataset.queries),
                "depth": _DEPTH,
                "metrics": list(METRICS),
                "load_before": round(load_before, 2),
                "load_after": round(os.getloadavg()[0], 2),
            },
            "metrics": summarise(rows),
            "rows": rows,
            "manifest": make_manifest(
                BENCHMARK,
                models=models_of(MODEL),
                data=data_hashes(dataset),
                seed=options.seed,
            ),
        }
        record(options, BENCHMARK, NAME, values)
    for name, value in values["metrics"].items():
        sys.stdout.write(f"{name:32}{value:>10.3f}\n")


if __name__ == "__main__":
    main()
