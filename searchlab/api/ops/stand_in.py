"""StandIn: answers 503 for the workers of a server while none of them can, so that nobody hangs."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import uuid
from contextlib import suppress

import msgspec

_HEAD_S = 2.0
_RETRY_AFTER_S = 2
_BACKLOG = 2048
_PIECE, _MOST_PIECES = 2**16, 1024
_MESSAGE = "the server must have a worker that answers, got none; it is being started again"


class StandIn:
    """Accepts connections in a thread of its own, and answers each request that it is too early."""

    def __init__(self, listener: socket.socket) -> None:
        """Begin to answer.

        Args:
            listener: The socket of the server; it stays open when the stand-in is closed.
        """
        self._loop = asyncio.new_event_loop()
        self._listener = listener.dup()
        self._thread = threading.Thread(target=self._run, name="searchlab-stand-in", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        serving = asyncio.start_server(_answer, sock=self._listener, backlog=_BACKLOG)
        server = self._loop.run_until_complete(serving)
        self._loop.run_forever()
        server.close()  # accepts no more; those that were accepted get their answer
        running = asyncio.all_tasks(self._loop)
        if running:
            self._loop.run_until_complete(asyncio.wait(running, timeout=2 * _HEAD_S))
        self._loop.run_until_complete(asyncio.sleep(0))  # which closes what the last ones left
        self._loop.close()

    def close(self) -> None:
        """Leave new connections to the workers."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    started = time.monotonic()
    with suppress(OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError):
        async with asyncio.timeout(_HEAD_S):
            await reader.readuntil(b"\r\n\r\n")
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_HEAD_S):
            writer.write(_write_answer((time.monotonic() - started) * 1e3))
            writer.write_eof()
            # To close on what still comes in would reset the connection, and lose the answer.
            for _ in range(_MOST_PIECES):
                if not await reader.read(_PIECE):
                    break
    writer.close()


def _write_answer(took_ms: float) -> bytes:
    body = msgspec.json.encode(
        {
            "success": False,
            "data": None,
            "meta": {"request_id": str(uuid.uuid4()), "took_ms": round(took_ms, 3)},
            "error": {"code": "OVERLOADED", "message": _MESSAGE, "details": {}},
            "pagination": None,
        }
    )
    head = (
        "HTTP/1.1 503 Service Unavailable\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(body)}\r\n"
        f"retry-after: {_RETRY_AFTER_S}\r\n"
        "cache-control: no-store\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


class Watch:
    """Starts a stand-in when no worker has been ready for a while, and ends it when one is."""

    def __init__(self, listener: socket.socket, patience_s: float) -> None:
        """Watch from now on.

        Args:
            listener: The socket of the server.
            patience_s: Seconds that connections may wait for a worker.
        """
        self._listener = listener
        self._patience_s = patience_s
        self._silent_since: float | None = None
        self._stand_in: StandIn | None = None

    def look(self, *, is_ready: bool) -> str | None:
        """Start or end the stand-in; returns a line for the log if it was.

        Args:
            is_ready: Whether a worker answers.
        """
        if is_ready:
            self._silent_since = None
            if self._stand_in is None:
                return None
            self.close()
            return "a worker answers again"
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        if self._stand_in is not None or now - self._silent_since < self._patience_s:
            return None
        self._stand_in = StandIn(self._listener)
        return (
            f"no worker answers since {self._patience_s:g} s; requests are answered 503 meanwhile"
        )

    @property
    def wait_s(self) -> float | None:
        """Seconds until it must look again; None if nothing but a change of workers matters."""
        if self._silent_since is None or self._stand_in is not None:
            return None
        return max(0.0, self._silent_since + self._patience_s - time.monotonic())

    def close(self) -> None:
        """End the stand-in, if there is one."""
        if self._stand_in is not None:
            self._stand_in.close()
            self._stand_in = None
