"""Cold starts: how long a new process takes until it answers, and how much memory it then holds."""

from __future__ import annotations

import compileall
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import searchlab
from benchmarks.common.load.closed_loop import NEW_TEXT, WORDS, LoadRequest
from benchmarks.common.load.processes import (
    children_of,
    proportional_mib,
    resident_mib,
    written_mib,
)
from benchmarks.common.load.rounds import Target, measure_target
from benchmarks.common.load.searchlab_server import COMMAND, UNLIMITED
from benchmarks.common.load.servers import free_port

_START_S = 120.0
_LOOK_S = 0.002
_CONNECTIONS = 16


@dataclass(frozen=True)
class Run:
    """A process that ran to its end.

    Attributes:
        seconds: Wall-clock time.
        cpu_s: CPU time of all its threads and children.
        peak_mib: The most memory that it held.
    """

    seconds: float
    cpu_s: float
    peak_mib: float


# A process inherits the memory peak of the one that started it, so a small process starts it here.
_LAUNCHER = """
import json, os, subprocess, sys, time
started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - started
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
sys.exit(process.returncode)
"""


def compile_modules() -> None:
    """Compile the package as pip does when it installs one, and let processes use what is compiled.

    Peers lie in an environment, compiled; a checkout may not be, or be told not to keep it.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(Path(searchlab.__file__).parent, quiet=1)


def run_command(words: Sequence[str]) -> Run:
    """Run a command once and ignore its output.

    Raises:
        RuntimeError: The command ends with another code than 0.
    """
    launcher = (sys.executable, "-I", "-S", "-c", _LAUNCHER)
    process = subprocess.run([*launcher, *words], capture_output=True, text=True, check=False)
    if process.returncode:
        msg = f"{words} must end with 0, got {process.returncode}: {process.stderr[-500:]}"
        raise RuntimeError(msg)
    return Run(*json.loads(process.stdout))


def medians(words: Sequence[str], runs: int) -> dict[str, float]:
    """Run a command several times; returns the median of each figure, in ms and MiB."""
    figures = [run_command(words) for _ in range(runs)]
    return {
        "ms": round(1e3 * statistics.median(run.seconds for run in figures), 1),
        "cpu_ms": round(1e3 * statistics.median(run.cpu_s for run in figures), 1),
        "peak_mib": round(statistics.median(run.peak_mib for run in figures), 1),
    }


def python_command(code: str) -> tuple[str, ...]:
    """Return the words that run a piece of Python in a fresh process."""
    return (sys.executable, "-c", code)


def serve_once(
    data: Path, key: str, *, workers: int, queries: int, seconds: float = 0.0
) -> dict[str, float]:
    """Start `searchlab serve`, send searches, read its memory, and stop it.

    Args:
        data: Folder of the library.
        key: API key of an account.
        workers: Workers of the server.
        queries: Text searches between the two readings of memory.
        seconds: Length of a load of new texts over 16 connections at the end; none if left out.

    Returns:
        `health_ms` and `first_search_ms` from the start of the command until the answer arrived;
        `worker_rss_mib` and `total_pss_mib` after the first search, the same with `_later` after
        `queries` more, and `supervisor_rss_mib`. RSS counts shared memory in full for each process,
        PSS divides it among them, so that its sum over processes is right. `worker_written_mib` is
        memory that only this worker has. With a load also `new_text_p50_ms`, `new_text_cpu_us` and
        so on.
    """
    port = free_port()
    words = ["--data", str(data), "--port", str(port), "--workers", str(workers), *UNLIMITED]
    started = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, *words, "--log-format", "json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until_healthy(port, process)
        healthy_s = time.perf_counter() - started
        _search(port, key, "castle")
        first_s = time.perf_counter() - started
        before = _memory(process.pid)
        for number in range(queries):
            _search(port, key, f"{WORDS[number % len(WORDS)]}+{number}")
        after = _memory(process.pid)
        load_figures = (
            _measure_load(port, key, children_of(process.pid), seconds) if seconds else {}
        )
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    return {
        "health_ms": round(1e3 * healthy_s, 1),
        "first_search_ms": round(1e3 * first_s, 1),
        **before,
        **{f"{name}_later": value for name, value in after.items()},
        **load_figures,
    }


def _measure_load(port: int, key: str, pids: Sequence[int], seconds: float) -> dict[str, float]:
    url = f"http://127.0.0.1:{port}/api/v1/search/photos?q={NEW_TEXT}"
    target = Target(LoadRequest(url, headers={"x-api-key": key}), pids, {})
    measure_target(target, connections=_CONNECTIONS, seconds=seconds)
    row = measure_target(target, connections=_CONNECTIONS, seconds=seconds)
    if row["errors"]:
        msg = f"every search must be answered with 200, got {row['errors']} that were not"
        raise RuntimeError(msg)
    names = ("p50_ms", "p99_ms", "cpu_us", "requests_per_s")
    return {f"new_text_{name}": round(row[name], 2) for name in names}


def _until_healthy(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_S)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(_LOOK_S)
        finally:
            connection.close()
    msg = f"the server must answer within {_START_S:g} s, got {process.poll()}"
    raise RuntimeError(msg)


def _search(port: int, key: str, text: str) -> None:
    # A new connection for each search, so that every worker gets its share.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/api/v1/search/photos?q={text}", headers={"x-api-key": key})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            msg = f"a search must be answered with 200, got {answer.status}"
            raise RuntimeError(msg)
    finally:
        connection.close()


def _memory(pid: int) -> dict[str, float]:
    workers = children_of(pid)
    return {
        "worker_rss_mib": round(statistics.median(map(resident_mib, workers)), 1),
        "worker_written_mib": round(statistics.median(map(written_mib, workers)), 1),
        "supervisor_rss_mib": resident_mib(pid),
        "total_pss_mib": round(sum(map(proportional_mib, [pid, *workers])), 1),
    }
