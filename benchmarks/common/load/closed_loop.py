"""Closed-loop load: each connection sends one request after the other, as soon as it is answered.

Latency runs from the moment that a request is sent until its answer is there as a whole. In a
closed loop no request waits to be sent, so the time of one that meets a busy server shows in its
own latency alone; requests a second are what so many clients get, not what the server could take.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from searchlab.evaluation.metrics import latency

WORDS = ("castle", "boat", "dragonfly", "bridge", "night", "flower", "mountain", "leaf", "rain")
NEW_TEXT = "@"
_FRESH = itertools.count(os.getpid() * 1_000)


@dataclass(frozen=True)
class LoadRequest:
    """A request to be sent again and again.

    Attributes:
        url: Address; `NEW_TEXT` in it stands for a text that was never asked before.
        method: `"GET"` or `"POST"`.
        headers: Those that matter.
        body: Of a POST.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def target(self) -> str:
        """Path and query."""
        parts = urlsplit(self.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path


@dataclass(frozen=True)
class Load:
    """What came of it.

    Attributes:
        requests: Answers.
        refused: Answers with another status than 2xx.
        failed: Connections that broke.
        seconds: From the first request to the last answer.
        p50_ms: Median latency.
        p95_ms: 95th percentile.
        p99_ms: 99th percentile.
    """

    requests: int
    refused: int
    failed: int
    seconds: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


def sender(seconds: float) -> str:
    """Name what sends: wrk where it is installed, else a slower client of our own.

    wrk counts in whole seconds, so what is shorter is sent by our own.
    """
    return "wrk" if seconds >= 1 and shutil.which("wrk") else "asyncio"


def load(request: LoadRequest, *, connections: int, seconds: float) -> Load:
    """Ask over so many connections for so long."""
    # Every load begins where no other has counted to, so that a new text is new.
    first = next(_FRESH) * 10_000_000
    if sender(seconds) == "wrk":
        from benchmarks.common.load.wrk import load_with_wrk

        return load_with_wrk(request, connections=connections, seconds=seconds, first=first)
    return asyncio.run(load_with_asyncio(request, connections, seconds, first))


def new_text(number: int) -> str:
    """Return text `number`, fit for an address."""
    return f"{WORDS[number % len(WORDS)]}+{number}"


async def load_with_asyncio(
    request: LoadRequest, connections: int, seconds: float, first: int = 0
) -> Load:
    """Do what wrk does, in Python."""
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    if request.body:
        headers += f"Content-Length: {len(request.body)}\r\n"
    numbers = itertools.count(first)
    took: list[float] = []
    refused = failed = 0
    deadline = time.perf_counter() + seconds

    async def keep_asking() -> None:
        nonlocal refused, failed
        reader, writer = await asyncio.open_connection(host, parts.port)
        while (started := time.perf_counter()) < deadline:
            target = request.target.replace(NEW_TEXT, new_text(next(numbers)))
            head = f"{request.method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{headers}\r\n"
            try:
                writer.write(head.encode() + request.body)
                answer = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", answer.lower())
                await reader.readexactly(int(length[1]) if length else 0)
            except (OSError, asyncio.IncompleteReadError):
                failed += 1
                await _close(writer)
                reader, writer = await asyncio.open_connection(host, parts.port)
                continue
            took.append(time.perf_counter() - started)
            refused += not answer.startswith(b"HTTP/1.1 2")
        await _close(writer)

    started = time.perf_counter()
    await asyncio.gather(*(keep_asking() for _ in range(connections)))
    return Load(
        requests=len(took),
        refused=refused,
        failed=failed,
        seconds=time.perf_counter() - started,
        **latency(took or [seconds]),  # where nothing was answered, the time that was given
    )


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
