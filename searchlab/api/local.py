"""A server for the length of a block, such as a notebook's cells: started, keyed, and stopped."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from searchlab.client import Client
from searchlab.errors import DataError
from searchlab.storage.accounts import create_key
from searchlab.storage.database import open_database, sqlite_url

_READY = re.compile(r"searchlab serves .* at (http://\S+) \(")
_COMMAND = [sys.executable, "-P", "-c", "from searchlab.cli import main; main()", "serve"]
_LOOK_S = 0.05
_STOP_S = 30.0


@contextmanager
def serve_locally(
    data: Path | str,
    *options: str,
    account: str = "local",
    plan: str = "scale",
    start_s: float = 120.0,
) -> Iterator[Client]:
    """Serve a library on a free port of this machine, and ask it.

    Args:
        data: Folder of the library.
        options: More for `searchlab serve`, such as `--workers 2`.
        account: Whose key the client brings; made where there is none.
        plan: The account's plan.
        start_s: Seconds that the start may take.

    Yields:
        A client with a key of its own; further ones can be made of its `base_url`.

    Raises:
        DataError: The server does not start; says what it said.
    """
    folder = Path(data).expanduser().resolve()
    command = [*_COMMAND, "--data", str(folder), "--port", "0", *options]
    with tempfile.TemporaryFile() as said:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        try:
            address = _address(server, Path(f"/dev/fd/{said.fileno()}"), start_s)
            with Client(address, _key(folder, account, plan)) as client:
                yield client
        finally:
            server.terminate()
            try:
                server.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _address(server: subprocess.Popen[bytes], log: Path, start_s: float) -> str:
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline and server.poll() is None:
        found = _READY.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[1]
        time.sleep(_LOOK_S)
    msg = f"the server must start within {start_s:g} s, got: {log.read_text(errors='replace')}"
    raise DataError(msg)


def _key(folder: Path, account: str, plan: str) -> str:
    database = open_database(sqlite_url(folder))
    try:
        _, secret = create_key(database, account=account, name="local", plan=plan)
        return secret
    finally:
        database.close()
