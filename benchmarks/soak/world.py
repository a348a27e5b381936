"""What all who take part in a soak share: the server, the library, accounts and the ledger."""

from __future__ import annotations

import asyncio
import random
import re
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.common.load.searchlab_server import Server
from benchmarks.soak.ledger import Ledger
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.library.library import open_library

SEARCH = "/api/v1/search/photos"
ACCOUNTS = {"reader": "scale", "pager": "scale", "maker": "growth"}
_MOST_REQUESTS = 200_000


class World:
    """What all who take part share.

    Attributes:
        data: Folder of the library.
        photos: Folder of the pictures that come and go.
        server: That all of them ask.
        ledger: Where all of them write.
        random: Of one seed, though not of one order.
        ends: When it is over.
        database: Of accounts and keys.
        keys: Account -> key.
        snapshots: Name -> the photos that it holds.
        order: Names of the snapshots, oldest first.
        memory_mib: Of the largest worker, look by look.
        away_s: Seconds that each stop and start of the server took.
    """

    def __init__(
        self, data: Path, photos: Path, server: Server, *, seconds: float, seed: int
    ) -> None:
        self.data, self.photos, self.server = data, photos, server
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
        self.memory_mib: list[float] = []
        self.away_s: list[float] = []
        self.note_snapshot()

    @property
    def over(self) -> bool:
        """Whether it has run for long enough."""
        return time.monotonic() > self.ends or self.ledger.requests > _MOST_REQUESTS

    @property
    def left_s(self) -> float:
        """Seconds until it is over."""
        return self.ends - time.monotonic()

    @property
    def current(self) -> frozenset[str]:
        """Photos of the newest snapshot that was noted."""
        return self.snapshots[self.order[-1]]

    def note_snapshot(self) -> None:
        """Remember which photos the snapshot in force holds."""
        snapshot = open_library(self.data).snapshot()
        if snapshot is not None and snapshot.snapshot_id not in self.snapshots:
            self.snapshots[snapshot.snapshot_id] = frozenset(snapshot.table.texts("photo_id"))
            self.order.append(snapshot.snapshot_id)

    def client(self, account: str) -> httpx.AsyncClient:
        """Return a client of its own connections."""
        return self.client_of(self.keys[account])

    def client_of(self, key: str) -> httpx.AsyncClient:
        """Return a client that shows a key."""
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
        may: tuple[int, ...] = (200,),
        searches: bool = False,
        **options: Any,
    ) -> httpx.Response | None:
        """Ask once; None where the connection broke or the server had no room.

        A 429 or 503 must say when to come again, and any status besides those in `may` is a broken
        promise.
        """
        name = f"{method} {re.sub(r'[0-9a-f-]{36}|[0-9]+', '*', path)}"
        started = time.perf_counter()
        try:
            answer = await client.request(method, path, **options)
        except (httpx.ConnectError, httpx.ConnectTimeout):  # nothing was asked
            self.ledger.events["connections refused"] += 1
            await asyncio.sleep(0.2)
            return None
        except httpx.TransportError:
            self.ledger.events["connections that broke"] += 1
            if searches:
                self.ledger.unknown[account] += 1
            await asyncio.sleep(0.1)
            return None
        self.ledger.took_s.append(time.perf_counter() - started)
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
