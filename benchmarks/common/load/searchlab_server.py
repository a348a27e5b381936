"""`searchlab serve` as a process that can be started, inspected, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.common.load.processes import children_of
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.client.serving import COMMAND, READY

MAIN = COMMAND[:-1]
"""Command that runs `searchlab`; its arguments follow."""
UNLIMITED = ("--rate", "1000000", "--burst", "1000000")
_LOOK_S = 0.02
_STOP_S = 60.0


class NotStarted(Exception):  # noqa: N818 - the name says what happened
    """The server did not start, or did not end."""


class Server:
    """A server on one port, which it keeps when it is started again.

    Attributes:
        data: Folder of the library.
        base_url: Address of the server; empty before the first start.
        process: The supervisor of the workers; None before the first start.
    """

    def __init__(
        self,
        data: Path,
        log: Path,
        *,
        workers: int,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data = data
        self.base_url = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._log, self._options = log, ("--workers", str(workers), *options)
        self._environment = {**os.environ, **(environment or {})}
        self._port = 0

    def start(self) -> None:
        """Start it and wait until it answers."""
        words = ["--data", str(self.data), "--port", str(self._port), *self._options]
        with self._log.open("ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [*COMMAND, *words, "--log-format", "json"],
                stderr=log,
                stdout=subprocess.DEVNULL,
                env=self._environment,
            )
        text = ""
        while self.process.poll() is None:
            text = self._log.read_bytes()[begin:].decode()
            if ready := READY.search(text):
                self.base_url = ready[1]
                self._port = int(self.base_url.rpartition(":")[2])
                return
            time.sleep(_LOOK_S)
        msg = f"serve must start, got {self.process.returncode}: {text[-2000:]}"
        raise NotStarted(msg)

    @property
    def pid(self) -> int:
        """Process id of the supervisor.

        Raises:
            NotStarted: There is none.
        """
        if self.process is None:
            msg = "the server must be started before it is asked for its process"
            raise NotStarted(msg)
        return self.process.pid

    @property
    def workers(self) -> list[int]:
        """Process ids of the workers that are running."""
        if self.process is None or self.process.poll() is not None:
            return []
        return children_of(self.process.pid)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the server by a signal; returns its exit code once its workers are gone too."""
        if self.process is None:
            return 0
        workers = self.workers
        self.process.send_signal(number)
        code = self.process.wait(_STOP_S)
        deadline = time.monotonic() + _STOP_S
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            if time.monotonic() > deadline:
                msg = "workers must end with their server, got one that is still running"
                raise NotStarted(msg)
            time.sleep(_LOOK_S)
        return code


@contextmanager
def serving(data: Path, *, workers: int) -> Iterator[tuple[Server, str]]:
    """Serve a library without rate limits; yields the server and an API key."""
    with tempfile.TemporaryDirectory() as folder:
        key = new_key(data)
        server = Server(data, Path(folder) / "log", workers=workers, options=UNLIMITED)
        try:
            server.start()
            yield server, key
        finally:
            server.stop()


def new_key(data: Path, *, account: str = "bench", plan: str = "scale") -> str:
    """Make an API key for a library; returns the secret."""
    database = open_database(sqlite_url(data))
    try:
        migrate(database)
        return create_key(database, account=account, name="bench", plan=plan)[1]
    finally:
        database.close()
