"""Everything at once against a real server: does it keep what the specification promises?

    python -m benchmarks.soak.soak_http                     a minute and a half
    nice -n 10 python -m benchmarks.soak.soak_http --seconds 240 --force
    python -m benchmarks.soak.soak_http --seconds 36000 --requests 1000000 --force
    python -m benchmarks.soak.soak_http --smoke --out "$(mktemp -d)"

For --seconds (60; the smoke 10) a server with two workers on the bundled photos gets every request
that the API has, visitors of every page, and apps that connect by OAuth and call the tools.
Meanwhile photos come and go, keys are made and revoked, workers are killed, the server is stopped,
killed and started again, its clock is set by years, its disk is full, and crowds of slow clients
hold connections. It checks:

- counting: an account's usage is the searches that were acknowledged to it, none lost, and none
  extra except of those whose connection broke before an answer came;
- paging: a walk through a ranking meets every photo of its snapshot once, except deleted ones;
- keys: a new one works at once and a revoked one no more, on every connection;
- apps: tokens last as long as they say, renewed ones too, and of one that left none works;
- deletion: a photo that was deleted is gone, cursors included;
- idempotency: a POST that is sent again does nothing twice;
- answers: no status but those that the request may have, and no 5xx but 503 with Retry-After;
- clock and disk: what is counted never gets less, and /ready tells a disk that is full;
- memory: no worker grows beyond a bound.

Writes results/http/<dataset>/soak.json, skips what is on record (--force runs again), and ends with
1 if a check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.load.libraries import library_of
from benchmarks.common.load.searchlab_server import Server
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.soak.changing import change_photos, draw
from benchmarks.soak.connecting import use_tools
from benchmarks.soak.dawdling import dawdle
from benchmarks.soak.faults import Faults, fill_disk, set_clock
from benchmarks.soak.killing import kill_in_turns, summarise_memory, watch_memory
from benchmarks.soak.paging import walk_rankings
from benchmarks.soak.reading import read_at_random
from benchmarks.soak.settling import settle
from benchmarks.soak.visiting import visit
from benchmarks.soak.world import World
from benchmarks.soak.writing import make_collections, make_keys
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.library.ingest import index_photos
from searchlab.library.library import Library
from searchlab.library.roots import check_root

WORKERS = 2


async def run_all(world: World) -> None:
    """Run all actors at once until time is over, then check the accounts."""
    actors = [
        *[read_at_random] * 4,
        *[walk_rankings] * 2,
        make_collections,
        make_keys,
        change_photos,
        kill_in_turns,
        set_clock,
        fill_disk,
        dawdle,
        visit,
        use_tools,
        watch_memory,
    ]
    outcomes = await asyncio.gather(*(actor(world) for actor in actors), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            world.ledger.report_broken(f"an actor ended early: {outcome!r}")
    await settle(world)


def prepare(library: Library, photos: Path) -> None:
    """Make the folder of photos that come and go, and the database."""
    photos.mkdir()
    draw(photos / "upload.jpg", 0)
    for number in (-1, 0):
        draw(photos / f"new-{number}.png", 1000 - number)
    index_photos(library, [check_root(photos)])
    database = open_database(sqlite_url(library.folder))
    migrate(database)
    database.close()


def run_soak(options: argparse.Namespace) -> tuple[dict[str, float], dict[str, Any]]:
    """Run the soak; returns figures and tables."""
    progress = ConsoleProgress(Console(stderr=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = library_of(options.dataset, folder, progress=progress)
        prepare(library, folder / "photos")
        faults = Faults(folder)
        server = Server(
            library.folder,
            folder / "server.log",
            workers=WORKERS,
            environment=faults.environment,
        )
        server.start()
        try:
            with progress.step(f"everything at once for {options.seconds:g} seconds"):
                world = World(
                    library.folder,
                    folder / "photos",
                    server,
                    faults,
                    seconds=options.seconds,
                    requests=options.requests,
                    seed=options.seed,
                )
                asyncio.run(run_all(world))
            memory_figures = summarise_memory(world)
        finally:
            server.stop()
            errors = [line for line in (folder / "server.log").open() if '"error"' in line]
    sys.stdout.writelines(error[:1500] + "\n" for error in errors[:5])
    figures = world.ledger.counts() | memory_figures
    figures["most s to stop and start the server"] = round(max(world.downtimes_s, default=0.0), 1)
    figures["errors in the log"] = len(errors)
    figures["promises broken"] = len(world.ledger.broken)
    return figures, world.ledger.tables()


def main() -> None:
    """Run, show and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "plain"))
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the soak")
    parser.add_argument("--requests", type=int, default=10**6, help="requests after which it ends")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.seconds = "plain", min(options.seconds, 10.0)
    if on_record(options, "http", "soak") is not None:
        return
    figures, tables = run_soak(options)
    for name, value in figures.items():
        print(f"{name:<40}{value:>12,}")
    values = {
        "parameters": {
            "seconds": options.seconds,
            "requests": options.requests,
            "workers": WORKERS,
        },
        "metrics": figures,
        "counts": [{"what": name, "count": value} for name, value in figures.items()],
        **tables,
        "manifest": make_manifest("http", seed=options.seed),
    }
    record(options, "http", "soak", values)
    sys.exit(1 if tables["broken"] else 0)


if __name__ == "__main__":
    main()
