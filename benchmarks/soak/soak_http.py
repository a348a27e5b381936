"""Everything at once against a real server: does it keep what the specification promises?

    python -m benchmarks.soak.soak_http                     goes on until a million requests
    chrt -i 0 nice -n 19 python -m benchmarks.soak.soak_http     the same, beside other work
    TMPDIR=/dev/shm python -m benchmarks.soak.soak_http     faster where others write to the disk
    python -m benchmarks.soak.soak_http --requests 50000 --force
    python -m benchmarks.soak.soak_http --smoke --out "$(mktemp -d)"

It runs in rounds. Each begins with a new server of two workers, a new library of the bundled
photos and another seed, and lasts for --round-requests (50,000) or --round-minutes (10), whichever
comes first. A round that has ended is on record, with its commit; called again, the soak adds
rounds until --requests (1,000,000) are reached, and Ctrl-C costs the round under way.

In a round the server gets every request that the API has, visitors of every page, people who sign
in and use all there is, judges, and apps that connect by OAuth and call the tools. Meanwhile photos
come and go, keys are made, revoked and guessed, accounts are closed, workers are killed, the server
is stopped, killed and started again, its clock is set by years, its disk is full, and crowds of
slow clients hold connections: each of these as often in every round, spread over it. It checks:

- counting: an account's usage is the searches that were acknowledged to it, none lost, and none
  extra except of those whose connection broke before an answer came;
- paging: a walk through a ranking meets every photo of its snapshot once, except deleted ones;
- keys: a new one works at once and a revoked one no more, on every connection;
- sessions and apps: they last as long as they say, and what was ended is refused at once;
- deletion: a photo that was deleted is gone, cursors included;
- idempotency: a POST that is sent again does nothing twice;
- answers: no status but those that the request may have, and no 5xx but 503 with Retry-After;
- clock and disk: what is counted never gets less, and /ready tells a disk that is full;
- memory: no worker grows beyond a bound;
- itself: every route that the application has was asked.

Writes results/http/<dataset>/soak.json, and ends with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common.load.libraries import library_of
from benchmarks.common.load.searchlab_server import Server
from benchmarks.common.recording import bench_parser
from benchmarks.soak.changing import change_photos, draw
from benchmarks.soak.connecting import register_apps, use_tools
from benchmarks.soak.dawdling import dawdle
from benchmarks.soak.faults import Faults, fill_disk, set_clock
from benchmarks.soak.judging import prepare_comparison
from benchmarks.soak.killing import kill_in_turns, summarise_memory, watch_memory
from benchmarks.soak.paging import walk_rankings
from benchmarks.soak.people import come_and_go, live_as_ann, live_as_ben
from benchmarks.soak.reading import read_at_random
from benchmarks.soak.rounds import Record, end_on_sigterm, show
from benchmarks.soak.routes import Routes
from benchmarks.soak.settling import settle
from benchmarks.soak.visiting import visit
from benchmarks.soak.world import FORWARDED, Extent, World
from benchmarks.soak.writing import guess_keys, make_collections, make_keys
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.api.ops.worker import loop_factory
from searchlab.cli.console import ConsoleProgress
from searchlab.library.ingest import index_photos
from searchlab.library.library import Library, open_library
from searchlab.library.roots import check_root
from searchlab.progress import Step

WORKERS = 2
_OPTIONS = ("--rate", "500", "--burst", "1000", "--trusted-proxy-header", FORWARDED)
_READERS, _PAGERS = 16, 3
_REPORT_S = 0.5


async def run_all(world: World, step: Step) -> None:
    """Run all actors at once until the round is over, then check the accounts."""
    actors = [
        *[read_at_random] * _READERS,
        *[walk_rankings] * _PAGERS,
        visit,
        *(make_collections, make_keys, guess_keys),
        *(live_as_ann, live_as_ben, come_and_go),
        *(use_tools, use_tools, register_apps),
        *(change_photos, kill_in_turns, set_clock, fill_disk, dawdle),
        watch_memory,
    ]
    reporting = asyncio.ensure_future(_report(world, step))
    outcomes = await asyncio.gather(*(actor(world) for actor in actors), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            world.ledger.report_broken(f"an actor ended early: {outcome!r}")
    await settle(world)
    reporting.cancel()


async def _report(world: World, step: Step) -> None:
    reported = 0
    while True:
        await asyncio.sleep(_REPORT_S)
        step.advance(world.ledger.requests - reported)
        reported = world.ledger.requests
        step.note(f"round {world.progress:.0%}")


def prepare(library: Library, photos: Path) -> None:
    """Make the folder of photos that come and go, what judges compare, and the database."""
    photos.mkdir()
    draw(photos / "upload.jpg", 0)
    for number in (-1, 0):
        draw(photos / f"new-{number}.png", 1000 - number)
    index_photos(library, [check_root(photos)])
    prepare_comparison(library)
    database = open_database(sqlite_url(library.folder))
    migrate(database)
    database.close()


def run_round(
    template: Library, options: argparse.Namespace, *, seed: int, step: Step, routes: Routes
) -> tuple[dict[str, float], dict[str, Any], float]:
    """Run a round; returns its figures, its tables and its length in seconds."""
    with tempfile.TemporaryDirectory(prefix="searchlab-soak-") as name:
        folder = Path(name)
        shutil.copytree(template.folder, folder / "library")
        prepare(open_library(folder / "library"), folder / "photos")
        faults, log = Faults(folder), folder / "server.log"
        server = Server(
            folder / "library",
            log,
            workers=WORKERS,
            options=_OPTIONS,
            environment=faults.environment,
        )
        extent = Extent(options.round_requests, options.round_minutes * 60)
        try:
            server.start()
            world = World(
                folder / "library",
                folder / "photos",
                server,
                faults,
                extent=extent,
                seed=seed,
                routes=routes,
            )
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(run_all(world, step))
            memory_figures, seconds = summarise_memory(world), world.passed_s
            world.database.close()
        finally:
            server.stop()
        errors = [line for line in log.open() if '"error"' in line]
    sys.stdout.writelines(error[:1500] + "\n" for error in errors[:3])
    figures = world.ledger.counts() | memory_figures
    figures["most s to stop and start the server"] = round(max(world.downtimes_s, default=0.0), 1)
    figures["most s until a deleted photo was gone"] = round(max(world.gone_s, default=0.0), 1)
    figures["errors in the log"] = len(errors)
    figures["promises broken"] = len(world.ledger.broken)
    return figures, world.ledger.tables(), seconds


def run_rounds(options: argparse.Namespace, soak: Record) -> list[str]:
    """Add rounds until there are enough requests; returns the routes that none has asked."""
    progress, routes = ConsoleProgress(Console(stderr=True)), Routes()
    with tempfile.TemporaryDirectory(prefix="searchlab-soak-") as name:
        template = library_of(options.dataset, Path(name), progress=progress)
        with progress.step("everything at once", options.requests, unit="requests") as step:
            step.advance(soak.requests)
            while soak.requests < options.requests:
                began = time.monotonic()
                figures, tables, seconds = run_round(
                    template, options, seed=soak.next_seed(), step=step, routes=routes
                )
                figures["seconds with preparing"] = round(time.monotonic() - began, 1)
                asked = soak.asked | {name.rpartition(" ")[0] for name in tables["answers"]}
                more = {"routes never asked": routes.unasked(asked)}
                soak.add(figures, tables, seconds=seconds, more=more)
    return routes.unasked(soak.asked)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "plain"))
    parser.add_argument("--requests", type=int, default=10**6, help="requests of all rounds")
    parser.add_argument("--round-requests", type=int, default=50_000, help="of one round at most")
    parser.add_argument("--round-minutes", type=float, default=10.0, help="of one round at most")
    options = parser.parse_args()
    if options.smoke:
        options.dataset, options.requests, options.round_minutes = (
            "plain",
            1,
            min(options.round_minutes, 1.0),
        )
    return options


def main() -> None:
    """Run, show and record."""
    options = parse()
    end_on_sigterm()
    parameters = {
        "requests": options.requests,
        "round_requests": options.round_requests,
        "round_minutes": options.round_minutes,
        "workers": WORKERS,
    }
    soak = Record(options, "http", "soak", parameters)
    try:
        unasked = run_rounds(options, soak)
    except KeyboardInterrupt:
        sys.exit(
            f"stopped: {len(soak.rounds)} rounds with {soak.requests:,} requests are on record"
        )
    show(soak.figures())
    for route in unasked:
        print(f"NEVER ASKED: {route}")
    sys.exit(1 if soak.broken or unasked else 0)


if __name__ == "__main__":
    main()
