"""Uploads under attack: does another account still get its answers, and how long do texts take?

    python -m benchmarks.soak.soak_uploads
    python -m benchmarks.soak.soak_uploads --smoke --out "$(mktemp -d)"

A server of two workers with its usual limits, over the bundled photos. One account searches by its
own picture, one after the other until --uploads (100) are answered, while another one searches by
texts. First nobody else is there (`quiet`); then eight accounts of the free plan send uploads over
four connections each, as fast as they are answered (`attacked`), from a process that gives way to
the server, as other machines would: progressive JPEGs of 11,300 pixels square whose last scan is
repeated 99 times, and the heaviest of that kind that is still decoded.

Writes results/http/<dataset>/uploads.json: how many uploads and texts were answered, their times,
what the attackers got, and the memory of all processes of the server before, at most and after.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console

from benchmarks.common.load.libraries import library_of
from benchmarks.common.load.searchlab_server import Server
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.soak.attacking import CONNECTIONS, attacked
from benchmarks.soak.http_client import BrokenConnection, HttpClient, NotConnected
from benchmarks.soak.weighing import memory_mib, weighed
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.provenance.manifest import make_manifest

NAME = "uploads"
WORKERS, ATTACKERS = 2, 8
_PAUSE_S = 0.15  # of who searches by texts, within the usual rate of a key
_WARMING = 16  # connections, so that no worker is likely to have none
_BASE_S = 45.0  # until memory is looked at again, when decoders of the attack have ended
_WORDS = ("castle", "dog", "boat", "tree", "night", "red car", "sea", "a bird", "snow", "bread")


def draw_picture(seed: int) -> bytes:
    """Make a picture as people have them."""
    noise = np.random.default_rng(seed).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((640, 480)).save(buffer, "JPEG")
    return buffer.getvalue()


async def ask(client: HttpClient, answers: Counter[str], **sent: Any) -> float | None:
    """Search once and count the status; returns milliseconds if it was answered."""
    started = time.perf_counter()
    try:
        answer = await client.request(**sent)
    except (BrokenConnection, NotConnected, OSError):
        answers["no answer"] += 1
        return None
    answers[str(answer.status)] += 1
    return 1e3 * (time.perf_counter() - started) if answer.status == 200 else None


async def search_texts(url: str, key: str, answers: Counter[str], times: list[float]) -> None:
    """Search by texts that are new each time, until cancelled."""
    async with HttpClient(url, {"x-api-key": key}) as client:
        for number in itertools.count():
            words = {"q": f"{_WORDS[number % len(_WORDS)]} {number}"}
            path = "/api/v1/search/photos"
            took = await ask(client, answers, method="GET", path=path, params=words)
            if took is not None:
                times.append(took)
            await asyncio.sleep(_PAUSE_S)


async def warm(url: str, key: str) -> None:
    """Upload over many connections, so that each worker has read its model."""
    pictures = [draw_picture(number) for number in range(_WARMING)]

    async def upload(picture: bytes) -> None:
        async with HttpClient(url, {"x-api-key": key}) as client:
            await client.request("POST", "/api/v1/search/photos", picture=picture)

    await asyncio.gather(*map(upload, pictures))


def measure(server: Server, keys: dict[str, str], n_uploads: int) -> dict[str, Any]:
    """Upload one after the other while another one searches by texts, and weigh the server."""
    pictures = [draw_picture(number) for number in range(n_uploads)]
    with weighed(server.pid) as most:
        row = asyncio.run(ask_both(server.base_url, keys, pictures))
    return row | {"most_mib": round(most[0])}


async def ask_both(url: str, keys: dict[str, str], pictures: Sequence[bytes]) -> dict[str, Any]:
    """Upload pictures one after the other while another one searches by texts."""
    answers = {who: Counter[str]() for who in ("upload", "text")}
    texts: list[float] = []
    uploads: list[float] = []
    other = asyncio.ensure_future(search_texts(url, keys["texts"], answers["text"], texts))
    async with HttpClient(url, {"x-api-key": keys["uploads"]}) as client:
        for picture in pictures:
            took = await ask(
                client,
                answers["upload"],
                method="POST",
                path="/api/v1/search/photos",
                picture=picture,
            )
            if took is not None:
                uploads.append(took)
            await asyncio.sleep(_PAUSE_S)
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    return {
        "uploads answered": len(uploads),
        "texts asked": sum(answers["text"].values()),
        "texts answered": len(texts),
        "upload_p50_ms": round(statistics.median(uploads or [0.0]), 1),
        "upload_p99_ms": _percentile(uploads, 99),
        "text_p50_ms": _percentile(texts, 50),
        "text_p99_ms": _percentile(texts, 99),
        "statuses": {who: dict(sorted(counts.items())) for who, counts in answers.items()},
    }


def _percentile(times: Sequence[float], share: int) -> float:
    return round(float(np.percentile(times, share)), 1) if times else 0.0


def main() -> None:
    """Measure and record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "plain"))
    parser.add_argument("--uploads", type=int, default=100, help="uploads of each phase")
    options = parser.parse_args()
    if options.uploads < 1:
        parser.error(f"--uploads must be 1 or more, got {options.uploads}")
    if options.smoke:
        options.dataset, options.uploads = "plain", 3
    if on_record(options, "http", NAME) is not None:
        return
    attackers = [f"attacker-{number}" for number in range(ATTACKERS)]
    with tempfile.TemporaryDirectory(prefix="searchlab-soak-") as name:
        folder = Path(name)
        progress = ConsoleProgress(Console(stderr=True))
        library = library_of(options.dataset, folder, progress=progress)
        database = open_database(sqlite_url(library.folder))
        migrate(database)
        plans = dict.fromkeys(attackers, "free") | {"uploads": "growth", "texts": "growth"}
        keys = {
            who: create_key(database, account=who, name="soak", plan=plan)[1]
            for who, plan in plans.items()
        }
        database.close()
        server = Server(library.folder, folder / "log", workers=WORKERS)
        try:
            server.start()
            asyncio.run(warm(server.base_url, keys["uploads"]))
            time.sleep(_BASE_S if not options.smoke else 0)
            base = memory_mib(server.pid)
            quiet = measure(server, keys, options.uploads)
            with attacked(server.base_url, [keys[who] for who in attackers]) as answers:
                beside = measure(server, keys, options.uploads)
            beside["statuses"]["attack"] = dict(sorted(answers.items()))
            time.sleep(_BASE_S if not options.smoke else 0)
            after = memory_mib(server.pid)
        finally:
            server.stop()
    rows = {"quiet": quiet, "attacked": beside}
    metrics = {
        f"{phase} {name}": value
        for phase, row in rows.items()
        for name, value in row.items()
        if name != "statuses"
    }
    ratio = beside["text_p99_ms"] / max(quiet["text_p99_ms"], 1e-9)
    metrics |= {
        "uploads asked": options.uploads,
        "attackers": ATTACKERS,
        "connections": ATTACKERS * CONNECTIONS,
        "text_p99_ratio": round(ratio, 2),
        "base_mib": round(base),
        "after_mib": round(after),
    }
    for name, value in metrics.items():
        sys.stdout.write(f"{name:32}{value:>12,}\n")
    values = {
        "parameters": {
            "uploads": options.uploads,
            "workers": WORKERS,
            "attackers": ATTACKERS,
            "connections": CONNECTIONS,
        },
        "metrics": metrics,
        "rows": [{"phase": phase, **row} for phase, row in rows.items()],
        "manifest": make_manifest("http"),
    }
    record(options, "http", NAME, values)


if __name__ == "__main__":
    main()
