"""What all actors of a soak share: the server, the library, accounts and the ledger."""

from __future__ import annotations

import asyncio
import random
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks.common.load.searchlab_server import Server
from benchmarks.soak.ledger import Ledger
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.library.library import open_library

if TYPE_CHECKING:
    from benchmarks.soak.faults import Faults

SEARCH = "/api/v1/search/photos"
ACCOUNTS = {
    "reader": "scale",
    "pager": "scale",
    "maker": "growth",
    "dawdler": "free",
    "finder": "growth",
}


class World:
    """What all actors of a soak share.

    Attributes:
        data: Folder of the library.
        photos: Folder of the pictures that come and go.
        server: The server that gets all requests.
        ledger: Counts what all actors do.
        random: Seeded; but the order in which actors draw differs between runs.
        faults: Sets the clock and fills the disk of the server.
        one_fault: Held while the clock is set, the disk is full or the server is down.
        counted: Most searches of the readers that the server has said it counted.
        ends: When the soak is over, by `time.monotonic`.
        database: Database of accounts and keys.
        keys: Account -> API key.
        snapshots: Id of a snapshot -> ids of its photos.
        order: Ids of the snapshots, oldest first.
        replaced: When each of them was noted to have a successor, by `time.monotonic`.
        memory_mib: Memory of the largest worker, every half second.
        downtimes_s: Seconds that each stop and start of the server took.
    """

    def __init__(
        self,
        data: Path,
        photos: Path,
        server: Server,
        faults: Faults,
        *,
        seconds: float,
        requests: int,
        seed: int,
    ) -> None:
        self.data, self.photos, self.server, self.faults = data, photos, server, faults
        self.one_fault = asyncio.Lock()
        self.counted = 0
        self._most_requests = requests
        self.ledger = Ledger()
        self.random = random.Random(seed)
        self.ends = time.monotonic() + seconds
        self.database = open_database(sqlite_url(data))
        self.keys = {
            account: create_key(self.database, account=account, name="soak", plan=plan)[1]
            for account, plan in ACCOUNTS.items()
        }
        self.snapshots: dict[str, frozenset[str]] = {}
        self.order: list[str] = []
        self.replaced: dict[str, float] = {}
        self.memory_mib: list[float] = []
        self.downtimes_s: list[float] = []
        self.note_snapshot()

    @property
    def is_over(self) -> bool:
        """Whether the soak has run for long enough."""
        return time.monotonic() > self.ends or self.ledger.requests >= self._most_requests

    @property
    def left_s(self) -> float:
        """Seconds until the soak is over."""
        return self.ends - time.monotonic()

    @property
    def current(self) -> frozenset[str]:
        """Photos of the newest snapshot that was noted."""
        return self.snapshots[self.order[-1]]

    def note_snapshot(self) -> None:
        """Remember the photos of the snapshot that is served now."""
        snapshot = open_library(self.data).snapshot()
        if snapshot is not None and snapshot.snapshot_id not in self.snapshots:
            self.snapshots[snapshot.snapshot_id] = frozenset(snapshot.table.texts("photo_id"))
            if self.order:
                self.replaced[self.order[-1]] = time.monotonic()
            self.order.append(snapshot.snapshot_id)

    def client(self, account: str) -> httpx.AsyncClient:
        """Return a client with an account's key and connections of its own."""
        return self.client_of(self.keys[account])

    def client_of(self, key: str) -> httpx.AsyncClient:
        """Return a client that sends a key."""
        return httpx.AsyncClient(
            base_url=self.server.base_url, headers={"x-api-key": key}, timeout=60
        )

    async def request(
        self,
        client: httpx.AsyncClient,
        account: str,
        method: str,
        path: str,
        *,
        allowed: tuple[int, ...] = (200,),
        searches: bool = False,
        **options: Any,
    ) -> httpx.Response | None:
        """Send a request once; returns None if the connection broke, or for a 429 or 503.

        A 429 or 503 must have Retry-After, and any other status that is not in `allowed` is a
        broken promise.
        """
        name = f"{method} {re.sub(r'[0-9a-f-]{36}|[0-9]+', '*', path)}"
        started = time.perf_counter()
        try:
            answer = await client.request(method, path, **options)
        except (httpx.ConnectError, httpx.ConnectTimeout):  # nothing was sent
            self.ledger.events["connections refused"] += 1
            await asyncio.sleep(0.2)
            return None
        except httpx.TransportError:
            self.ledger.events["connections that broke"] += 1
            if searches:
                self.ledger.unknown[account] += 1
            await asyncio.sleep(0.1)
            return None
        self.ledger.latencies_s.append(time.perf_counter() - started)
        self.ledger.answers[name, answer.status_code] += 1
        if searches and answer.status_code == 200:
            self.ledger.acknowledged[account] += 1
        if answer.status_code in {429, 503}:
            wait = answer.headers.get("retry-after", "")
            if not wait.isdigit():
                self.ledger.report_broken(f"{name}: {answer.status_code} without Retry-After")
            await asyncio.sleep(min(float(wait or 1), 2))
            return None
        if answer.status_code not in allowed:
            self.ledger.report_broken(f"{name}: {answer.status_code} {answer.text[:300]}")
        return answer
