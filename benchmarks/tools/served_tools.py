"""A server with tools for the duration of a block, and tokens of apps that are connected to it."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.apps import propose_app_id
from searchlab.api.accounts.database import Database, open_database, sqlite_url
from searchlab.api.accounts.issuing import Consent, challenge_of, create_code, redeem_code
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.visitors import find_account
from searchlab.client.serving import COMMAND
from searchlab.errors import DataError

EVERY_SCOPE = "search collections:read collections:write"
_VERIFIER = "v" * 43
_START_S = 120.0


class ServedTools(NamedTuple):
    """A running server.

    Attributes:
        base_url: Address in its answers, such as http://127.0.0.1:43211.
        port: Where it listens.
        key: A key of the API.
        token: An access token for the tools, of the same account.
        database_url: Where its keys, grants and sessions are.
        process: Its parent process; the workers are its children.
    """

    base_url: str
    port: int
    key: str
    token: str
    database_url: str
    process: psutil.Process

    def cpu_s(self) -> float:
        """Return the CPU seconds of its workers so far."""
        times = [child.cpu_times() for child in self.process.children(recursive=True)]
        return sum(one.user + one.system for one in times)


def connect_app(database: Database, account: str, resource: str, scopes: str = EVERY_SCOPE) -> str:
    """Do what a new app, consent and the token endpoint do; returns the access token."""
    consent = Consent(
        account_id=find_account(database, account).account_id,
        client_id=propose_app_id(),
        client_name="Finder",
        redirect_uri="http://127.0.0.1/back",
        scopes=scopes,
        resource=resource,
        challenge=challenge_of(_VERIFIER),
    )
    issued = redeem_code(
        database,
        create_code(database, consent),
        client_id=consent.client_id,
        redirect_uri=consent.redirect_uri,
        verifier=_VERIFIER,
        resource=resource,
    )
    if issued is None:
        msg = f"a code must be redeemed at once, got none of account {account}"
        raise DataError(msg)
    return issued.access_token


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serve_tools(data: Path, *options: str, at: int = 0) -> Iterator[ServedTools]:
    """Serve a library with its tools; keys and counts are in a temporary database.

    Args:
        data: Folder of the library.
        options: Further options of `searchlab serve`.
        at: Port in its own address, where a proxy stands before it; its own if left out.

    Raises:
        DataError: It does not start.
    """
    port = free_port()
    base_url = f"http://127.0.0.1:{at or port}"
    with tempfile.TemporaryDirectory(prefix="searchlab-") as temp:
        url = sqlite_url(Path(temp))
        database = open_database(url)
        migrate(database)
        _, key = create_key(database, account="local", name="local", plan="scale")
        token = connect_app(database, "local", f"{base_url}/mcp")
        database.close()
        listening = ("--data", str(data), "--port", str(port), "--base-url", base_url)
        server = subprocess.Popen(
            [*COMMAND, *listening, "--database-url", url, "--no-access-log", *options],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            _wait(server)
            yield ServedTools(base_url, port, key, token, url, psutil.Process(server.pid))
        finally:
            server.terminate()
            server.wait(60)
            if server.stderr is not None:
                server.stderr.close()


def _wait(server: subprocess.Popen[bytes]) -> None:
    lines = []
    for line in server.stderr or ():
        lines.append(line.decode(errors="replace"))
        if "searchlab serves" in lines[-1]:
            return
    msg = f"the server must start, got: {''.join(lines)}"
    raise DataError(msg)
