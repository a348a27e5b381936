"""What all actors of a round of the soak share: the server, the library, accounts, the ledger."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.load.searchlab_server import Server
from benchmarks.soak.http_client import Answer, BrokenConnection, HttpClient, NotConnected
from benchmarks.soak.ledger import Ledger
from benchmarks.soak.routes import Routes
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.library.library import open_library
from searchlab.library.snapshots import current_id

if TYPE_CHECKING:
    from benchmarks.soak.faults import Faults

SEARCH = "/api/v1/search/photos"
FORWARDED = "x-forwarded-for"
"""Says for which address a client asks; the server believes it from this machine."""
ACCOUNTS = {
    "reader": "scale",
    "pager": "scale",
    "maker": "growth",
    "dawdler": "free",
    "finder": "growth",
    "ann": "scale",
    "ben": "starter",
}
_LOOK_S = 0.05
_MARKUP = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Extent:
    """How long a round is: it ends with the first of both.

    Attributes:
        requests: Answers.
        seconds: Time.
    """

    requests: int
    seconds: float


class World:
    """What all actors of a round share.

    Attributes:
        data: Folder of the library.
        photos: Folder of the pictures that come and go.
        upload: A picture to search by.
        server: The server that gets all requests.
        ledger: Counts what all actors do.
        random: Seeded; but the order in which actors draw differs between runs.
        faults: Sets the clock and fills the disk of the server.
        one_fault: Held while the clock is set, the disk is full or the server is down.
        no_crowd: Held by a crowd of slow clients, and by who wants none for a while.
        counted: Most searches of the readers that the server has said it counted.
        database: Database of accounts and keys.
        keys: Account -> API key.
        snapshots: Id of a snapshot -> ids of its photos.
        order: Ids of the snapshots, oldest first.
        replaced: When each of them was noted to have a successor, by `time.monotonic`.
        memory_mib: Memory of the largest worker, every half second.
        downtimes_s: Seconds that each stop and start of the server took.
        gone_s: Seconds until every worker said that a deleted photo is gone.
    """

    def __init__(
        self,
        data: Path,
        photos: Path,
        server: Server,
        faults: Faults,
        *,
        extent: Extent,
        seed: int,
        routes: Routes,
    ) -> None:
        self.data, self.photos, self.server, self.faults = data, photos, server, faults
        self.upload = (photos / "upload.jpg").read_bytes()
        self.one_fault, self.no_crowd = asyncio.Lock(), asyncio.Lock()
        self.counted = 0
        self._extent, self._routes = extent, routes
        self._began = time.monotonic()
        self.ledger = Ledger()
        self.random = random.Random(seed)
        self.database = open_database(sqlite_url(data))
        self.keys = {
            account: create_key(self.database, account=account, name="soak", plan=plan)[1]
            for account, plan in ACCOUNTS.items()
        }
        self.snapshots: dict[str, frozenset[str]] = {}
        self.order: list[str] = []
        self.replaced: dict[str, float] = {}
        self._listed: tuple[str, ...] = ()
        self.memory_mib: list[float] = []
        self.downtimes_s: list[float] = []
        self.gone_s: list[float] = []
        self.note_snapshot()

    # -- time -----------------------------------------------------------------------------------

    @property
    def passed_s(self) -> float:
        """Seconds since the round began."""
        return time.monotonic() - self._began

    @property
    def progress(self) -> float:
        """How much of the round is over: 1 when it is."""
        by_requests = self.ledger.requests / self._extent.requests
        return max(by_requests, self.passed_s / self._extent.seconds)

    @property
    def is_over(self) -> bool:
        """Whether the round has run for long enough."""
        return self.progress >= 1

    async def turns(self, times: int, *, first: float = 0.5) -> AsyncIterator[int]:
        """Yield a number so many times, evenly over the round, however fast it goes.

        Args:
            times: Turns in a round.
            first: When the first one comes, as a part of the time between two; so that different
                disturbances come at different times.
        """
        for number in range(times):
            while self.progress < (number + first) / times:
                await asyncio.sleep(_LOOK_S)
            if self.is_over:
                return
            yield number

    # -- photos ---------------------------------------------------------------------------------

    @property
    def current(self) -> frozenset[str]:
        """Photos of the newest snapshot that was noted."""
        return self.snapshots[self.order[-1]]

    def choose_photo(self) -> str:
        """Draw a photo of the newest snapshot that was noted."""
        return self.random.choice(self._listed)

    def note_snapshot(self) -> None:
        """Remember the photos of the snapshot that is served now."""
        if current_id(self.data) in self.snapshots:
            return
        snapshot = open_library(self.data).snapshot()
        if snapshot is not None and snapshot.snapshot_id not in self.snapshots:
            self.snapshots[snapshot.snapshot_id] = frozenset(snapshot.table.texts("photo_id"))
            if self.order:
                self.replaced[self.order[-1]] = time.monotonic()
            self.order.append(snapshot.snapshot_id)
            self._listed = tuple(sorted(self.current))

    # -- requests -------------------------------------------------------------------------------

    def draw_address(self) -> str:
        """Draw the address that a client says it comes from."""
        return ".".join(map(str, (100, *(self.random.randrange(1, 255) for _ in range(3)))))

    def client(self, account: str) -> HttpClient:
        """Return a client with an account's key and a connection of its own."""
        return self.client_of(self.keys[account])

    def client_of(self, key: str, **headers: str) -> HttpClient:
        """Return a client that sends a key."""
        return HttpClient(self.server.base_url, {"x-api-key": key, **headers})

    async def request(
        self,
        client: HttpClient,
        account: str,
        method: str,
        path: str,
        *,
        allowed: tuple[int, ...] = (200,),
        searches: int = 0,
        **options: Any,
    ) -> Answer | None:
        """Send a request once; returns None where none of the allowed answers came.

        A 429 or 503 must have Retry-After, and any other status that is not in `allowed` is a
        broken promise.

        Args:
            client: Who sends it.
            account: Whose searches are counted.
            method: In capitals.
            path: Path, with its query or without.
            allowed: Statuses that may come.
            searches: Searches that the account is charged for if the first of `allowed` comes.
            options: Of `HttpClient.request`.
        """
        name = self._routes.name(method, path)
        started = time.perf_counter()
        try:
            answer = await client.request(method, path, **options)
        except NotConnected:
            self.ledger.events["connections refused"] += 1
            await asyncio.sleep(0.2)
            return None
        except BrokenConnection:
            self.ledger.events["connections that broke"] += 1
            self.ledger.unknown[account] += searches
            await asyncio.sleep(0.1)
            return None
        self.ledger.latencies_s.append(time.perf_counter() - started)
        self.ledger.note(name, answer.status)
        if answer.status == allowed[0]:
            self.ledger.acknowledged[account] += searches
        if answer.status in {429, 503} and answer.status not in allowed:
            wait = answer.headers.get("retry-after", "")
            if not wait.isdigit():
                self.ledger.report_broken(f"{name}: {answer.status} without Retry-After")
            await asyncio.sleep(min(float(wait or 1), 2))
            return None
        if answer.status not in allowed:
            said = _MARKUP.sub(" ", answer.text.rpartition("<main")[2])
            self.ledger.report_broken(f"{name}: {answer.status} {' '.join(said.split())[:300]}")
            return None
        return answer
