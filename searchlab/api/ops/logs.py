"""Logs: one line for each request and for each error, on standard error.

Standard output stays empty, so that one stream has all messages of a server, in order. A thread
writes; when nobody reads the stream, lines are dropped and counted, and no request waits for them.
Secrets are never logged: no query string, no header, no body; text that looks like a key in a path
or in a traceback is replaced.

structlog could format a line, in 3.9 microseconds where this takes 2.2 with replacing keys and
writing; it would still leave the thread, the batches, the dropping and the escaping to us.
"""

from __future__ import annotations

import datetime
import logging
import os
import re
import threading
import time
import traceback
from collections import deque
from typing import Any, Literal

import msgspec

Format = Literal["text", "json"]

_PERIOD_S = 0.05
# Writes of several workers to one pipe stay unmixed only up to this size.
_PIPE_BYTES = 4096
_MOST_LINES = 10_000
_PATH_LENGTH = 256
_TRACE_LENGTH = 16_384
# Keys, links, sessions, codes and tokens; and what stands in an address that takes pictures.
_KEY = re.compile(r"sl[acrls]?_[A-Za-z0-9_-]{20,}|slp_[A-Za-z0-9_.-]{20,}")
# Control characters without the line feed, and two line separators that some programs obey.
_CONTROLS = {n: f"\\u{n:04x}" for n in (*range(10), *range(11, 32), *range(127, 160), 8232, 8233)}
_ENCODER = msgspec.json.Encoder()


class RequestLine(msgspec.Struct, omit_defaults=True):
    """One answered request, as a line of the JSON format.

    Attributes:
        time: When it was answered, ISO 8601 in UTC.
        event: Always `request`.
        request_id: The same as in the answer.
        method: HTTP method.
        path: Of the request, without the query string.
        route: Template of the path, such as `/api/v1/photos/{photo_id}`.
        status: HTTP status.
        took_ms: Milliseconds from the first byte to the answer.
        bytes: Size of the answer's body.
        key_id: Public identifier of the caller's key.
        account_id: Account of the key.
        plan: Plan of the account.
        snapshot: Snapshot that it was answered from.
        facts: Further values that the route adds.
    """

    time: str
    event: str
    request_id: str
    method: str
    path: str
    route: str
    status: int
    took_ms: float
    bytes: int
    key_id: str = ""
    account_id: int = 0
    plan: str = ""
    snapshot: str = ""
    facts: dict[str, Any] = {}


class Log:
    """The log of a server or worker, written by a thread of its own.

    Attributes:
        format: `json`, one object per line, or `text` for people.
        dropped: Number of lines lost since the last one that was written.
    """

    def __init__(self, format: Format = "text", *, access: bool = True, handle: int = 2) -> None:
        """Start the thread that writes.

        Args:
            format: `json` or `text`.
            access: Whether each request gets a line; errors always do.
            handle: File descriptor to write to, which stays open; standard error if left out.
        """
        self.format = format
        self.dropped = 0
        self._access = access
        self._handle = handle
        self._lines: deque[bytes] = deque()
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._closed = False
        self._second = (0, "")
        self._thread = threading.Thread(target=self._run, name="searchlab-log", daemon=True)
        self._thread.start()

    def request(
        self,
        *,
        request_id: str,
        method: str,
        path: str,
        route: str,
        status: int,
        took_ms: float,
        size: int,
        key_id: str = "",
        account_id: int = 0,
        plan: str = "",
        snapshot: str = "",
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Log an answered request; see `RequestLine`."""
        if not self._access:
            return
        line = RequestLine(
            self._now(),
            "request",
            request_id,
            method if len(method) <= 20 else method[:20],
            _shorten_path(path),
            route,
            status,
            round(took_ms, 3),
            size,
            key_id,
            account_id,
            plan,
            snapshot,
            facts or {},
        )
        if self.format == "json":
            self._put(_ENCODER.encode(line))
        else:
            who = f" key={key_id} plan={plan}" if key_id else ""
            facts_text = "".join(f" {name}={value}" for name, value in line.facts.items())
            path_text = _escape_controls(_ENCODER.encode(line.path).decode()[1:-1])
            text = (
                f"{line.time} {status} {line.method} {path_text} {line.took_ms:.1f} ms "
                f"{size:,} bytes{who}{facts_text} request={request_id}"
            )
            self._put(text.encode(errors="backslashreplace"))

    def event(self, message: str, *, level: str = "info", **facts: Any) -> None:
        """Log an event of the server itself, such as a new snapshot."""
        self._note(level, message, facts)

    def error(
        self,
        message: str,
        error: BaseException | None = None,
        *,
        request_id: str = "",
        trace: bool = True,
    ) -> None:
        """Log an error on our side, with its traceback.

        Args:
            message: What failed.
            error: The exception, if there is one.
            request_id: Id of the request that it happened in.
            trace: Whether to write the traceback, which takes some thousand bytes.
        """
        facts: dict[str, Any] = {"request_id": request_id} if request_id else {}
        if error is not None:
            facts["error"] = f"{type(error).__name__}: {error}"
            lines = traceback.format_exception(error) if trace else ()
            facts["traceback"] = "".join(lines)[-_TRACE_LENGTH:]
        self._note("error", message, facts)

    def _note(self, level: str, message: str, facts: dict[str, Any]) -> None:
        trace = str(facts.pop("traceback", ""))
        fields: dict[str, Any] = {
            "time": self._now(),
            "event": level,
            "message": _strike_keys(message),
        }
        for name, value in facts.items():
            fields[name] = value if isinstance(value, int | float) else _strike_keys(str(value))
        if self.format == "json":
            self._put(
                _ENCODER.encode(fields | ({"traceback": _strike_keys(trace)} if trace else {}))
            )
            return
        head = f"{fields.pop('time')} {level.upper()} {fields.pop('message')}"
        fields.pop("event")
        fields_text = "".join(f" {name}={value}" for name, value in fields.items())
        text = _escape_controls(head + fields_text).replace("\n", "\\n")
        if trace:
            text += "\n" + _escape_controls(_strike_keys(trace.rstrip()))
        self._put(text.encode(errors="backslashreplace"))

    def flush(self, timeout_s: float = 1.0) -> bool:
        """Wait until all lines are written; returns False if that takes longer than `timeout_s`."""
        self._wake.set()
        return self._idle.wait(timeout_s)

    def close(self, timeout_s: float = 1.0) -> None:
        """Write the remaining lines, for at most `timeout_s` seconds, and stop the thread."""
        self.flush(timeout_s)
        self._closed = True
        self._wake.set()
        self._thread.join(timeout_s)

    def _now(self) -> str:
        second, milli = divmod(time.time_ns() // 1_000_000, 1000)
        last, text = self._second
        if last != second:
            text = datetime.datetime.fromtimestamp(second, tz=datetime.UTC).isoformat()[:19]
            self._second = (second, text)
        return f"{text}.{milli:03d}+00:00"

    def _put(self, line: bytes) -> None:
        if len(self._lines) >= _MOST_LINES:
            self.dropped += 1
            return
        self._lines.append(line)
        if self._idle.is_set():
            self._idle.clear()
            self._wake.set()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            while self._lines:
                try:
                    self._write_some()
                except OSError:  # the reader has closed the stream
                    self.dropped += len(self._lines)
                    self._lines.clear()
                # Wait for a batch of lines; `flush` and `close` end the wait.
                self._wake.wait(_PERIOD_S)
                self._wake.clear()
            self._idle.set()
            if self._lines:  # added since the loop above ended
                self._idle.clear()
                self._wake.set()

    def _write_some(self) -> None:
        while self._lines:
            batch = [self._lines.popleft()]
            size = len(batch[0]) + 1
            while self._lines and size + len(self._lines[0]) + 1 <= _PIPE_BYTES:
                batch.append(self._lines.popleft())
                size += len(batch[-1]) + 1
            if self.dropped:
                lost, self.dropped = self.dropped, 0
                batch.append(f"({lost} lines were dropped, nobody read them)".encode())
            data = b"\n".join([*batch, b""])
            while data:
                try:
                    data = data[os.write(self._handle, data) :]
                except BlockingIOError:  # another process has made the stream non-blocking
                    time.sleep(_PERIOD_S)


class LibraryHandler(logging.Handler):
    """Forwards records of other libraries, at level warning and above, to the server's log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record."""
        try:
            error = record.exc_info[1] if record.exc_info else None
            message = f"{record.name}: {record.getMessage()}"
            if error is None:
                self._log.event(message, level=record.levelname.lower())
            else:
                self._log.error(message, error)
        except Exception:
            self.handleError(record)


def forward_library_logs(log: Log) -> None:
    """Send the warnings of all libraries to this log, and to no other place."""
    logging.basicConfig(level=logging.WARNING, handlers=[LibraryHandler(log)], force=True)


def _shorten_path(path: str) -> str:
    if len(path) > _PATH_LENGTH:
        path = path[:_PATH_LENGTH] + "..."
    if not path.isascii():
        path = path.encode("ascii", errors="backslashreplace").decode()
    return _strike_keys(path)


def _escape_controls(text: str) -> str:
    return text if text.isascii() and text.isprintable() else text.translate(_CONTROLS)


def _strike_keys(text: str) -> str:
    return _KEY.sub("sl_***", text) if "sl" in text else text
