"""Snapshots with other bytes under right checksums: does opening and asking one end in order?

    python -m benchmarks.soak.soak_snapshots                goes on until 14,500 are on record
    python -m benchmarks.soak.soak_snapshots --mutations 30000
    python -m benchmarks.soak.soak_snapshots --smoke --out "$(mktemp -d)"

A round takes one kind of index and changes a file of a small snapshot --round-mutations (500)
times, each time another way, makes the checksums right again, opens it and asks it all there is to
ask; see `tests.support.snapshot_fuzz`. It must be answered from, or refused with an error that says
what is wrong; a process that dies, hangs or raises anything else fails. A round that has ended is
on record; called again it adds rounds until --mutations (14,500) are reached, and Ctrl-C costs the
one under way. A request is one mutated snapshot.

Writes results/http/<dataset>/snapshots.json, and ends with 1 if one fails.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.common.recording import bench_parser
from benchmarks.soak.rounds import Record, end_on_sigterm, show
from searchlab.cli.console import ConsoleProgress

_KINDS: Final = ("exact", "hnsw", "clustered", "pgvector")
_SEEDS: Final = 1_000_000  # of one round at most; those of tests lie below


def mutate_round(
    kind: str, count: int, seed: int
) -> tuple[dict[str, float], dict[str, Any], float]:
    """Open that many mutated snapshots in one process; returns figures, tables and seconds."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="searchlab-soak-") as folder:
        words = ("-m", "tests.support.snapshot_fuzz", str(Path(folder) / kind), kind)
        first = (seed + 1) * _SEEDS
        done = subprocess.run(
            [sys.executable, *words, str(first), str(count)],
            capture_output=True,
            text=True,
            check=False,
        )
    *before, last = done.stdout.splitlines() or [""]
    outcomes = json.loads(last) if last.startswith("{") else {}
    broken = []
    if done.returncode:
        named = [line for line in before if line.startswith(f"{kind} ")]
        said = done.stderr.splitlines()[-1:] if not outcomes else [f"{outcomes} of {count}"]
        broken.append(f"{(named or ['before the first one'])[-1]}: {' '.join(said)}")
    figures: dict[str, float] = {
        "requests": sum(outcomes.values()),
        "answered from": outcomes.get("ok", 0),
        "refused": sum(outcomes.values()) - outcomes.get("ok", 0) - outcomes.get("wrong", 0),
        "crashes and wrong errors": max(len(broken), outcomes.get("wrong", 0)),
    }
    return (
        figures,
        {"answers": {f"{kind} {k}": n for k, n in outcomes.items()}, "broken": broken},
        (time.monotonic() - began),
    )


def mutate(options: argparse.Namespace, mutated: Record) -> None:
    """Add rounds until there were enough."""
    progress = ConsoleProgress(Console(stderr=True))
    kinds = itertools.islice(itertools.cycle(_KINDS), len(mutated.rounds), None)
    with progress.step("mutated snapshots", options.mutations, unit="snapshots") as step:
        step.advance(mutated.requests)
        while mutated.requests < options.mutations and not mutated.broken:
            kind, count = next(kinds), min(options.round_mutations, options.mutations)
            figures, tables, seconds = mutate_round(kind, count, mutated.next_seed())
            mutated.add(figures, tables, seconds=seconds, more={})
            step.advance(count)


def main() -> None:
    """Run, show and record."""
    parser = bench_parser(__doc__, dataset="plain", datasets=("plain",))
    parser.add_argument("--mutations", type=int, default=14_500, help="mutations of all rounds")
    parser.add_argument("--round-mutations", type=int, default=500, help="mutations of a round")
    options = parser.parse_args()
    if options.smoke:
        options.mutations = options.round_mutations = 5
    end_on_sigterm()
    parameters = {"mutations": options.mutations, "round_mutations": options.round_mutations}
    mutated = Record(options, "http", "snapshots", parameters)
    try:
        mutate(options, mutated)
    except KeyboardInterrupt:
        sys.exit(f"stopped: {mutated.requests:,} mutations are on record")
    show(mutated.figures())
    for one in mutated.broken:
        print(one)
    sys.exit(1 if mutated.broken else 0)


if __name__ == "__main__":
    main()
