"""Closed-loop load: each connection sends one request after the other, as soon as it is answered.

Latency runs from the moment that a request is sent until its whole answer has arrived. In a closed
loop no request waits to be sent, so a busy server shows only in the latency of the requests that it
delays; requests per second are what so many clients get, not what the server could take.
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
_LOADS = itertools.count(os.getpid() * 1_000)


@dataclass(frozen=True)
class LoadRequest:
    """A request to be sent again and again.

    Attributes:
        url: Address; `NEW_TEXT` in it stands for a text that was never asked before.
        method: `"GET"` or `"POST"`.
        headers: Headers of the request, besides Host and Content-Length.
        body: Body of a POST.
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
    """The outcome of a load.

    Attributes:
        requests: Number of answers.
        refused: Number of answers with another status than 2xx.
        failed: Number of connections that broke.
        seconds: Time from the first request to the last answer.
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
    """Name the client that sends: wrk where it is installed, else a slower one of our own.

    wrk counts in whole seconds, so a shorter load is sent by our own client.
    """
    return "wrk" if seconds >= 1 and shutil.which("wrk") else "asyncio"


def load(request: LoadRequest, *, connections: int, seconds: float) -> Load:
    """Send a request again and again, over so many connections, for so many seconds."""
    # Every load counts from a number that no other has reached, so that a new text is new.
    first = next(_LOADS) * 10_000_000
    if sender(seconds) == "wrk":
        from benchmarks.common.load.wrk import load_with_wrk

        return load_with_wrk(request, connections=connections, seconds=seconds, first=first)
    return asyncio.run(load_with_asyncio(request, connections, seconds, first))


def new_text(number: int) -> str:
    """Return the text of a number, different for each number and fit for an address."""
    return f"{WORDS[number % len(WORDS)]}+{number}"


async def load_with_asyncio(
    request: LoadRequest, connections: int, seconds: float, first: int = 0
) -> Load:
    """Send as wrk does, in Python."""
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    if request.body:
        headers += f"Content-Length: {len(request.body)}\r\n"
    numbers = itertools.count(first)
    latencies_s: list[float] = []
    refused = failed = 0
    deadline = time.perf_counter() + seconds

    async def send_repeatedly() -> None:
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
            latencies_s.append(time.perf_counter() - started)
            refused += not answer.startswith(b"HTTP/1.1 2")
        await _close(writer)

    started = time.perf_counter()
    await asyncio.gather(*(send_repeatedly() for _ in range(connections)))
    return Load(
        requests=len(latencies_s),
        refused=refused,
        failed=failed,
        seconds=time.perf_counter() - started,
        **latency(latencies_s or [seconds]),  # without any answer, the whole time counts
    )


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
