"""Everything at once against a real server: does it keep what the specification promises?

    python benchmarks/soak_http.py
    python benchmarks/soak_http.py --smoke --out "$(mktemp -d)"

For a minute (--runs seconds; the smoke 10) a server with two workers on the bundled photos is asked
for everything that the API has, while photos come and go, keys are made and revoked, workers are
killed and the whole server is stopped, killed and started again. Checked are:

- counting: an account's usage is the searches that were acknowledged to it, none lost, none extra
  but of those whose connection broke before an answer came;
- paging: a walk through a ranking meets every photo of its snapshot once, deleted ones excepted;
- keys: a new one works at once and a revoked one no more, on every connection;
- deletion: a photo that was deleted is gone, cursors included;
- idempotency: a POST that is sent again does nothing twice;
- answers: no status but those that the request may have, and no 5xx but 503 with Retry-After;
- memory: no worker grows beyond a bound.

Writes results/http/soak/<dataset>.json, and ends with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from bench_http import MAIN, ROOT, WORDS, plain_library, write_tables
from PIL import Image

from searchlab.demo import build_demo_library
from searchlab.library import open_library
from searchlab.results import environment
from searchlab.storage.accounts import create_key, revoke_key
from searchlab.storage.database import open_database, sqlite_url

MOST_REQUESTS = 200_000
MOST_GROWTH_MIB = 300
ACCOUNTS = {"reader": "scale", "pager": "scale", "maker": "growth"}
SEARCH = "/api/v1/search/photos"
FILTERS: tuple[dict[str, str], ...] = (
    {"color_name": "blue"},
    {"orientation": "landscape"},
    {"after_date": "2001-01-01"},
    {"q": "castle"},
    {"q": "a red flower", "sort_by": "newest"},
    {"q": "water", "color_hex": "#1f6f8b", "color_tolerance": "120"},
)


class Broken(Exception):  # noqa: N818 - a person reads it
    """A promise that was not kept."""


class Ledger:
    """What was asked and answered, and what went wrong.

    Attributes:
        acknowledged: Searches that each account got an answer to.
        unknown: Searches whose connection broke: counted or not, nobody can tell.
        answers: How often each operation gave each status.
        broken: Promises that were not kept.
        done: What else happened, by name.
    """

    def __init__(self) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.answers: Counter[tuple[str, int]] = Counter()
        self.done: Counter[str] = Counter()
        self.broken: list[str] = []
        self.took_ms: list[float] = []

    def blame(self, message: str) -> None:
        """Note a promise that was not kept."""
        if len(self.broken) < 50:
            self.broken.append(message)
            sys.stdout.write(f"BROKEN: {message}\n")


class Server:
    """`searchlab serve` on one port, started again and again."""

    def __init__(self, data: Path, log: Path) -> None:
        self.data, self._log, self._port = data, log, 0
        self.base_url = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        words = ["serve", "--data", str(self.data), "--port", str(self._port), "--workers", "2"]
        with self._log.open("ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [*MAIN, *words, "--log-format", "json"], stderr=log, stdout=subprocess.DEVNULL
            )
        while self.process.poll() is None:
            said = self._log.read_bytes()[begin:].decode()
            if found := re.search(r"searchlab serves .* at (http://\S+:(\d+))", said):
                self.base_url, self._port = found[1], int(found[2])
                return
            time.sleep(0.05)
        msg = f"serve must start, got {self.process.returncode}: {said[-2000:]}"
        raise Broken(msg)

    @property
    def workers(self) -> list[int]:
        """Process ids of the workers that live."""
        if self.process is None or self.process.poll() is not None:
            return []
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def stop(self, number: signal.Signals) -> int:
        """End it; returns its exit code once its workers are gone too."""
        if self.process is None:
            return 0
        workers = self.workers
        self.process.send_signal(number)
        code = self.process.wait(60)
        deadline = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            if time.monotonic() > deadline:
                msg = "workers must end with their server, got one that lives"
                raise Broken(msg)
            time.sleep(0.05)
        return code


class Soak:
    """All that goes on at once."""

    def __init__(self, data: Path, photos: Path, server: Server, seconds: float) -> None:
        self.data, self.photos, self.server = data, photos, server
        self.ledger = Ledger()
        self.random = random.Random(0)
        self.ends = time.monotonic() + seconds
        self.database = open_database(sqlite_url(data))
        self.keys = {
            account: create_key(self.database, account=account, name="soak", plan=plan)[1]
            for account, plan in ACCOUNTS.items()
        }
        self.snapshots: dict[str, frozenset[str]] = {}
        self.order: list[str] = []
        self.note_snapshot()
        self.memory_mib: list[float] = []
        self.away_s: list[float] = []

    @property
    def over(self) -> bool:
        """Whether it has run for long enough."""
        return time.monotonic() > self.ends or sum(self.ledger.answers.values()) > MOST_REQUESTS

    def note_snapshot(self) -> None:
        """Remember which photos the snapshot in force holds."""
        found = open_library(self.data).snapshot()
        if found is not None and found.snapshot_id not in self.snapshots:
            self.snapshots[found.snapshot_id] = frozenset(found.table.texts("photo_id"))
            self.order.append(found.snapshot_id)

    def client(self, account: str) -> httpx.AsyncClient:
        """A client of its own connections."""
        headers = {"x-api-key": self.keys[account]}
        return httpx.AsyncClient(base_url=self.server.base_url, headers=headers, timeout=60)

    async def ask(
        self,
        client: httpx.AsyncClient,
        account: str,
        method: str,
        path: str,
        *,
        may: tuple[int, ...] = (200,),
        searches: bool = False,
        **options: Any,
    ) -> httpx.Response | None:
        """Ask once; None where the connection broke or the server had no room.

        A 503 must say when to come again, and any status besides those in `may` is a broken
        promise.
        """
        name = f"{method} {re.sub(r'[0-9a-f-]{36}|[0-9]+', '*', path)}"
        started = time.perf_counter()
        try:
            answer = await client.request(method, path, **options)
        except (httpx.ConnectError, httpx.ConnectTimeout):  # nothing was asked
            self.ledger.done["connections refused"] += 1
            await asyncio.sleep(0.2)
            return None
        except httpx.TransportError:
            self.ledger.done["connections that broke"] += 1
            if searches:
                self.ledger.unknown[account] += 1
            await asyncio.sleep(0.1)
            return None
        self.ledger.took_ms.append(1e3 * (time.perf_counter() - started))
        self.ledger.answers[name, answer.status_code] += 1
        if searches and answer.status_code == 200:
            self.ledger.acknowledged[account] += 1
        if answer.status_code in {429, 503}:
            wait = answer.headers.get("retry-after", "")
            if not wait.isdigit():
                self.ledger.blame(f"{name}: {answer.status_code} without Retry-After")
            await asyncio.sleep(min(float(wait or 1), 2))
            return None
        if answer.status_code not in may:
            self.ledger.blame(f"{name}: {answer.status_code} {answer.text[:300]}")
        return answer

    async def readers(self) -> None:
        """Ask for everything that only reads."""
        account, words = "reader", WORDS.split()
        picture = self.photos / "upload.jpg"
        async with self.client(account) as client:
            while not self.over:
                word = self.random.choice(words)
                number = self.random.randrange(10**6)
                photo_id = self.random.choice(sorted(self.snapshots[self.order[-1]]))
                photo = f"/api/v1/photos/{photo_id}"
                gone = (200, 404)
                pick = self.random.randrange(10)
                if pick < 4:
                    asked = {"q": f"{word} {number % 50}", **self.random.choice(FILTERS[:3])}
                    await self.ask(client, account, "GET", SEARCH, params=asked, searches=True)
                elif pick == 4:
                    await self.ask(client, account, "GET", photo, may=gone)
                    similar = f"{photo}/similar"
                    await self.ask(client, account, "GET", similar, may=gone, searches=True)
                elif pick == 5:
                    asked = {"photo_id": photo_id, "q": word, "per_page": "5"}
                    await self.ask(
                        client, account, "POST", SEARCH, params=asked, may=gone, searches=True
                    )
                elif pick == 6:
                    files = {"image": ("a.jpg", picture.read_bytes(), "image/jpeg")}
                    first = await self.ask(
                        client, account, "POST", SEARCH, files=files, searches=True
                    )
                    if first is not None and first.status_code == 200:
                        cursor = first.json()["pagination"]["next_cursor"]
                        await self.ask(
                            client,
                            account,
                            "POST",
                            SEARCH,
                            params={"cursor": cursor},
                            may=(200, 410),
                            searches=True,
                        )
                elif pick == 7:
                    for facet in ("colors", "sources", "orientations", "licenses"):
                        await self.ask(client, account, "GET", f"/api/v1/facets/{facet}")
                    suggest = "/api/v1/facets/photographers/suggest"
                    await self.ask(client, account, "GET", suggest, params={"q": word[:2]})
                elif pick == 8:
                    for path in ("", "/monthly", "/daily", "/by-key"):
                        await self.ask(client, account, "GET", f"/api/v1/usage{path}")
                else:
                    wrong = {"q": word, "per_page": "101"}
                    await self.ask(client, account, "GET", SEARCH, params=wrong, may=(422,))
                    await self.ask(client, account, "GET", "/api/v1/nothing", may=(404,))

    async def pagers(self) -> None:
        """Walk through whole rankings."""
        async with self.client("pager") as client:
            while not self.over:
                asked = self.random.choice(FILTERS) | {
                    "fields": "photo_id,source",
                    "per_page": "40",
                }
                if await self.walk(client, asked):
                    self.ledger.done["walks to the end"] += 1

    async def walk(self, client: httpx.AsyncClient, asked: dict[str, str]) -> bool:
        """Page to the end; True if there was one and all promises were kept."""
        met: list[str] = []
        snapshot, total, cursor = "", 0, None
        while not self.over:
            params = asked if cursor is None else {"cursor": cursor, "fields": asked["fields"]}
            page = await self.ask(
                client, "pager", "GET", SEARCH, params=params, may=(200, 410), searches=True
            )
            if page is None:
                continue
            if page.status_code == 410:
                self.ledger.done["walks whose snapshot was dropped"] += 1
                kept = self.order[-3:]
                if snapshot in kept[1:]:
                    self.ledger.blame(f"a cursor of {snapshot} expired, kept are {kept}")
                return False
            if cursor is None:
                snapshot = page.headers["x-searchlab-snapshot"]
                total = int(page.headers["x-searchlab-plan"].split("candidates=")[1].split(";")[0])
            elif page.headers["x-searchlab-snapshot"] != snapshot:
                self.ledger.blame(f"a walk through {snapshot} went on in another snapshot")
            met += [photo["photo_id"] for photo in page.json()["data"]]
            pagination = page.json()["pagination"]
            cursor = pagination["next_cursor"]
            if pagination["has_more"] != (cursor is not None):
                self.ledger.blame(f"has_more and next_cursor must agree, got {pagination}")
            if cursor is None:
                return self.judge_walk(asked, met, snapshot, total)
        return False

    def judge_walk(self, asked: dict[str, str], met: list[str], snapshot: str, total: int) -> bool:
        """Compare what a walk met with what its snapshot holds."""
        repeated = [photo_id for photo_id, count in Counter(met).items() if count > 1]
        if repeated:
            self.ledger.blame(f"{asked}: photos were met twice: {repeated[:3]}")
        self.note_snapshot()
        start = self.snapshots.get(snapshot)
        if start is None:  # it was in force for a moment between two looks
            return not repeated
        since = self.order[self.order.index(snapshot) :]
        staying = frozenset.intersection(*(self.snapshots[name] for name in since))
        strangers = set(met) - start
        deleted = len(start) - len(staying)
        if strangers:
            self.ledger.blame(f"{asked}: photos of another snapshot were met: {strangers}")
        if not total - deleted <= len(met) <= total:
            self.ledger.blame(
                f"{asked}: {total} photos meet it in {snapshot}, {deleted} were deleted since, "
                f"{len(met)} were met"
            )
        if "q" in asked and "color_hex" not in asked and (skipped := staying - set(met)):
            self.ledger.blame(f"{asked}: photos were skipped: {sorted(skipped)[:3]}")
        return True

    async def collectors(self) -> None:
        """Make collections, fill and delete them, each POST twice."""
        async with self.client("maker") as client:
            while not self.over:
                made = await self.twice(client, "/api/v1/collections", {"name": "soak"})
                if made is None:
                    continue
                place = f"/api/v1/collections/{made['data']['id']}"
                photo_id = min(self.snapshots[self.order[-1]])
                added = await self.twice(client, f"{place}/photos", {"photo_id": photo_id})
                found = await self.ask(client, "maker", "GET", place)
                if added is not None and found is not None and found.status_code == 200:
                    count = found.json()["data"]["photos_count"]
                    if count != 1:
                        self.ledger.blame(f"a photo was added once, the collection holds {count}")
                    again = {"photo_id": photo_id}
                    await self.ask(
                        client, "maker", "POST", f"{place}/photos", json=again, may=(409,)
                    )
                await self.ask(client, "maker", "DELETE", place)
                self.ledger.done["collections made and deleted"] += 1

    async def twice(
        self, client: httpx.AsyncClient, path: str, body: dict[str, str]
    ) -> dict[str, Any] | None:
        """Send a POST again until it is answered, and then once more; returns the one answer."""
        headers = {"idempotency-key": str(uuid.uuid4())}
        answers: list[httpx.Response] = []
        tries = 0
        while len(answers) < 2 and tries < 40 and not self.over:
            tries += 1
            answer = await self.ask(
                client, "maker", "POST", path, json=body, headers=headers, may=(200, 409)
            )
            if answer is not None and answer.status_code == 200:
                answers.append(answer)
            elif answer is not None:  # held by a worker that was killed, for up to a minute
                self.ledger.done["retries that had to wait"] += 1
                return None
        if len(answers) < 2:
            return None
        first, again = answers
        if again.headers.get("idempotency-replayed") != "true" or first.content != again.content:
            self.ledger.blame(f"POST {path} was answered anew: {again.text[:200]}")
        found: dict[str, Any] = first.json()
        return found

    async def key_makers(self) -> None:
        """Make keys and revoke them; both must hold at once on every connection."""
        while not self.over:
            made, secret = await asyncio.to_thread(
                create_key, self.database, account="maker", name=f"short {uuid.uuid4()}"
            )
            headers = {"x-api-key": secret}
            clients = [
                httpx.AsyncClient(base_url=self.server.base_url, headers=headers, timeout=60)
                for _ in range(4)
            ]
            for client in clients:
                await self.ask(client, "maker", "GET", "/api/v1/facets/colors")
            await asyncio.to_thread(revoke_key, self.database, made.key_id)
            for client in clients:
                await self.ask(client, "maker", "GET", "/api/v1/facets/colors", may=(401,))
                await client.aclose()
            self.ledger.done["keys made and revoked"] += 1
            await asyncio.sleep(0.3)

    async def indexers(self) -> None:
        """Have photos come and go, and see that those that went are gone."""
        number = 0
        async with self.client("reader") as client:
            while not self.over:
                number += 1
                draw(self.photos / f"new-{number}.png", number)
                gone = self.photos / f"new-{number - 2}.png"
                gone.unlink(missing_ok=True)
                before = self.snapshots[self.order[-1]]
                await self.index()
                deleted = before - self.snapshots[self.order[-1]]
                # A look every 0.1 s, on a machine that others use.
                await asyncio.sleep(2)
                for photo_id in deleted:
                    for _ in range(4):
                        await self.ask(
                            client, "reader", "GET", f"/api/v1/photos/{photo_id}", may=(404,)
                        )
                self.ledger.done["photos deleted"] += len(deleted)
                await asyncio.sleep(2)

    async def index(self) -> None:
        """Run `searchlab index` beside the server."""
        words = ["index", "--data", str(self.data), str(self.photos)]
        done = await asyncio.create_subprocess_exec(
            *MAIN, *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _, said = await done.communicate()
        if done.returncode:
            self.ledger.blame(f"index ended with {done.returncode}: {said.decode()[-300:]}")
        self.note_snapshot()
        self.ledger.done["snapshots swapped in"] = len(self.order) - 1

    async def killers(self) -> None:
        """Kill workers, and stop, kill and start the server."""
        turn, pause = 0, max(3.0, (self.ends - time.monotonic()) / 8)
        while not self.over:
            await asyncio.sleep(pause)
            if self.ends - time.monotonic() < 3:
                return
            turn += 1
            began = time.monotonic()
            if turn % 4 == 2:
                code = await asyncio.to_thread(self.server.stop, signal.SIGTERM)
                if code:
                    self.ledger.blame(f"a stopped server must end with 0, got {code}")
                await asyncio.to_thread(self.server.start)
                self.ledger.done["server stopped and started"] += 1
            elif turn % 4 == 0:
                await asyncio.to_thread(self.server.stop, signal.SIGKILL)
                await asyncio.to_thread(self.server.start)
                self.ledger.done["server killed and started"] += 1
            elif workers := self.server.workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.random.choice(workers), signal.SIGKILL)
                self.ledger.done["workers killed"] += 1
            if turn % 2 == 0:
                self.away_s.append(time.monotonic() - began)

    async def watchers(self) -> None:
        """Note how much memory the workers hold."""
        while not self.over:
            sizes = [resident_mib(pid) for pid in self.server.workers]
            if sizes:
                self.memory_mib.append(max(sizes))
            await asyncio.sleep(0.5)

    async def run(self) -> None:
        """Let all go on until it is over, then settle the accounts."""
        actors: list[Callable[[], Awaitable[None]]] = [self.readers] * 4 + [self.pagers] * 2
        actors += [self.collectors, self.key_makers, self.indexers, self.killers, self.watchers]
        outcomes = await asyncio.gather(*(actor() for actor in actors), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                self.ledger.blame(f"an actor ended early: {outcome!r}")
        for account in ACCOUNTS:
            await self.settle(account)

    async def settle(self, account: str) -> None:
        """Compare an account's usage with what was acknowledged to it."""
        async with self.client(account) as client:
            answer = by_key = None
            for _ in range(100):  # a worker may just have been replaced
                answer = answer or await self.ask(client, account, "GET", "/api/v1/usage")
                by_key = by_key or await self.ask(client, account, "GET", "/api/v1/usage/by-key")
        if answer is None or by_key is None:
            self.ledger.blame(f"usage of {account} could not be asked")
            return
        used = answer.json()["data"]["requests"]["used"]
        keys = sum(key["requests_this_month"] for key in by_key.json()["data"]["keys"])
        acknowledged, unknown = self.ledger.acknowledged[account], self.ledger.unknown[account]
        if not acknowledged <= used <= acknowledged + unknown:
            self.ledger.blame(
                f"{account} was acknowledged {acknowledged} searches and {unknown} broke off, "
                f"its usage says {used}"
            )
        if keys != used:
            self.ledger.blame(f"{account} used {used}, its keys together {keys}")
        self.ledger.done["searches counted"] += used

    def figures(self) -> dict[str, Any]:
        """Return what goes on record."""
        ledger, took = self.ledger, np.array(self.ledger.took_ms or [0.0])
        statuses: Counter[int] = Counter()
        for (_, status), count in ledger.answers.items():
            statuses[status] += count
        answers = sorted(ledger.answers.items())
        first = np.median(self.memory_mib[: max(1, len(self.memory_mib) // 4)])
        last = np.median(self.memory_mib[-max(1, len(self.memory_mib) // 4) :])
        return {
            "requests": sum(statuses.values()),
            "statuses": {str(status): count for status, count in sorted(statuses.items())},
            "answers": {f"{name} {status}": count for (name, status), count in answers},
            "searches_acknowledged": ledger.acknowledged.total(),
            "searches_broken_off": ledger.unknown.total(),
            **{name.replace(" ", "_"): count for name, count in sorted(ledger.done.items())},
            "most_s_to_stop_and_start_the_server": round(max(self.away_s, default=0.0), 1),
            "p50_ms": round(float(np.percentile(took, 50)), 2),
            "p99_ms": round(float(np.percentile(took, 99)), 2),
            "worker_mib_first": round(float(first), 1),
            "worker_mib_last": round(float(last), 1),
            "worker_mib_most": round(max(self.memory_mib), 1),
            "broken": ledger.broken,
        }


def draw(path: Path, number: int) -> None:
    """Draw a small picture that no other number gives."""
    rng = np.random.default_rng(number)
    Image.fromarray(rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)).save(path)


def resident_mib(pid: int) -> float:
    """Memory of a process; 0 where it has gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def prepare(folder: Path, library: Path | None, *, smoke: bool) -> tuple[Path, Path]:
    """Make the library and the folder of photos that come and go."""
    data, photos = folder / "library", folder / "photos"
    if smoke:
        plain_library(data, folder / "plain")
    else:
        if library is not None:
            shutil.copytree(library, data, ignore=shutil.ignore_patterns("api.db*"))
        build_demo_library(data)
    photos.mkdir()
    draw(photos / "upload.jpg", 0)
    for number in (-1, 0):
        draw(photos / f"new-{number}.png", 1000 - number)
    subprocess.run([*MAIN, "index", "--data", str(data), str(photos)], check=True)
    database = open_database(sqlite_url(data))
    database.migrate()
    database.close()
    return data, photos


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="demo")
    parser.add_argument("--library", type=Path, help="a demo library to copy, to save its making")
    parser.add_argument("--runs", type=int, default=60, help="seconds")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="ten seconds")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    path = options.out / "http" / "soak" / f"{options.dataset}.json"
    if path.exists() and not options.force:
        sys.stdout.write(f"{path} is there; --force measures again\n")
        return
    seconds = 10 if options.smoke else options.runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, photos = prepare(folder, options.library, smoke=options.smoke)
        server = Server(data, folder / "server.log")
        server.start()
        try:
            soak = Soak(data, photos, server, seconds)
            asyncio.run(soak.run())
            figures = soak.figures()
            if figures["worker_mib_last"] > figures["worker_mib_first"] + MOST_GROWTH_MIB:
                soak.ledger.blame(f"workers grew by more than {MOST_GROWTH_MIB} MiB")
        finally:
            server.stop(signal.SIGTERM)
            errors = [line for line in (folder / "server.log").open() if '"error"' in line]
    figures["errors_in_the_log"] = len(errors)
    sys.stdout.writelines(error[:1500] + "\n" for error in errors[:5])
    result = {
        "schema": 1,
        "benchmark": "http_soak",
        "dataset": options.dataset,
        "config": {"seconds": seconds, "workers": 2},
        "metrics": figures,
        "environment": environment(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(figures, indent=1) + f"\n{path}\n")
    write_tables(options.out / "http")
    sys.exit(1 if figures["broken"] else 0)


if __name__ == "__main__":
    main()
