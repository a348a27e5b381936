"""Servers of one application, to be compared: granian as `searchlab serve` runs it, and uvicorn."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from searchlab.api.ops.listening import bind
from searchlab.api.ops.server import Supervisor
from searchlab.api.settings import Settings

_ROOT = Path(__file__).resolve().parents[3]
_START_S = 30.0


@contextmanager
def granian(app: str) -> Iterator[tuple[str, list[int]]]:
    """Serve a function of `benchmarks.http.applications`; yields the address and worker pids."""
    os.environ["PYTHONPATH"] = _python_path()
    listener = bind("127.0.0.1", 0)
    supervisor = Supervisor(
        Settings(data=Path()), listener, app=f"benchmarks.http.applications:{app}"
    )
    try:
        supervisor.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", supervisor.pids
    finally:
        supervisor.close()


@contextmanager
def uvicorn(app: str) -> Iterator[tuple[str, list[int]]]:
    """Serve it by uvicorn with uvloop and httptools; yields the address and worker pids."""
    port = free_port()
    words = ["--factory", "--loop", "uvloop", "--http", "httptools", "--no-access-log"]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "uvicorn",
            f"benchmarks.http.applications:{app}",
            "--port",
            str(port),
            *words,
        ],
        env=os.environ | {"PYTHONPATH": _python_path()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}", [process.pid]
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _python_path() -> str:
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([str(_ROOT), *(path for path in before if path not in {"", str(_ROOT)})])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"port {port} must answer within {_START_S:g} s, got nobody")
