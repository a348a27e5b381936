"""Decoders: the processes that decode uploads (see `decoding`), started when they are needed."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from PIL import Image

from searchlab.api.http.decoding import ANSWER, READY, REQUEST
from searchlab.errors import ImageError

_COMMAND = (sys.executable, "-P", "-m", "searchlab.api.http.decoding")
_PIECE = 1 << 20
_OUT_OF_TIME = -signal.SIGXCPU
# A picture that got less of the CPU than this share of its time was kept waiting by others.
_OWN_SHARE = 0.5
# One process stays for the next picture; of a wave the others end when they were idle so long.
_IDLE_S = 30.0
# Several may have died while they were idle; one after the other does where memory is short.
_TRIES = 5


class TooSlowError(Exception):
    """A picture took longer to decode than it may; its process was killed."""


class TooBusyError(Exception):
    """The machine had no time for a picture, which is no fault of it; its process was killed."""


class Decoders:
    """Decodes pictures in other processes; safe for several threads, each of which uses one."""

    def __init__(self, timeout_s: float) -> None:
        """Start nothing yet.

        Args:
            timeout_s: Seconds that a picture may take, on the clock and of CPU time.
        """
        self._timeout_s = timeout_s
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """Process ids of those that live."""
        with self._lock:
            return [process.pid for process in self._all if process.lives]

    def decode(self, content: bytes, input_size: int) -> Image.Image:
        """Decode an upload in another process; see `decoding.open_for_model`.

        Raises:
            ImageError: The picture is refused, or crashes its decoder.
            TooSlowError: It takes too long.
            TooBusyError: Others take the time that it would need.
            MemoryError: No process can be started.
        """
        for _ in range(_TRIES):
            process = self._take()
            try:
                return process.decode(content, input_size, self._timeout_s)
            except BrokenPipeError:  # it died while it was idle, or as it started
                continue
            finally:
                self._give_back(process)
        msg = f"a process that decodes must stay alive, got {_TRIES} that ended at once"
        raise MemoryError(msg)

    def _take(self) -> _Process:
        with self._lock:
            for process in [process for process in self._idle if not process.lives]:
                self._idle.remove(process)
                self._all.discard(process)
                process.kill()
            if self._idle:
                return self._idle.pop()
            stays = not any(process.stays and process.lives for process in self._all)
            try:
                process = _Process(stays=stays)
            except OSError as error:  # too many processes, or too little memory
                raise MemoryError from error
            self._all.add(process)
        return process

    def _give_back(self, process: _Process) -> None:
        with self._lock:
            if process.is_free and not self._closed:
                # The one that stays is taken first, so that the others have time to end.
                self._idle.insert(len(self._idle) if process.stays else 0, process)
                return
            self._all.discard(process)
        process.kill()

    def close(self) -> None:
        """End all processes, those at work as well."""
        with self._lock:
            self._closed = True
            processes, self._all, self._idle = list(self._all), set(), []
        for process in processes:
            process.kill()


class _Process:
    """One process.

    Attributes:
        stays: Whether it never ends by itself.
        is_free: Whether it takes a picture; not while it has one, and never again after its last.
    """

    def __init__(self, *, stays: bool) -> None:
        self.stays = stays
        idle_s = math.inf if stays else _IDLE_S
        self._process = subprocess.Popen(
            (*_COMMAND, str(idle_s)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        pipes = cast("tuple[IO[bytes], IO[bytes]]", (self._process.stdin, self._process.stdout))
        self._requests, self._answers = (pipe.fileno() for pipe in pipes)
        os.set_blocking(self._requests, False)
        self.is_free = True
        self._is_ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def decode(self, content: bytes, input_size: int, timeout_s: float) -> Image.Image:
        """Decode a picture.

        Raises:
            ImageError: It is refused.
            TooSlowError: It takes too long.
            TooBusyError: Others take the time that it would need.
            BrokenPipeError: The process had died before, or could not start.
        """
        deadline, spent_s = time.monotonic() + timeout_s, _read_cpu_s(self.pid)
        self.is_free = False
        try:
            if not self._is_ready:
                self._read(len(READY), deadline)
                self._is_ready = True
            self._write(REQUEST.pack(len(content), input_size, timeout_s), deadline)
            self._write(content, deadline)
            head = self._read(ANSWER.size, deadline)
            refused, last, width, height, n_bytes = ANSWER.unpack(head)
            body = self._read(n_bytes, deadline)
        except TooSlowError:
            if _read_cpu_s(self.pid) - spent_s < _OWN_SHARE * timeout_s:
                raise TooBusyError from None
            raise
        self.is_free = not last
        if refused:
            reason, message = json.loads(body)
            raise ImageError(message, reason=reason)
        return Image.frombytes("RGB", (width, height), body)

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            _wait_for(self._requests, select.POLLOUT, deadline)
            view = view[os.write(self._requests, view[:_PIECE]) :]

    def _read(self, n_bytes: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < n_bytes:
            _wait_for(self._answers, select.POLLIN, deadline)
            piece = os.read(self._answers, min(_PIECE, n_bytes - len(data)))
            if not piece:
                raise self._crash()
            data += piece
        return bytes(data)

    def _crash(self) -> Exception:
        with suppress(subprocess.TimeoutExpired):
            ended = self._process.wait(1.0)
            if ended == _OUT_OF_TIME:
                return TooSlowError()
            if not (ended and self._is_ready):  # by itself or at its start: it saw no picture
                return BrokenPipeError()
        msg = "a picture must be complete and undamaged, got one that cannot be decoded"
        return ImageError(msg, reason="damaged")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _read_cpu_s(pid: int) -> float:
    """Read the CPU seconds of a process so far; infinite where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return math.inf


def _wait_for(handle: int, event: int, deadline: float) -> None:
    ready = select.poll()
    ready.register(handle, event)
    if not ready.poll(max(0.0, deadline - time.monotonic()) * 1e3):
        raise TooSlowError
