"""The head of a cluster killed while a server answers, and started again at the same address."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil

from benchmarks.cluster.asking import QUERIES, Client, OneMachine, asking
from benchmarks.cluster.fault_points import Point
from benchmarks.cluster.faulty_nodes import wait_until
from benchmarks.common.load.searchlab_server import UNLIMITED, Server, new_key

GIVEN_UP_AFTER_S = 20
"""Seconds after which Ray's processes end that reach no head; 60 unless it is told otherwise."""
_HOST = "127.0.0.1"
_DOWN_S = (8.0, GIVEN_UP_AFTER_S + 15.0)  # until a head is started again, in turns
_AFTER_S = 2.0  # in which clients ask before the fault, and after all is as before
_START = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", "2")
_STARTED = b"Ray runtime started"
_START += ("--object-store-memory", f"{80 * 2**20}")
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "180",
    "RAY_gcs_rpc_server_reconnect_timeout_s": f"{GIVEN_UP_AFTER_S}",
}


def restart_the_head(folder: Path, seed: int) -> Point:
    """Kill the head under load, start it again, and wait until the server answers from it.

    Args:
        folder: Holds a library as `served`, and takes logs.
        seed: Whether that is before or after Ray's processes give up.
    """
    point, port, library = Point(), _free_port(), folder / "served"
    one_machine = OneMachine(library)
    one_machine.learn()
    key = new_key(library)
    on = ("--on", f"ray:{_HOST}:{port}", "--shards", "2", "--shard-cpus", "0.5")
    server = Server(
        library,
        folder / "head-server.log",
        workers=1,
        options=(*UNLIMITED, *on),
        environment=_ENVIRONMENT,
    )
    with _head(port, folder) as first:
        server.start()
        try:
            with asking(server.base_url, key, clients=2) as answers:
                time.sleep(_AFTER_S)
                workers, killed_at = server.workers, time.monotonic()
                _kill(first)
                time.sleep(_DOWN_S[seed % 2])
                with _head(port, folder), closing(Client(server.base_url, key)) as client:
                    wait_until(lambda: server.workers and server.workers != workers)
                    wait_until(lambda: client.search(QUERIES[0]).status == 200)
                    recover_s = time.monotonic() - killed_at
                    time.sleep(_AFTER_S)
        finally:
            server.stop()
    good = [one for one in answers if one.status == 200]
    bad = [one for one in answers if one.status != 200]
    wrong = sum(not one_machine.is_right(one) for one in good)
    point.require(not wrong, f"answers are one machine's, got {wrong} others")
    statuses = Counter(one.status for one in bad)
    point.require(set(statuses) <= {0, 503}, f"an error is told, got {dict(statuses)}")
    point.figures = {
        "answers": len(good),
        "errors": len(bad),
        "connections_broken": statuses[0],
        "wrong": wrong,
        "recover_s": round(recover_s, 2),
        "longest_s": round(max(one.took_s for one in answers), 2),
    }
    return point


@contextmanager
def _head(port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a head by Ray's own command, and end it at the end."""
    words = (*_START, "--head", "--port", f"{port}", "--include-dashboard", "false")
    path = folder / "head.log"
    with path.open("wb") as log:
        head = subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, **_ENVIRONMENT})
    try:
        wait_until(lambda: _STARTED in path.read_bytes())
        yield head
    finally:
        _kill(head)


def _kill(head: subprocess.Popen[bytes]) -> None:
    """End all processes of a node at once."""
    if head.poll() is not None:
        return
    parent = psutil.Process(head.pid)
    for process in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    head.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
