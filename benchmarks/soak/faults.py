"""Faults: the server's clock is set, and its disk is full, for some seconds at a time."""

from __future__ import annotations

import asyncio
import math
import mmap
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.soak.world import World

_SOURCE = Path(__file__).with_name("faults.c")
_FIELDS = struct.Struct("<qq")
_DAY_S = 86_400
# By so much the clock is set, for a few seconds each: three years, a day and a minute.
_JUMPS_S = (3 * 365 * _DAY_S, -_DAY_S, 61, -61)
_JUMP_LASTS_S, _FULL_LASTS_S = 2.5, 3.0
_SEEN_AFTER_S = 1.2  # the service proves a write once a second at most
_READY_TRIES = 30
_CLOCK_TURNS, _DISK_TURNS = 8, 4


class Faults:
    """What a server is made to believe of its clock and its disk.

    Attributes:
        environment: Variables that make a server believe it; none where there is no C compiler,
            and no fault is made then.
    """

    _clock_right_at = 0.0  # by `time.monotonic`; infinite while the clock is set

    def __init__(self, folder: Path) -> None:
        """Compile what is loaded into the server.

        Args:
            folder: Where it may be written.
        """
        self.environment: dict[str, str] = {}
        compiler = shutil.which("cc")
        if compiler is None or not sys.platform.startswith("linux"):
            return
        library, state = folder / "faults.so", folder / "faults"
        words = [compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"]
        subprocess.run([*map(str, words)], check=True)
        state.write_bytes(bytes(_FIELDS.size))
        with state.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _FIELDS.size)
        self.environment = {"LD_PRELOAD": str(library), "FAULTS": str(state)}

    def set(self, *, clock_s: int = 0, disk_is_full: bool = False) -> None:
        """Set the clock so many seconds from what it is, and fill or empty the disk."""
        self._map[:] = _FIELDS.pack(clock_s * 10**9, disk_is_full)
        if clock_s:
            self._clock_right_at = math.inf
        elif self._clock_right_at == math.inf:
            self._clock_right_at = time.monotonic()

    def clock_was_set_since(self, instant: float) -> bool:
        """Say whether the clock was wrong at any time after an instant of `time.monotonic`."""
        return self._clock_right_at > instant


async def set_clock(world: World) -> None:
    """Set the clock forth and back; counts, rates and keys must not notice, as `settle` checks."""
    if not world.faults.environment:
        return
    async with world.client("reader") as client:
        async for turn in world.turns(_CLOCK_TURNS, first=0.6):
            async with world.one_fault:
                world.faults.set(clock_s=_JUMPS_S[turn % len(_JUMPS_S)])
                await asyncio.sleep(_JUMP_LASTS_S)
                path = "/api/v1/usage"
                answer = await world.request(client, "reader", "GET", path)
                world.faults.set()
            used = None if answer is None else answer.json()["data"]["requests"]["used"]
            if used is not None and used < world.counted:
                world.ledger.report_broken(f"a clock that was set made {world.counted} uses {used}")
            world.counted = used or world.counted
            world.ledger.events["clock set"] += 1


async def fill_disk(world: World) -> None:
    """Fill the disk; the service says that it is not ready, and is again when there is room."""
    if not world.faults.environment:
        return
    async with world.client("reader") as client:
        async for _ in world.turns(_DISK_TURNS, first=0.7):
            async with world.one_fault:
                world.faults.set(disk_is_full=True)
                await asyncio.sleep(_FULL_LASTS_S)
                ready = await world.request(client, "reader", "GET", "/ready", allowed=(200,))
                world.faults.set()
            if ready is not None:
                world.ledger.report_broken("/ready said 200 while the disk was full")
            world.ledger.events["disk filled"] += 1
            for _ in range(_READY_TRIES):
                await asyncio.sleep(_SEEN_AFTER_S)
                if await world.request(client, "reader", "GET", "/ready") is not None:
                    break
            else:
                world.ledger.report_broken("the service is not ready, though the disk has room")
