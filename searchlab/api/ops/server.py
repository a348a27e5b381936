"""Server: the process behind `searchlab serve`. It checks, starts workers and keeps them alive.

It opens the socket that all workers listen on, so a connection that waits while a worker is
replaced is answered by another one. While none can be started, a stand-in answers 503. Its end
closes the standard input of the workers, which makes them stop even if it is killed. It loads no
model.

The supervisor of Granian 2.8 does not keep these promises. In a trial with one worker, 78 requests
were refused while a killed worker was replaced, a second death within 5.5 s ended the server, a
second server started on the same port as if it were free, workers outlived a parent that was
killed, and an application that could not start was served all the same.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TextIO

import msgspec

from searchlab.api.accounts.clock import utc_now
from searchlab.api.ops.listening import address_of, bind
from searchlab.api.ops.logs import Log
from searchlab.api.ops.run_folders import run_folder
from searchlab.api.ops.stand_in import Watch
from searchlab.api.settings import ENVIRONMENT, METRICS_ENVIRONMENT, Settings
from searchlab.errors import NotFoundError, SearchlabError

APP = "searchlab.api.app:create_app"
# Longer than the time that a worker gives its running requests (`worker.GRACE_S`).
_KILL_AFTER_S = 25.0
# What imports make stays: to look through it for garbage would take a quarter of a worker's start.
# It collects garbage again before it answers.
_WORK = "import gc; gc.disable(); from searchlab.api.ops.worker import main; main()"
_RETRY_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_STEADY_S = 30.0
_FORCE_AFTER_S = 1.0
_CLOCK_S = 60.0
# Starting a worker takes about a second, for which connections may wait.
_PATIENCE_S = 5.0
_DIED_EARLY = "workers must live until they answer, got one that died; it has said why above"
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Walking an HNSW graph jumps all over memory; pages of 2 MB save many misses of the page table's
# cache. Only some C libraries read this variable, and only if the system offers such pages.
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


@dataclass(eq=False)
class _Worker:
    """One of the server's workers, and the process that runs it at the moment, if any.

    Attributes:
        number: From 1; stays when the process is replaced.
        process: The process; None between a death and the next start.
        reports: File descriptor that the process sends its reports to.
        unread: Bytes of a report that has not arrived completely.
        reason: Why the process could not start, in its own words.
        ready: Whether the process answers requests.
        started: `time.monotonic()` of its start.
        failures: Number of early deaths in a row.
        due: `time.monotonic()` before which it is not started again.
    """

    number: int
    process: subprocess.Popen[bytes] | None = None
    reports: int = -1
    unread: bytes = b""
    reason: str = ""
    ready: bool = False
    started: float = 0.0
    failures: int = 0
    due: float = 0.0


class Supervisor:
    """Keeps a fixed number of workers alive until it is stopped.

    Attributes:
        stopping: Whether `stop` was called.
    """

    def __init__(self, settings: Settings, listener: socket.socket, *, app: str = APP) -> None:
        """Take over a bound socket; nothing is started yet.

        Args:
            settings: Settings for the workers, with `run_folder`.
            listener: A socket that is bound, but not listening yet.
            app: `module:function` that makes the ASGI application.
        """
        self._app = app
        self._listener = listener
        self._environment = os.environ | {ENVIRONMENT: settings.to_env()}
        if settings.run_folder:
            counters = Path(settings.run_folder) / "metrics"
            counters.mkdir(parents=True, exist_ok=True)
            self._environment[METRICS_ENVIRONMENT] = str(counters)
        # A query is a small matrix product: threads that share it mostly spin and wait.
        for defaults in (dict.fromkeys(_ONE_THREAD, "1"), _HUGE_PAGES):
            self._environment |= {n: v for n, v in defaults.items() if n not in os.environ}
        self._workers = [_Worker(number) for number in range(1, settings.workers + 1)]
        self._watch = Watch(listener, _PATIENCE_S)
        self._selector = selectors.DefaultSelector()
        self.stopping = False
        self._stopped_at = 0.0
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)

    @property
    def pids(self) -> list[int]:
        """Process ids of the living workers."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]

    def stop(self) -> None:
        """Make `run` return; a second call, at least a second later, kills the workers at once.

        Safe in a signal handler.
        """
        now = time.monotonic()
        if not self.stopping:
            self.stopping, self._stopped_at = True, now
        elif now - self._stopped_at > _FORCE_AFTER_S:
            for worker in self._workers:
                if worker.process is not None:
                    worker.process.kill()
        with suppress(OSError):  # the buffer is full of wake-ups, or the supervisor is closed
            self._wake.send(b"\0")

    def start(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Start all workers and wait until each is ready.

        Args:
            meanwhile: Called while the workers import their modules; its exceptions are passed on.

        Raises:
            SearchlabError: A worker cannot start; says why.
        """
        for worker in self._workers:
            self._start(worker)
        meanwhile()
        while not self.stopping and not all(worker.ready for worker in self._workers):
            for worker in self._wait(None):
                raise SearchlabError(worker.reason or _DIED_EARLY)

    def run(self, note: Callable[[str], None]) -> None:
        """Replace workers that die, until `stop` is called.

        Args:
            note: Called with a line about each worker that died.
        """
        while not self.stopping:
            said = self._watch.look(is_ready=any(worker.ready for worker in self._workers))
            if said is not None:
                note(said)
            utc_now()  # often enough to know how long a new time has lasted
            waits = [self._watch.wait_s, self._seconds_to_next_start(), _CLOCK_S]
            for worker in self._wait(min(s for s in waits if s is not None)):
                reason = f": {worker.reason}" if worker.reason else ""
                note(f"worker {worker.number} died{reason}; starting another")
            for worker in self._workers:
                if worker.process is None and time.monotonic() >= worker.due:
                    try:
                        self._start(worker)
                    except OSError as error:  # too many processes, or too little memory
                        worker.due = time.monotonic() + _RETRY_S[-1]
                        note(f"worker {worker.number} cannot be started: {error.strerror}")

    def close(self) -> None:
        """Take no more connections, let running requests finish, and end all workers."""
        self._watch.close()
        self._listener.close()
        living = [worker.process for worker in self._workers if worker.process is not None]
        for process in living:
            process.terminate()
        deadline = time.monotonic() + _KILL_AFTER_S
        for process in living:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for worker in self._workers:
            if worker.process is not None:
                self._release(worker)
        self._selector.close()
        self._wake.close()
        self._woken.close()

    def _start(self, worker: _Worker) -> None:
        ours, theirs = os.pipe()
        handle = self._listener.fileno()
        # -P: nothing is imported from the current folder.
        command = [sys.executable, "-P", "-c", _WORK, self._app]
        try:
            worker.process = subprocess.Popen(
                [*command, str(handle), str(theirs)],
                stdin=subprocess.PIPE,
                stdout=2,
                pass_fds=(handle, theirs),
                env=self._environment | utc_now.hand_on(),
                # Ctrl-C in the terminal signals this process alone, which then stops the workers.
                process_group=0,
            )
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        worker.reports, worker.unread, worker.reason, worker.ready = ours, b"", "", False
        worker.started = time.monotonic()
        self._selector.register(ours, selectors.EVENT_READ, worker)

    def _wait(self, timeout_s: float | None) -> list[_Worker]:
        """Wait until something happens; returns the workers that died."""
        died = []
        for key, _ in self._selector.select(timeout_s):
            worker = key.data
            if worker is None:
                with suppress(BlockingIOError):
                    self._woken.recv(1024)
                continue
            data = os.read(worker.reports, 65_536)
            *lines, worker.unread = (worker.unread + data).split(b"\n")
            for line in lines:
                report = msgspec.json.decode(line)
                worker.ready = report["event"] == "ready"
                worker.reason = report["message"]
            if not data:
                self._note_death(worker)
                died.append(worker)
        return died

    def _note_death(self, worker: _Worker) -> None:
        process = worker.process
        if process is None:
            return
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:  # it has closed its pipe, but still lives
            process.kill()
            process.wait()
        steady = worker.ready and time.monotonic() - worker.started > _STEADY_S
        worker.failures = 0 if steady else worker.failures
        worker.due = time.monotonic() + _RETRY_S[min(worker.failures, len(_RETRY_S) - 1)]
        worker.failures += 1
        self._release(worker)

    def _release(self, worker: _Worker) -> None:
        self._selector.unregister(worker.reports)
        os.close(worker.reports)
        if worker.process is not None and worker.process.stdin is not None:
            worker.process.stdin.close()
        worker.process, worker.ready = None, False

    def _seconds_to_next_start(self) -> float | None:
        due = [worker.due for worker in self._workers if worker.process is None]
        return max(0.0, min(due) - time.monotonic()) if due else None


def serve(
    settings: Settings,
    *,
    stream: TextIO = sys.stderr,
    on_ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Check the library and the database, start the workers, and serve until SIGTERM or SIGINT.

    Args:
        settings: What to serve, where and how.
        stream: Gets a line once the server answers.
        on_ready: Called then with the server's address, such as http://127.0.0.1:8000.

    Raises:
        SearchlabError: The library cannot be served: there is none, the database cannot be reached,
            the port is in use, the configuration cannot be loaded, or a worker cannot start.
    """
    settings = replace(settings, data=settings.data.expanduser().resolve())
    listener = bind(settings.host, settings.port)
    try:
        if settings.config is not None:  # before a worker opens the current snapshot
            from searchlab.api.ops.publishing import put_in_force
            from searchlab.library.library import open_library

            put_in_force(open_library(settings.data), settings.config)
        with run_folder() as folder:
            settings = replace(settings, run_folder=str(folder))
            _supervise(settings, listener, stream, on_ready)
    finally:
        listener.close()


def _check(settings: Settings) -> None:
    from searchlab.api.accounts.database import open_database, sqlite_url
    from searchlab.api.accounts.migrations import migrate
    from searchlab.api.accounts.visitors import AnonymousVisitors
    from searchlab.library.library import open_library
    from searchlab.library.snapshots import current_id

    library = open_library(settings.data)
    database = open_database(settings.database_url or sqlite_url(settings.data))
    try:
        migrate(database)
        AnonymousVisitors(database, settings.visitors).check()
    finally:
        database.close()
    if current_id(library.folder) is None:
        msg = f"a library must hold photos to be served, got an empty one: {settings.data}"
        raise NotFoundError(msg)


def _supervise(
    settings: Settings,
    listener: socket.socket,
    stream: TextIO,
    on_ready: Callable[[str], None],
) -> None:
    log = Log(settings.log_format)
    supervisor = Supervisor(settings, listener)
    with _stop_on_signals(supervisor):
        try:
            supervisor.start(lambda: _check(settings))
            if not supervisor.stopping:
                stream.write(f"{_announcement(settings, listener)}\n")
                stream.flush()
                on_ready(address_of(listener))
            supervisor.run(lambda message: log.event(message, level="warning"))
        finally:
            supervisor.close()
            log.close()


def _announcement(settings: Settings, listener: socket.socket) -> str:
    from searchlab.config import Config
    from searchlab.library.manifests import read_manifest
    from searchlab.library.snapshots import current_id

    name = current_id(settings.data) or ""
    config = Config.from_dict(read_manifest(settings.data / "snapshots" / name)["config"])
    config_id = (config if settings.show_places else config.for_others()).config_id
    workers = "1 worker" if settings.workers == 1 else f"{settings.workers} workers"
    return (
        f"searchlab serves {settings.data} at {address_of(listener)} "
        f"({workers}, snapshot {name}, config {config_id})"
    )


@contextmanager
def _stop_on_signals(supervisor: Supervisor) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        supervisor.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
