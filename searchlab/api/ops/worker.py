"""Worker: one process that answers requests. `server` starts it, reads its reports and ends it.

It listens only once it is warm, so a connection is either refused or answered. When told to stop,
it accepts no new connection, finishes its running requests and closes what it has opened.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.embed import Server

from searchlab.api.http.addresses import Proxies
from searchlab.api.ops.connections import Connections
from searchlab.api.settings import Settings
from searchlab.api.wire.errors import is_shortage
from searchlab.errors import DataError, InputError, SearchlabError

BACKLOG = 2048
# Time within which a connection must send its next request head; idle connections are closed too.
HEAD_TIMEOUT_MS = 30_000
# More than the API's own limit, which answers with an error message, but little memory.
HEAD_BYTES = 64 * 1024
# Time that running requests have to finish once the worker must stop.
GRACE_S = 20.0
# How long a thread that computes may keep the interpreter while the event loop waits for it.
_SWITCH_S = 0.001
# Objects more than were let go, for a collection of the youngest, which may hold bodies; every 20th
# takes in those that outlived one, and every 100th of these all there are.
_COLLECT_AFTER = (1_000, 20, 100)
_CONNECTIONS = 8192
_OPEN_FILES = 65_536
# Files that are open besides those of connections, each of which may also send from a file.
_OTHER_FILES = 192
_FEWEST_CONNECTIONS = 32
# Of address space, for threads and what they allocate; with half of it workers died under load.
_SPACE_BYTES = 2**30
_QUIET: dict[str, Any] = {
    "handlers": {},
    "formatters": {},
    "loggers": {"_granian": {"handlers": [], "propagate": True}},
}


class WorkerReport(msgspec.Struct):
    """A message from a worker to its server, sent as one line of JSON.

    Attributes:
        event: `ready`, or `failed` if it cannot start.
        message: What went wrong, in one line.
    """

    event: str
    message: str = ""


class Lifespan:
    """Sends an ASGI application its start and its end (the lifespan protocol)."""

    def __init__(self, app: Callable[..., Any]) -> None:
        self._events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._answers: asyncio.Queue[str] = asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.3"}, "state": {}}
        self._task = asyncio.ensure_future(app(scope, self._events.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        await self._answers.put(message["type"])

    async def startup(self) -> None:
        """Let the application open what it needs; passes on what it raises."""
        await self._run_event("startup")

    async def shutdown(self) -> None:
        """Let the application close what it opened."""
        await self._run_event("shutdown")

    async def _run_event(self, event: str) -> None:
        await self._events.put({"type": f"lifespan.{event}"})
        answer = asyncio.ensure_future(self._answers.get())
        await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done() or answer.result() != f"lifespan.{event}.complete":
            answer.cancel()
            await self._task  # raises what went wrong
            msg = f"the application must complete its {event}, got no answer"
            raise RuntimeError(msg)


class _SocketServer(Server):
    """Granian on a socket that the parent process owns."""

    def __init__(self, app: Callable[..., Any], listener: socket.socket) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=most_connections(),
            http1_settings=HTTP1Settings(
                header_read_timeout=HEAD_TIMEOUT_MS, max_buffer_size=HEAD_BYTES
            ),
            log_level=LogLevels.error,
            log_dictconfig=_QUIET,
        )
        self._listener = listener

    def _init_shared_socket(self) -> None:
        holder: Any = SocketHolder
        self._shd: Any = holder(self._listener.fileno(), False, BACKLOG)


async def work(
    app_path: str, listener: socket.socket, report: Callable[[WorkerReport], None]
) -> int:
    """Answer until SIGTERM, or the end of standard input.

    Args:
        app_path: `module:function` that makes the ASGI application.
        listener: A socket that is bound, but not listening yet.
        report: Sends a report to the server.

    Returns:
        The exit code.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    _stop_on_signals(loop, stop)
    _stop_at_end_of_input(loop, stop)
    try:
        most_connections()  # refuses before the application is imported, which takes seconds
        module, _, name = app_path.partition(":")
        app = getattr(importlib.import_module(module), name)()
        lifespan = Lifespan(app)
        await lifespan.startup()
        _stop_on_signals(loop, stop)  # once more, since a service may have set handlers of its own
        check_address_space()
        listener.listen(BACKLOG)
    except (SearchlabError, OSError, MemoryError, RuntimeError, ExceptionGroup) as error:
        reason = _find_reason(error)
        if reason is None:
            raise
        report(WorkerReport("failed", str(reason)))
        return 1
    # Everything opened so far lives as long as the process, so garbage collection may skip it. Of
    # what requests make hardly anything is a cycle, and what is remembered of queries grows: every
    # collection walks through it, while all requests wait.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()
    server: Any = _SocketServer(app, listener)
    serving = asyncio.ensure_future(server.serve())
    watching = asyncio.ensure_future(_watch_connections(listener))
    stopping = asyncio.ensure_future(stop.wait())
    report(WorkerReport("ready"))
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    code = 0 if stop.is_set() else 1
    watching.cancel()
    server.stop()
    await asyncio.wait({serving}, timeout=GRACE_S)
    await lifespan.shutdown()
    return code


def _stop_on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)


async def _watch_connections(listener: socket.socket) -> None:
    settings = Settings.from_env()
    connections = Connections(
        listener.getsockname()[1],
        # However few connections there can be, one address leaves half of them to others.
        most_of_address=min(settings.max_connections_per_address, most_connections() // 2),
        send_timeout_s=settings.send_timeout_s,
        proxies=Proxies(settings.trusted_proxy_header, settings.trusted_proxies),
    )
    await connections.watch()


def most_connections() -> int:
    """Return how many connections this process can hold with the files that it may open.

    One more is accepted only when another has ended, so that accepting never fails for want of one.

    Raises:
        InputError: They are too few to serve anybody.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _CONNECTIONS
    count = min(_CONNECTIONS, (soft - _OTHER_FILES) // 2)
    if count < _FEWEST_CONNECTIONS:
        least = 2 * _FEWEST_CONNECTIONS + _OTHER_FILES
        msg = f"a worker must be allowed {least} open files or more, got {soft}; see `ulimit -n`"
        raise InputError(msg)
    return count


def check_address_space() -> None:
    """Refuse to serve where the limit of address space leaves too little for the work to come.

    Raises:
        InputError: A worker that was started all the same would die under load.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    except OSError:  # a system without it
        return
    least = int(pages) * resource.getpagesize() + _SPACE_BYTES
    if soft < least:
        msg = (
            f"a worker must be allowed {least // 1024:,} KiB of address space or more, "
            f"got {soft // 1024:,}; see `ulimit -v`"
        )
        raise InputError(msg)


def _find_reason(error: Exception) -> Exception | None:
    # Litestar wraps the exceptions of the application's start in groups.
    if is_shortage(error):
        msg = (
            "a worker must get the memory and the threads that it needs, got less; see `ulimit -a`"
        )
        return DataError(msg)
    if not isinstance(error, ExceptionGroup):
        return error if isinstance(error, SearchlabError | OSError) else None
    return next(filter(None, map(_find_reason, error.exceptions)), None)


def _stop_at_end_of_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # The other end closes when the server dies, however it dies.
    def read() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            stop.set()

    loop.add_reader(0, read)


def main() -> None:
    """Answer by the arguments APP, LISTENER and REPORTS of the process, the last two as handles."""
    app_path, listener, reports = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    _raise_open_files()
    sys.setswitchinterval(_SWITCH_S)

    def report(message: WorkerReport) -> None:
        with suppress(BrokenPipeError):
            os.write(reports, msgspec.json.encode(message) + b"\n")

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        code = runner.run(work(app_path, socket.socket(fileno=listener), report))
        sys.stderr.flush()
        # Connections that never ended still hold threads; everything to keep is on disk already.
        os._exit(code)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes a fast event loop; None where only Python's own is there."""
    try:
        import uvloop
    except ImportError:  # uvloop does not exist for every platform
        return None
    return uvloop.new_event_loop


def _raise_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


if __name__ == "__main__":
    main()
