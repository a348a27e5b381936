"""Two checkouts of searchlab in one run: what a search costs in each, and a request over HTTP.

    python -m benchmarks.structure.bench_checkouts --before ../before --name rooms
    python -m benchmarks.structure.bench_checkouts --smoke --out "$(mktemp -d)"

Writes results/structure/checkouts/<name>.json. Each checkout indexes the bundled photos by its own
code, once for each index; then they take turns: `Library.search` in a process of its own, and
`searchlab serve` with one worker under wrk. The medians of the turns count, and their ratios.
Without --before the checkout is held against itself, which shows how far chance goes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.load.closed_loop import NEW_TEXT, LoadRequest
from benchmarks.common.load.processes import children_of, cpu_seconds
from benchmarks.common.load.wrk import load_with_wrk
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.datasets import bundled_root
from searchlab.evaluation.provenance.manifest import make_manifest

BENCHMARK = "structure"
ROOT = Path(__file__).resolve().parents[2]
CLI = [sys.executable, "-c", "from searchlab.cli import main; main()"]
INDEXES = ("exact", "hnsw", "clustered")
CONNECTIONS = 16
_READY = re.compile(r"(http://[\d.]+:\d+)")
_START_S = 60.0


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
    if options.smoke:
        options.runs, options.queries, options.seconds = 1, 20, 1
    checkouts = {"before": options.before.resolve(), "now": ROOT}
    with tempfile.TemporaryDirectory() as scratch:
        turns = take_turns(checkouts, Path(scratch), options)
    rows = [summary(what, figures) for what, figures in turns.items()]
    metrics = {f"{row['what']}, now / before": row["ratio"] for row in rows}
    names = ("runs", "queries", "seconds")
    values = {
        "parameters": {
            "before": commit_of(checkouts["before"]),
            "now": commit_of(ROOT),
            **{name: getattr(options, name) for name in names},
            "connections": CONNECTIONS,
        },
        "metrics": metrics,
        "rows": rows,
        "manifest": make_manifest(BENCHMARK, threads=1),
    }
    record(options, BENCHMARK, options.name, values)
    for row in rows:
        line = f"{row['before']:8.3f} -> {row['now']:8.3f}, ratio {row['ratio']:.3f}"
        print(f"{row['what']:32} {line}")


def take_turns(
    checkouts: dict[str, Path], scratch: Path, options: Any
) -> dict[str, dict[str, list[float]]]:
    """Measure each checkout `runs` times, one after the other; figures by name and checkout."""
    turns: dict[str, dict[str, list[float]]] = {}
    progress = ConsoleProgress(Console(stderr=True))
    with progress.step("indexing", len(checkouts) * len(INDEXES)) as step:
        for name, checkout in checkouts.items():
            for index in INDEXES:
                _index(checkout, scratch / name / index, index)
                step.advance(1)
    with progress.step("taking turns", options.runs * len(checkouts)) as step:
        for _ in range(options.runs):
            for name, checkout in checkouts.items():
                folder = scratch / name
                figures = searches(checkout, folder, options.queries)
                figures |= requests(checkout, folder / INDEXES[0], options.seconds)
                for what, value in figures.items():
                    turns.setdefault(what, {}).setdefault(name, []).append(value)
                step.advance(1)
    return turns


def summary(what: str, figures: dict[str, list[float]]) -> dict[str, Any]:
    """Give the medians of both checkouts and their ratio."""
    before, now = (statistics.median(figures[name]) for name in ("before", "now"))
    return {
        "what": what,
        "before": round(before, 4),
        "now": round(now, 4),
        "ratio": round(now / before, 4),
        "turns": {name: [round(x, 4) for x in values] for name, values in figures.items()},
    }


def searches(checkout: Path, folder: Path, n: int) -> dict[str, float]:
    """Median milliseconds of one search by words, for each index."""
    script = str(Path(__file__).with_name("searched.py"))
    figures = {}
    for index in INDEXES:
        command = [sys.executable, script, str(folder / index), str(n)]
        milliseconds = json.loads(_run(checkout, command).splitlines()[-1])
        figures[f"search, {index}, p50 ms"] = statistics.median(milliseconds)
    return figures


def requests(checkout: Path, library: Path, seconds: int) -> dict[str, float]:
    """CPU milliseconds and latency of a text query over HTTP, each text new."""
    keys = ["keys", "create", "--data", str(library), "--account", "me", "--name", "bench"]
    key = _run(checkout, [*CLI, *keys, "--plan", "scale"]).splitlines()[-1]
    with _serving(checkout, library) as (address, pid):
        url = f"{address}/api/v1/search/photos?q={NEW_TEXT}"
        ask = LoadRequest(url=url, headers={"x-api-key": key})
        load_with_wrk(ask, connections=CONNECTIONS, seconds=1, first=0)
        workers = children_of(pid) or [pid]
        before = sum(map(cpu_seconds, workers))
        load = load_with_wrk(ask, connections=CONNECTIONS, seconds=seconds, first=1_000_000)
        cpu = sum(map(cpu_seconds, workers)) - before
    if load.refused or load.failed or not load.requests:
        sys.exit(f"every request must be answered, got {load}")
    return {
        "request, CPU ms": 1000 * cpu / load.requests,
        "request, p50 ms": load.p50_ms,
        "request, p99 ms": load.p99_ms,
    }


@contextmanager
def _serving(checkout: Path, library: Path) -> Iterator[tuple[str, int]]:
    words = ["serve", "--data", str(library), "--port", "0", "--workers", "1"]
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(
            [*CLI, *words, "--rate", "1000000", "--burst", "1000000"],
            cwd=checkout,
            env=_environment(checkout),
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        try:
            yield _address(server, log), server.pid
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(_START_S)


def _address(server: subprocess.Popen[bytes], log: Any) -> str:
    deadline = time.monotonic() + _START_S
    while server.poll() is None and time.monotonic() < deadline:
        log.seek(0)
        if address := _READY.search(log.read()):
            return address[1]
        time.sleep(0.1)
    log.seek(0)
    sys.exit(f"serve must start, got: {log.read()[-2000:]}")


def commit_of(checkout: Path) -> str:
    """Return the commit that a checkout is at; `+` where it was changed since."""
    git = ["git", "-C", str(checkout), "describe", "--always", "--abbrev=12", "--dirty=+"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _index(checkout: Path, folder: Path, index: str) -> None:
    photos = str(bundled_root() / "demo" / "images")
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run(checkout, [*CLI, "index", "--data", str(folder), "--index", index, photos])


def _run(checkout: Path, command: list[str]) -> str:
    done = subprocess.run(
        command,
        cwd=checkout,
        env=_environment(checkout),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command[:4])} must end with 0, got: {done.stderr[-2000:]}")
    return done.stdout


def _environment(checkout: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}


if __name__ == "__main__":
    main()
