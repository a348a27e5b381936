"""What a request costs in several checkouts that serve the same photos, asked in turns.

One worker each, under wrk with one thread, or our own client where there is no wrk. Every server is
up all the time and only one is asked at a time, so that a change of the machine's pace meets all of
them alike.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.load.closed_loop import NEW_TEXT, LoadRequest
from benchmarks.common.load.closed_loop import load as send
from benchmarks.common.load.processes import children_of, cpu_seconds

CLI = [sys.executable, "-c", "from searchlab.cli import main; main()"]
CONNECTIONS = (1, 16)
ENDPOINTS = {
    "a new text": f"/api/v1/search/photos?q={NEW_TEXT}",
    "the same text": "/api/v1/search/photos?q=castle",
    "a filter": "/api/v1/search/photos?orientation=landscape",
    "a photo": "/api/v1/photos/{photo_id}",
    "colours": "/api/v1/facets/colors",
    "usage": "/api/v1/usage",
    "health": "/health",
}
_READY = re.compile(r"(http://[\d.]+:\d+)")
_START_S = 60.0


@dataclass(frozen=True)
class Server:
    """A checkout that serves: its address, headers with a key, and the processes that answer."""

    address: str
    headers: dict[str, str]
    workers: list[int]

    def get(self, path: str) -> Any:
        """Return the JSON at `path`."""
        request = urllib.request.Request(self.address + path, headers=self.headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def load(self, path: str, connections: int, seconds: float) -> dict[str, float]:
        """Ask for `path` all the time: CPU microseconds of a request, p50 and p99 in milliseconds.

        Raises:
            SystemExit: A request was refused or failed.
        """
        ask = LoadRequest(url=self.address + path, headers=self.headers)
        before = sum(map(cpu_seconds, self.workers))
        load = send(ask, connections=connections, seconds=seconds)
        cpu = sum(map(cpu_seconds, self.workers)) - before
        if load.refused or load.failed or not load.requests:
            sys.exit(f"every request of {path} must be answered, got {load}")
        return {
            "CPU us": 1e6 * cpu / load.requests,
            "p50 ms": load.p50_ms,
            "p99 ms": load.p99_ms,
        }


def requests_in_turns(
    libraries: dict[str, tuple[Path, Path]],
    runs: int,
    seconds: float,
    advance: Callable[[], None],
    *,
    endpoints: Mapping[str, str] = ENDPOINTS,
    connections: Sequence[int] = CONNECTIONS,
) -> dict[str, dict[str, list[float]]]:
    """Load every endpoint of each checkout `runs` times, after one time that is not counted.

    Args:
        libraries: Name -> (checkout, folder of its library).
        runs: Turns that count.
        seconds: How long an endpoint is asked in a turn.
        advance: Called after each endpoint of a turn.
        endpoints: Name -> path.
        connections: How many ask at once, one number after the other.

    Returns:
        "endpoint, connections, unit" -> name -> a figure a turn.
    """
    turns: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(serving(checkout, library))
            for name, (checkout, library) in libraries.items()
        }
        any_server = next(iter(servers.values()))
        photo_id = any_server.get("/api/v1/search/photos?q=castle&per_page=1")["data"][0][
            "photo_id"
        ]
        for run in range(runs + 1):
            for endpoint, template in endpoints.items():
                path = template.replace("{photo_id}", photo_id)
                for n in connections:
                    for name in sorted(servers, reverse=run % 2 == 1):
                        figures = servers[name].load(path, n, seconds)
                        for unit, value in figures.items():
                            what = f"{endpoint}, {n} at once, {unit}"
                            if run:
                                turns.setdefault(what, {}).setdefault(name, []).append(value)
                advance()
    return turns


@contextmanager
def serving(checkout: Path, library: Path) -> Iterator[Server]:
    """Serve `library` by the code of `checkout` with one worker, until the block ends."""
    account = ["--account", "me", "--name", "bench", "--plan", "scale"]
    key = run_in(checkout, [*CLI, "keys", "create", "--data", str(library), *account])
    words = ["serve", "--data", str(library), "--port", "0", "--workers", "1"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [*CLI, *words, "--rate", "1000000", "--burst", "1000000", "--log-format", "json"],
            cwd=checkout,
            env=environment(checkout),
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        try:
            address = _address(process, log)
            workers = children_of(process.pid) or [process.pid]
            yield Server(address, {"x-api-key": key.splitlines()[-1]}, workers)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_START_S)


def _address(server: subprocess.Popen[bytes], log: Any) -> str:
    deadline = time.monotonic() + _START_S
    while server.poll() is None and time.monotonic() < deadline:
        log.seek(0)
        if address := _READY.search(log.read()):
            return address[1]
        time.sleep(0.1)
    log.seek(0)
    sys.exit(f"serve must start, got: {log.read()[-2000:]}")


def run_in(checkout: Path, command: list[str]) -> str:
    """Run `command` with the code of `checkout` and return what it prints; end if it fails."""
    done = subprocess.run(
        command,
        cwd=checkout,
        env=environment(checkout),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command[:4])} must end with 0, got: {done.stderr[-2000:]}")
    return done.stdout


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment in which `checkout` is imported, with one thread for products."""
    return {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
