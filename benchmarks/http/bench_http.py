"""What an answer over HTTP costs: by endpoint, by filter, under concurrency, and beside peers.

    python -m benchmarks.http.bench_http                    about 6 minutes on two cores
    python -m benchmarks.http.bench_http --smoke --out "$(mktemp -d)"

Writes results/http/<dataset>/{endpoints,filters,servers}.json with charts beside them, and skips
what is on record (--force measures again). Ratios come first; then milliseconds that clients wait
(p50, p95, p99), CPU of the workers per request, requests per second, and what one core could do.

The API is the real one, with key, limits, counting and log. `servers` compares servers on one
application (Litestar with a 27 KB body made beforehand) and on none, the whole API with one answer
for every search, and, where FastAPI and uvicorn are installed, FastAPI with 20 records as it is
usually written; all with one worker. It also records what each does with strange clients, and
whether HTTP without the search costs at most 0.45 of FastAPI's CPU, with a fifth of its 99th
percentile over 64 connections.

All are loaded in turn, round after round, and the median round counts. CPU is that of all threads
of the workers, as the operating system counts it; it depends less on other work of the machine than
the times that clients see. The load is closed: each connection sends its next request when it has
its answer. `wrk` sends where it is installed, else a small client of our own, which is slower than
some servers; the record says which.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.load.closed_loop import NEW_TEXT, LoadRequest, sender
from benchmarks.common.load.libraries import library_of
from benchmarks.common.load.rounds import Target, flatten, measure_in_turn, with_ratios
from benchmarks.common.load.searchlab_server import new_key, serving
from benchmarks.common.load.servers import granian, uvicorn
from benchmarks.common.load.targets import show_targets, target
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.http.applications import LIBRARY
from benchmarks.http.charts import draw_latency
from benchmarks.http.endpoints import ask_each, list_endpoints, list_filters
from benchmarks.http.strange import STRANGE, try_strange_clients
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.evaluation.provenance.measurement import measurement_path

BENCHMARK = "http"
CONNECTIONS = (1, 16, 64)
PACKAGES = ("granian", "uvicorn", "uvloop", "httptools", "litestar", "msgspec", "fastapi")
SERVERS = {
    "granian, the API without searches": (granian, "searchlab_app"),
    "granian, Litestar": (granian, "litestar_app"),
    "uvicorn, Litestar": (uvicorn, "litestar_app"),
    "granian, no framework": (granian, "bare_app"),
    "uvicorn, no framework": (uvicorn, "bare_app"),
    "uvicorn, FastAPI and pydantic": (uvicorn, "fastapi_app"),
}
PEER = "uvicorn, FastAPI and pydantic"
OURS = "granian, Litestar"
WHOLE = "granian, the API without searches"
MOST_CPU, MOST_P99 = 0.45, 0.2
FIGURES = {
    "cpu_ratio": "CPU",
    "p99_ratio": "p99",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "cpu_us": "CPU us",
    "requests_per_s": "req/s",
    "requests_per_core_s": "req/s/core",
}
PATIENCE_S = 40.0


def measure(targets: list[Target], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure targets as the command line says; ends the script if one request failed."""
    rows = measure_in_turn(
        targets,
        rounds=options.runs,
        connections=(4,) if options.smoke else CONNECTIONS,
        seconds=options.seconds,
        progress=ConsoleProgress(Console(stderr=True)),
    )
    with_errors = [row for row in rows if row["errors"]]
    if with_errors:
        sys.exit(f"every request must be answered with 200, got errors: {with_errors}")
    return rows


def record_rows(
    options: argparse.Namespace,
    name: str,
    by: str,
    rows: list[dict[str, Any]],
    *,
    base: str,
    models: Sequence[str] = (),
    **tables: Any,
) -> None:
    """Print, draw and record rows with ratios to those of `base`; `by` is the rows' label."""
    rows = with_ratios(rows, by=by, base=base)
    print_rows(rows, by, base)
    installed = [name for name in PACKAGES if importlib.util.find_spec(name) is not None]
    manifest = make_manifest(BENCHMARK, models=models_of(*models), seed=options.seed)
    manifest["packages"] |= {name: version(name) for name in installed}
    place = measurement_path(options.out, BENCHMARK, options.dataset, name).with_suffix("")
    drawn = not options.smoke or name == "servers"
    title = f"What a client waits for, by {by}"
    charts = draw_latency(rows, place, by=by, title=title) if drawn else []
    values = {
        "parameters": {
            "rounds": options.runs,
            "seconds": options.seconds,
            "workers": options.workers,
            "sender": sender(options.seconds),
            "base": base,
        },
        "metrics": {"errors": sum(row["errors"] for row in rows)} | flatten(rows, by=by),
        "rows": rows,
        "manifest": manifest,
    }
    record(options, BENCHMARK, name, values | tables, beside=charts)


def print_rows(rows: list[dict[str, Any]], by: str, base: str) -> None:
    """Print rows as a table, ratios first."""
    print(f"ratios to {base} over as many connections; ms of clients; CPU us; requests/s")
    print(f"{by:<38}{'conn':>5}" + "".join(f"{name:>11}" for name in FIGURES.values()))
    for row in rows:
        cells = "".join(f"{row[name]:>11,.2f}" for name in FIGURES)
        print(f"{row[by]:<38}{row['connections']:>5}{cells}")


def measure_api(
    options: argparse.Namespace, names: Sequence[str] = ("endpoints", "filters")
) -> None:
    """Measure the API's operations, and a text search under each filter."""
    todo = [name for name in names if on_record(options, BENCHMARK, name) is None]
    if not todo:
        return
    progress = ConsoleProgress(Console(stderr=True))
    with tempfile.TemporaryDirectory() as folder:
        library = library_of(options.dataset, Path(folder), progress=progress)
        with serving(library.folder, workers=options.workers) as (server, key):
            for name in todo:
                by, targets = (
                    ("endpoint", list_endpoints(library, server.base_url, key, server.workers))
                    if name == "endpoints"
                    else ("filter", list_filters(library, server.base_url, key, server.workers))
                )
                plans = dict(zip((t.labels[by] for t in targets), ask_each(targets), strict=True))
                rows = [row | {"plan": plans[row[by]]} for row in measure(targets, options)]
                record_rows(
                    options, name, by, rows, base=rows[0][by], models=[library.engine.config.model]
                )


def measure_servers(options: argparse.Namespace) -> None:
    """Measure all servers that are installed on the same body, in turn."""
    if on_record(options, BENCHMARK, "servers") is not None:
        return
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        progress = ConsoleProgress(Console(stderr=True))
        library = library_of(options.dataset, folder, progress=progress)
        os.environ[LIBRARY] = str(library.folder)
        headers = {"x-api-key": new_key(library.folder)}
        running_servers: dict[str, tuple[str, list[int]]] = {}
        for name, (serve, app) in SERVERS.items():
            needed = ["uvicorn", "uvloop", "httptools"] * (serve is uvicorn)
            needed += ["fastapi"] * (app == "fastapi_app")
            missing = [package for package in needed if importlib.util.find_spec(package) is None]
            if missing:
                print(f"{name} needs {', '.join(missing)}, which is not installed")
            else:
                running_servers[name] = running.enter_context(serve(app))
        path = f"/api/v1/search/photos?q={NEW_TEXT}&per_page=20"
        rows = measure(
            [
                Target(LoadRequest(base + path, headers=headers), pids, {"server": n})
                for n, (base, pids) in running_servers.items()
            ],
            options,
        )
        patience_s = 1.0 if options.smoke else PATIENCE_S
        outcomes = {
            name: try_strange_clients(address, patience_s=patience_s)
            for name, (address, _) in running_servers.items()
            if SERVERS[name][1] == "litestar_app"
        }
    strange = [
        {"sent": sent} | {name: outcomes[name][sent] for name in outcomes} for sent in STRANGE
    ]
    base = PEER if PEER in running_servers else rows[0]["server"]
    targets = (
        check_targets(with_ratios(rows, by="server", base=base)) if PEER in running_servers else []
    )
    show_targets(targets)
    record_rows(options, "servers", "server", rows, base=base, strange=strange, targets=targets)


def check_targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare CPU and latency of HTTP without searches, alone and in the whole API, with bounds."""
    most = max(row["connections"] for row in rows)
    by_server = {row["server"]: row for row in rows if row["connections"] == most}
    return [
        target(
            f"{figure} over {most} connections, to FastAPI's: {name}", most=limit, measured=ratio
        )
        for name in (OURS, WHOLE)
        for figure, limit, ratio in (
            ("CPU of a request", MOST_CPU, by_server[name]["cpu_ratio"]),
            ("99th percentile", MOST_P99, by_server[name]["p99_ratio"]),
        )
    ]


def main() -> None:
    """Measure, show and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "plain"))
    parser.set_defaults(runs=3)
    parser.add_argument("--workers", type=int, default=1, help="workers of the API")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each load")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.runs, options.seconds = "plain", 1, 0.02
    measure_servers(options)
    measure_api(options)


if __name__ == "__main__":
    main()
