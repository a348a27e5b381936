"""How long a new process takes to the figures of a small evaluation, with our metrics and ranx's.

    python -m benchmarks.search_quality.bench_cold_start  # 5 minutes of one core
    python -m benchmarks.search_quality.bench_cold_start --smoke --out "$(mktemp -d)"

Writes results/cold_start/<dataset>/metrics.json. New processes read judgments and the ten answers
of each query, and print means of four metrics: with searchlab's functions, which are numpy, or with
ranx, which numba compiles when it is first called: by its usual way in, and by arrays, for which
less is compiled, as searchlab called it before it had functions of its own. The answers are drawn:
no time depends on which they are, and no model is measured along.

`empty` are processes whose folder for compiled code (NUMBA_CACHE_DIR) is new, as after an
installation or in CI; `filled` are those that find what the one before compiled. Python's own
bytecode is there for all. The ways take turns, and the median counts: of `process_s`, from the
start of the process to its end; of `cpu_s`, processor time of all its threads, which says more than
`process_s` on a machine that does other work as well; of `figures_s`, imports of the metrics and
the first call; and of `again_s`, a second call in the same process. All ways must give the same
means.

Predicted before it was measured, processor seconds of a process: searchlab 0.5, with both folders;
ranx by arrays 12 with an empty folder and 3.5 with a filled one; ranx's usual way in 45 and 5.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.search_quality import small_evaluation
from benchmarks.search_quality.small_evaluation import DEPTH, METRICS, WAYS
from searchlab.evaluation.datasets import Dataset, load_dataset
from searchlab.evaluation.provenance.manifest import data_hashes, make_manifest

BENCHMARK, NAME = "cold_start", "metrics"
LANGUAGES = ("cs", "de", "en", "es", "fr")
CACHES = ("empty", "filled")
TIMES = ("process_s", "cpu_s", "figures_s", "again_s")
_SAME = 1e-9
_ROOT = Path(__file__).resolve().parents[2]


def draw_task(dataset: Dataset, seed: int) -> dict[str, Any]:
    """Draw ten answers to each query; about half of what is relevant to it is among them.

    Returns:
        `qrels`, query_id -> photo_id -> grade, and `run`, query_id -> photo_ids, best first.
    """
    rng = np.random.default_rng(seed)
    qrels = {query.query_id: dict(dataset.qrels[query.query_id]) for query in dataset.queries}
    photo_ids = sorted({photo_id for grades in qrels.values() for photo_id in grades})
    run = {}
    for query_id, grades in qrels.items():
        relevant = [photo_id for photo_id in sorted(grades) if rng.random() < 0.5]
        others = [photo_ids[number] for number in rng.permutation(len(photo_ids))]
        drawn = list(dict.fromkeys([*relevant, *others]))[:DEPTH]
        run[query_id] = [drawn[number] for number in rng.permutation(len(drawn))]
    return {"qrels": qrels, "run": run}


def evaluate_once(way: str, task: Path, compiled: Path) -> dict[str, Any]:
    """Run a small evaluation in a new process.

    Args:
        way: One of `WAYS`.
        task: Judgments and answers.
        compiled: Folder that keeps what numba compiles.

    Returns:
        `means` by metric, and the seconds that `TIMES` names.

    Raises:
        RuntimeError: The process fails, for example because ranx is not installed.
    """
    words = [sys.executable, "-m", small_evaluation.__name__, way, str(task)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(compiled), "PYTHONWARNINGS": "ignore"}
    cpu_before, started = _cpu_of_children(), time.perf_counter()
    done = subprocess.run(
        words, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        msg = f"{words} must end with 0, got {done.returncode}: {done.stderr[-1000:]}"
        raise RuntimeError(msg)
    measured = json.loads(done.stdout.splitlines()[-1])
    return {**measured, "process_s": seconds, "cpu_s": _cpu_of_children() - cpu_before}


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(task: Path, runs: int, caches: Sequence[str] = CACHES) -> list[dict[str, Any]]:
    """Run every way with an empty and then with the filled folder, in turns.

    Raises:
        RuntimeError: Two processes disagree about a mean.
    """
    rows: list[dict[str, Any]] = []
    for number in range(runs):
        for way in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
            with tempfile.TemporaryDirectory() as compiled:
                for cache in caches:
                    row = evaluate_once(way, task, Path(compiled))
                    rows.append({"way": way, "cache": cache, **row})
                    check_means(rows)
    return rows


def check_means(rows: Sequence[dict[str, Any]]) -> None:
    """Refuse to time ways that do not compute the same.

    Raises:
        RuntimeError: A row lacks one of the metrics, or differs from the first in a mean; a mean
            that is no number differs from all.
    """
    first = rows[0]
    for row in rows:
        for metric in METRICS:
            mean, expected = (one["means"].get(metric, float("nan")) for one in (row, first))
            if not abs(mean - expected) <= _SAME:
                msg = (
                    f"all ways must give the same means, got {metric} {mean} from {row['way']} "
                    f"and {expected} from {first['way']}"
                )
                raise RuntimeError(msg)


def summarise(
    rows: Sequence[dict[str, Any]], caches: Sequence[str] = CACHES
) -> list[dict[str, Any]]:
    """Return the median of each time, for each way with each folder."""
    return [
        {"way": way, "cache": cache}
        | {
            name: round(
                statistics.median(
                    row[name] for row in rows if (row["way"], row["cache"]) == (way, cache)
                ),
                4,
            )
            for name in TIMES
        }
        for way in WAYS
        for cache in caches
    ]


def main() -> None:
    """Measure and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=["demo"])
    parser.add_argument("--most", type=int, default=40, help="queries of a language")
    options = parser.parse_args()
    if options.smoke:
        options.runs, options.most = 1, 1
    caches = CACHES[:1] if options.smoke else CACHES
    values = on_record(options, BENCHMARK, NAME)
    if values is None:
        dataset = load_dataset(options.dataset).sample(LANGUAGES, options.most, options.seed)
        load_before = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as scratch:
            task = Path(scratch) / "task.json"
            task.write_text(json.dumps(draw_task(dataset, options.seed)), encoding="utf-8")
            runs = measure(task, options.runs, caches)
        rows = summarise(runs, caches)
        values = {
            "parameters": {
                "runs": options.runs,
                "n_queries": len(dataset.queries),
                "depth": DEPTH,
                "load_before": round(load_before, 2),
                "load_after": round(os.getloadavg()[0], 2),
            },
            "metrics": {
                f"{row['way']}, {row['cache']}, {name}": row[name] for row in rows for name in TIMES
            },
            "means": runs[0]["means"],
            "rows": rows,
            "runs": [{k: v for k, v in run.items() if k != "means"} for run in runs],
            "manifest": make_manifest(
                BENCHMARK,
                data=data_hashes(dataset),
                seed=options.seed,
                packages=["ranx", "numba"],
            ),
        }
        record(options, BENCHMARK, NAME, values)
    for name, value in values["metrics"].items():
        sys.stdout.write(f"{name:32}{value:>10.3f}\n")


if __name__ == "__main__":
    main()
