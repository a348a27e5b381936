"""Connections: closes those that are not read from, and those of which an address has too many.

The HTTP server below has no limit on either, and never looks at an answer again whose bytes nobody
takes. So the worker looks at its own sockets, once a second: the kernel says how many bytes each
client has acknowledged. A socket is closed by `shutdown`, which the server sees like a client that
has gone. Where the system does not list open files, as outside Linux, nothing is closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
import struct
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from searchlab.api.http.addresses import Proxies, group_of
from searchlab.photos.images.memory import give_memory_back

_LOOK_S = 1.0
_HURRIED_S = 0.2  # between two looks while there is something to close
_LEAST_BYTES = 64 * 1024
_REPORT_S = 10.0
_FOLDER = Path("/proc/self/fd")
# Of the kernel's `struct tcp_info`: segments that are not acknowledged, milliseconds since bytes
# were sent and received, bytes acknowledged, bytes not sent yet.
_INFO = struct.Struct("=24xI16xI4xI64xQ16xI")
# So many connections more than now are a wave whose memory is worth giving back.
_WAVE = 64
# More than once, for the memory of a connection is free some time after its end.
_TRIM_AFTER_S = (0.0, 2.0, 10.0)
_LOG = logging.getLogger(__name__)


class Connection(NamedTuple):
    """What the kernel says of one connection.

    Attributes:
        peer: Address and port of the client.
        taken: Bytes that the client has acknowledged since it is connected.
        waits: Whether bytes wait for the client to take them.
        idle_ms: Milliseconds since bytes were last sent or received.
    """

    peer: tuple[str, int]
    taken: int
    waits: bool
    idle_ms: int


class Connections:
    """Watches the connections of this process on one port."""

    def __init__(
        self,
        port: int,
        *,
        most_of_address: int,
        send_timeout_s: float,
        proxies: Proxies,
    ) -> None:
        """Prepare to watch.

        Args:
            port: Port of this process that clients connect to.
            most_of_address: Connections that one address may hold, proxies excepted.
            send_timeout_s: Seconds within which a client must take 64 KiB of what waits for it, or
                all of it.
            proxies: Those that are trusted.
        """
        self._port = port
        self._most = most_of_address
        self._timeout_s = send_timeout_s
        self._proxies = proxies
        self._progress: dict[tuple[str, int], tuple[int, float]] = {}
        self._peak = 0
        self._trims: list[float] = []
        self._reported = -_REPORT_S

    async def watch(self) -> None:
        """Look again and again, in a thread, until cancelled."""
        if not _FOLDER.is_dir():
            return
        while True:
            closed = await asyncio.to_thread(self.look)
            await asyncio.sleep(min(_HURRIED_S if closed else _LOOK_S, self._timeout_s))

    def look(self) -> int:
        """Close what must be closed; returns how many connections that were."""
        now = time.monotonic()
        connections = dict(_list_connections(self._port))
        doomed = set(self._stalled(connections, now))
        n_stalled, crowds = len(doomed), self._crowds(connections)
        doomed.update(*crowds.values())
        if doomed:
            _close(self._port, doomed)
            self._report(n_stalled, crowds, now)
        self._give_memory_back(len(connections) - len(doomed), now)
        return len(doomed)

    def _stalled(
        self, connections: dict[tuple[str, int], Connection], now: float
    ) -> list[tuple[str, int]]:
        before, self._progress = self._progress, {}
        stalled = []
        for peer, connection in connections.items():
            if not connection.waits:
                continue
            taken, since = before.get(peer, (connection.taken, now))
            if connection.taken - taken >= _LEAST_BYTES:
                taken, since = connection.taken, now
            elif now - since >= self._timeout_s:
                stalled.append(peer)
            self._progress[peer] = (taken, since)
        return stalled

    def _crowds(
        self, connections: dict[tuple[str, int], Connection]
    ) -> dict[str, list[tuple[str, int]]]:
        """Find the addresses with too many connections, and those to close, the most idle ones."""
        if len(connections) <= self._most:
            return {}
        by_address: dict[str, list[Connection]] = defaultdict(list)
        for connection in connections.values():
            if not self._proxies.trusts(connection.peer[0]):
                by_address[group_of(connection.peer[0])].append(connection)
        crowds = {}
        for address, crowd in by_address.items():
            if len(crowd) > self._most:
                crowd.sort(key=lambda connection: connection.idle_ms)
                crowds[address] = [connection.peer for connection in crowd[self._most :]]
        return crowds

    def _report(self, n_stalled: int, crowds: dict[str, list[tuple[str, int]]], now: float) -> None:
        if now - self._reported < _REPORT_S:
            return
        self._reported = now
        if n_stalled:
            _LOG.warning(
                "closed %d connections whose clients read nothing for %g s",
                n_stalled,
                self._timeout_s,
            )
        for address, peers in list(crowds.items())[:5]:
            _LOG.warning(
                "closed %d connections of %s, which had more than %d; "
                "name it with --trusted-proxy if it is a proxy",
                len(peers),
                address,
                self._most,
            )

    def _give_memory_back(self, count: int, now: float) -> None:
        """After a wave of connections, return what the allocator keeps to the system."""
        self._peak = max(self._peak, count)
        if self._peak - count >= _WAVE and count <= self._peak // 2:
            self._peak = count
            self._trims = [now + delay for delay in _TRIM_AFTER_S]
        if self._trims and now >= self._trims[0]:
            del self._trims[0]
            give_memory_back()


def _list_connections(port: int) -> Iterator[tuple[tuple[str, int], Connection]]:
    for connection, _ in _each(port):
        yield connection.peer, connection


def _close(port: int, peers: Collection[tuple[str, int]]) -> None:
    for connection, handle in _each(port):
        if connection.peer in peers:
            with suppress(OSError):  # it has just ended by itself
                handle.shutdown(socket.SHUT_RDWR)


def _each(port: int) -> Iterator[tuple[Connection, socket.socket]]:
    for file in list(_FOLDER.iterdir()):
        handle = _copy(int(file.name))
        if handle is None:
            continue
        with handle:
            connection = _describe(handle, port)
            if connection is not None:
                yield connection, handle


def _copy(number: int) -> socket.socket | None:
    """Copy a handle, if it is a socket's.

    The copy stays with its connection, even if the server closes its own meanwhile and the number
    gets another meaning.
    """
    try:
        # Never copy a file: closing any handle of it gives up all locks of this process on it, and
        # SQLite takes a database without locks for one that nobody uses.
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return None
        copy = os.dup(number)
    except OSError:  # closed meanwhile
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:  # the number has just become a file's: for the same reason this stays open
        return None


def _describe(handle: socket.socket, port: int) -> Connection | None:
    if handle.family not in {socket.AF_INET, socket.AF_INET6}:
        return None
    try:
        if handle.getsockname()[1] != port:
            return None
        peer = handle.getpeername()[:2]
        info = handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
        unacknowledged, last_sent, last_received, taken, unsent = _INFO.unpack(info)
    except (OSError, struct.error):  # the listener, or a system that says less
        return None
    waits = unacknowledged > 0 or unsent > 0
    return Connection(peer, taken, waits, min(last_sent, last_received))
