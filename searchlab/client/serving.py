"""A local server for the duration of a block, with an API key, for notebooks and tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.client.clients import Client
from searchlab.errors import DataError

READY = re.compile(r"searchlab serves .* at (http://\S+) \(")
COMMAND = (sys.executable, "-P", "-c", "from searchlab.cli import main; main()", "serve")
_LOOK_S = 0.05
_STOP_S = 30.0


@contextmanager
def serve_locally(
    data: Path | str, *options: str, plan: str = "scale", start_s: float = 120.0
) -> Iterator[Client]:
    """Serve a library on a free port of this machine, and stop the server after the block.

    Its keys, collections and counts are in a temporary database, whatever the environment says, so
    the library is not changed.

    Args:
        data: Folder of the library.
        options: Further options of `searchlab serve`, such as `--workers`, `2`.
        plan: Plan of the account of the client.
        start_s: Seconds that the start may take.

    Yields:
        A client with a key; further clients can use its `base_url`.

    Raises:
        DataError: The server does not start; the message holds its log.
        InputError: There is no such plan.
    """
    folder = Path(data).expanduser().resolve()
    with tempfile.TemporaryDirectory(prefix="searchlab-") as temp, tempfile.TemporaryFile() as log:
        url = sqlite_url(Path(temp))
        key = _create_key(url, plan)
        arguments = ("--data", str(folder), "--port", "0", *options, "--database-url", url)
        server = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env={n: value for n, value in os.environ.items() if not n.startswith("SEARCHLAB_")},
        )
        try:
            address = _wait_for_address(server, Path(f"/dev/fd/{log.fileno()}"), start_s)
            with Client(address, key) as client:
                yield client
        finally:
            server.terminate()
            try:
                server.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait_for_address(server: subprocess.Popen[bytes], log: Path, start_s: float) -> str:
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline and server.poll() is None:
        ready = READY.search(log.read_text(encoding="utf-8", errors="replace"))
        if ready:
            return ready[1]
        time.sleep(_LOOK_S)
    msg = f"the server must start within {start_s:g} s, got: {log.read_text(errors='replace')}"
    raise DataError(msg)


def _create_key(url: str, plan: str) -> str:
    database = open_database(url)
    try:
        migrate(database)
        _, secret = create_key(database, account="local", name="local", plan=plan)
        return secret
    finally:
        database.close()
