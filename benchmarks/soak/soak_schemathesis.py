"""Requests made up from the OpenAPI document by schemathesis, for as long as there is time.

    python -m benchmarks.soak.soak_schemathesis                 a quarter of an hour
    python -m benchmarks.soak.soak_schemathesis --seconds 3600 --force
    python -m benchmarks.soak.soak_schemathesis --smoke --out "$(mktemp -d)"

A server with two workers on the bundled photos gets requests that fit the document and requests
that do not, one by one and in sequences that follow its links, with another seed in each round.
Every answer must be one that the document allows; see `made_requests`.

Writes results/http/<dataset>/schemathesis.json, skips what is on record (--force runs again), and
ends with 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.load.libraries import library_of
from benchmarks.common.load.searchlab_server import serving
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.soak.made_requests import PHASES, make_requests
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.provenance.manifest import make_manifest

WORKERS = 2
_EXAMPLES = 10  # of each operation in one round, so that rounds end often
_MOST_SHOWN = 20


def ask(options: argparse.Namespace) -> tuple[dict[str, float], dict[str, Any]]:
    """Ask a server round after round; returns figures and tables."""
    progress = ConsoleProgress(Console(stderr=True))
    statuses: Counter[int] = Counter()
    operations: set[str] = set()
    wrong: dict[str, None] = {}
    rounds = n_cases = 0
    with tempfile.TemporaryDirectory() as name:
        library = library_of(options.dataset, Path(name), progress=progress)
        with (
            serving(library.folder, workers=WORKERS) as (server, key),
            progress.step(f"made-up requests for {options.seconds:g} seconds"),
        ):
            until = time.monotonic() + options.seconds
            while time.monotonic() < until:
                seed = options.seed + rounds
                outcome = make_requests(
                    server.base_url, key, *PHASES, examples=_EXAMPLES, seed=seed, until=until
                )
                rounds, n_cases = rounds + 1, n_cases + outcome.n_cases
                operations |= outcome.operations
                statuses.update(outcome.statuses)
                wrong |= dict.fromkeys(outcome.wrong)
    figures = {
        "requests": n_cases,
        "rounds": rounds,
        "operations": len(operations),
        "server errors": sum(count for status, count in statuses.items() if status >= 500),
        "wrong answers": len(wrong),
    }
    by_status = {str(status): count for status, count in sorted(statuses.items())}
    return figures, {"statuses": by_status, "wrong": list(wrong)[:_MOST_SHOWN]}


def main() -> None:
    """Run, show and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "plain"))
    parser.add_argument("--seconds", type=float, default=900.0, help="length of the run")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.seconds = "plain", min(options.seconds, 10.0)
    if on_record(options, "http", "schemathesis") is not None:
        return
    figures, tables = ask(options)
    for name, value in figures.items():
        print(f"{name:<40}{value:>12,}")
    for one in tables["wrong"]:
        print(one)
    values = {
        "parameters": {"seconds": options.seconds, "workers": WORKERS},
        "metrics": figures,
        "counts": [{"what": name, "count": value} for name, value in figures.items()],
        **tables,
        "manifest": make_manifest("http", seed=options.seed),
    }
    record(options, "http", "schemathesis", values)
    sys.exit(1 if tables["wrong"] else 0)


if __name__ == "__main__":
    main()
