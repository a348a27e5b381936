"""Two checkouts of searchlab in one run: what a search costs in each, and a request over HTTP.

    python -m benchmarks.structure.bench_checkouts --before ../before --name rooms
    python -m benchmarks.structure.bench_checkouts --smoke --out "$(mktemp -d)"

Writes results/structure/checkouts/<name>.json. Each checkout indexes the bundled photos by its own
code, and again for each index; then they take turns: `Library.search` in a process of its own, and
`searchlab serve` with one worker under wrk, endpoint by endpoint. The medians of the turns count,
and of each turn's ratio. A third turn is that of the newer code with a configuration that ranks as
the older one does, by vectors alone: what is left is the price of the code, not of what it found.
Without --before the checkout is held against itself, which shows how far chance goes.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.demo_photos import some_photos
from benchmarks.common.load.closed_loop import sender
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.structure.served import CLI, CONNECTIONS, ENDPOINTS, requests_in_turns, run_in
from searchlab.cli.console import ConsoleProgress
from searchlab.config.calibration import UNCALIBRATED
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.library.library import open_library

BENCHMARK = "structure"
ROOT = Path(__file__).resolve().parents[2]
INDEXES = ("exact", "hnsw", "clustered")
ALONE = "alone"  # the newer checkout, ranking by vectors alone
TURNS = ("before", "now", ALONE)
RATIOS = {"now": "ratio", ALONE: "ratio_alone"}


def main() -> None:
    """Index, take turns, record, print."""
    parser = bench_parser(__doc__, dataset="checkouts", datasets=["checkouts"])
    parser.add_argument("--before", type=Path, default=ROOT, help="the checkout to hold it against")
    parser.add_argument("--name", default="same", help="what the record is called")
    parser.add_argument("--queries", type=int, default=400, help="searches a turn")
    parser.add_argument("--seconds", type=int, default=4, help="a turn under wrk")
    options = parser.parse_args()
    if on_record(options, BENCHMARK, options.name) is not None:
        return
    options.photos, options.indexes = None, INDEXES
    options.endpoints, options.connections = ENDPOINTS, CONNECTIONS
    if options.smoke:
        options.runs, options.queries, options.seconds = 1, 2, 0.1
        options.photos, options.indexes, options.connections = 3, INDEXES[:1], CONNECTIONS[:1]
        options.endpoints = {"a new text": ENDPOINTS["a new text"]}
    checkouts = dict(zip(TURNS, (options.before.resolve(), ROOT, ROOT), strict=True))
    with tempfile.TemporaryDirectory() as scratch:
        turns = take_turns(checkouts, Path(scratch), options)
    measured = [summarise(what, figures) for what, figures in turns.items()]
    metrics = {
        f"{row['what']}, {name} / before": row[ratio]
        for row in measured
        for name, ratio in RATIOS.items()
    }
    for name, ratio in RATIOS.items():
        cpu = [row[ratio] for row in measured if row["what"].endswith("CPU us")]
        metrics |= {
            f"requests, CPU, median, {name}": statistics.median(cpu),
            f"requests, CPU, most, {name}": max(cpu),
        }
    waits = [row for row in measured if " at once, p" in row["what"]]
    names = ("runs", "queries", "seconds")
    values = {
        "parameters": {
            "before": commit_of(checkouts["before"]),
            "now": commit_of(ROOT),
            **{name: getattr(options, name) for name in names},
            "connections": list(options.connections),
            "sender": sender(options.seconds),
        },
        "metrics": metrics,
        "rows": [row for row in measured if row not in waits],
        "latencies": waits,
        "manifest": make_manifest(BENCHMARK, threads=1),
    }
    record(options, BENCHMARK, options.name, values)
    for row in measured:
        line = f"{row['before']:8.3f} -> {row['now']:8.3f}, ratio {row['ratio']:.3f}"
        print(f"{row['what']:36} {line}, by vectors alone {row['ratio_alone']:.3f}")


def take_turns(
    checkouts: dict[str, Path], scratch: Path, options: Any
) -> dict[str, dict[str, list[float]]]:
    """Measure each checkout `runs` times, one after the other; figures by name and checkout."""
    turns: dict[str, dict[str, list[float]]] = {}
    progress = ConsoleProgress(Console(stderr=True))
    photos = some_photos(scratch / "photos", options.photos)
    with progress.step("indexing", len(checkouts) * len(options.indexes)) as step:
        for name, checkout in checkouts.items():
            for index in options.indexes:
                _index(checkout, scratch / name, index, photos)
                if name == ALONE:
                    rank_by_vectors_alone(scratch / name / index)
                step.advance(1)
    with progress.step("searching in turns", options.runs * len(checkouts)) as step:
        for _ in range(options.runs):
            for name, checkout in checkouts.items():
                folders = [scratch / name / index for index in options.indexes]
                for what, value in searches(checkout, folders, options.queries).items():
                    turns.setdefault(what, {}).setdefault(name, []).append(value)
                step.advance(1)
    libraries = {name: (path, scratch / name / INDEXES[0]) for name, path in checkouts.items()}
    with progress.step("asking in turns", (options.runs + 1) * len(options.endpoints)) as step:
        turns |= requests_in_turns(
            libraries,
            options.runs,
            options.seconds,
            lambda: step.advance(1),
            endpoints=options.endpoints,
            connections=options.connections,
        )
    return turns


def summarise(what: str, figures: dict[str, list[float]]) -> dict[str, Any]:
    """Give the medians of all turns, and the median of the ratios to `before` turn by turn."""
    medians = {name: round(statistics.median(figures[name]), 4) for name in TURNS}
    ratios = {
        ratio: statistics.median(
            y / x for x, y in zip(figures["before"], figures[name], strict=True)
        )
        for name, ratio in RATIOS.items()
    }
    return {
        "what": what,
        **medians,
        **{name: round(ratio, 4) for name, ratio in ratios.items()},
        "turns": {name: [round(x, 4) for x in values] for name, values in figures.items()},
    }


def searches(checkout: Path, folders: Sequence[Path], n: int) -> dict[str, float]:
    """Median milliseconds of one search by words, for each library, which is named by its index."""
    script = str(Path(__file__).with_name("searched.py"))
    figures = {}
    for folder in folders:
        command = [sys.executable, script, str(folder), str(n)]
        milliseconds = json.loads(run_in(checkout, command).splitlines()[-1])
        figures[f"search, {folder.name}, p50 ms"] = statistics.median(milliseconds)
    return figures


def rank_by_vectors_alone(folder: Path) -> None:
    """Publish a library with a configuration that looks up no words and fits no scores to them."""
    library = open_library(folder)
    config = library.engine.config
    library.publish(replace(config, words=None, calibration=UNCALIBRATED))


def commit_of(checkout: Path) -> str:
    """Return the commit that a checkout is at; `+` where it was changed since."""
    git = ["git", "-C", str(checkout), "describe", "--always", "--abbrev=12", "--dirty=+"]
    process = subprocess.run(git, capture_output=True, text=True, check=False)
    return process.stdout.strip()


def _index(checkout: Path, libraries: Path, index: str, photos: Path) -> None:
    libraries.mkdir(parents=True, exist_ok=True)
    first, folder = libraries / INDEXES[0], libraries / index
    if folder != first:  # which has the vectors: nothing is embedded twice
        shutil.copytree(first, folder)
    run_in(checkout, [*CLI, "index", "--data", str(folder), "--index", index, str(photos)])


if __name__ == "__main__":
    main()
