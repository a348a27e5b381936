"""Requests made up from the OpenAPI document by schemathesis, for as long as there is time.

    python -m benchmarks.soak.soak_schemathesis                 goes on until an hour is on record
    chrt -i 0 nice -n 19 python -m benchmarks.soak.soak_schemathesis    the same, beside other work
    python -m benchmarks.soak.soak_schemathesis --seconds 300 --force
    python -m benchmarks.soak.soak_schemathesis --smoke --out "$(mktemp -d)"

A server with two workers on the bundled photos gets requests that fit the document and requests
that do not, one by one and in sequences that follow its links. Every answer must be one that the
document allows; see `made_requests`. It runs in rounds of --round-seconds (300), each with a new
server and other seeds; a round that has ended is on record, and called again it adds rounds until
--seconds (3,600) are reached. Ctrl-C costs the round under way.

Writes results/http/<dataset>/schemathesis.json, and ends with 1 if an answer is wrong.
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
from benchmarks.common.recording import bench_parser
from benchmarks.soak.made_requests import PHASES, make_requests
from benchmarks.soak.rounds import Record, end_on_sigterm, show
from searchlab.cli.console import ConsoleProgress
from searchlab.library.library import Library
from searchlab.progress import Step

WORKERS = 2
_EXAMPLES = 10  # of each operation in one pass, so that passes end often
_SEEDS = 1_000  # of one round at most, each for one pass


def ask_round(
    library: Library, options: argparse.Namespace, *, seed: int, step: Step
) -> tuple[dict[str, float], dict[str, Any], float]:
    """Ask a new server, pass after pass; returns figures, tables and seconds."""
    statuses: Counter[int] = Counter()
    operations: set[str] = set()
    wrong: dict[str, None] = {}
    passes = n_cases = 0
    with serving(library.folder, workers=WORKERS) as (server, key):
        began = time.monotonic()
        until = began + options.round_seconds
        while time.monotonic() < until:
            outcome = make_requests(
                server.base_url,
                key,
                *PHASES,
                examples=_EXAMPLES,
                seed=seed * _SEEDS + passes,
                until=until,
            )
            passes, n_cases = passes + 1, n_cases + outcome.n_cases
            operations |= outcome.operations
            statuses.update(outcome.statuses)
            wrong |= dict.fromkeys(outcome.wrong)
            step.note(f"{n_cases:,} requests")
        seconds = time.monotonic() - began
    figures: dict[str, float] = {
        "requests": n_cases,
        "passes": passes,
        "most operations": len(operations),
        "server errors": sum(count for status, count in statuses.items() if status >= 500),
        "wrong answers": len(wrong),
    }
    by_status = {str(status): count for status, count in sorted(statuses.items())}
    return figures, {"statuses": by_status, "broken": list(wrong)}, seconds


def ask(options: argparse.Namespace, made_up: Record) -> None:
    """Add rounds until they have taken long enough."""
    progress = ConsoleProgress(Console(stderr=True))
    with tempfile.TemporaryDirectory(prefix="searchlab-soak-") as name:
        library = library_of(options.dataset, Path(name), progress=progress)
        with progress.step("made-up requests", round(options.seconds), unit="s") as step:
            step.advance(round(made_up.seconds))
            while made_up.seconds < options.seconds:
                seed = made_up.next_seed()
                figures, tables, seconds = ask_round(library, options, seed=seed, step=step)
                made_up.add(figures, tables, seconds=seconds, more={})
                step.advance(round(seconds))


def main() -> None:
    """Run, show and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "plain"))
    parser.add_argument("--seconds", type=float, default=3_600.0, help="length of all rounds")
    parser.add_argument("--round-seconds", type=float, default=300.0, help="length of one round")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.seconds, options.round_seconds = "plain", 10.0, 10.0
    end_on_sigterm()
    parameters = {"seconds": options.seconds, "workers": WORKERS}
    made_up = Record(options, "http", "schemathesis", parameters)
    try:
        ask(options, made_up)
    except KeyboardInterrupt:
        sys.exit(f"stopped: {made_up.seconds:,.0f} s are on record")
    show(made_up.figures())
    for one in made_up.broken:
        print(one)
    sys.exit(1 if made_up.broken else 0)


if __name__ == "__main__":
    main()
