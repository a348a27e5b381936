"""Killers: they kill workers, stop, kill and start the server, and watch the workers' memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time

import numpy as np

from benchmarks.common.load.processes import resident_mib
from benchmarks.soak.world import World

_TURNS = 12
_MOST_GROWTH_MIB = 300


async def kill_in_turns(world: World) -> None:
    """Kill a worker, stop the server, kill a worker, kill the server, and so on."""
    async for turn in world.turns(_TURNS, first=0.4):
        async with world.one_fault:  # a server that must start finds its disk as it should be
            if turn % 4 == 1:
                await _stop(world, among_slow_clients=turn == 1)
            elif turn % 4 == 3:
                await _restart(world, signal.SIGKILL)
                world.ledger.events["server killed and started"] += 1
            elif workers := world.server.workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(world.random.choice(workers), signal.SIGKILL)
                world.ledger.events["workers killed"] += 1


async def _stop(world: World, *, among_slow_clients: bool) -> None:
    """Stop and start the server; requests that dawdle are given 20 s to end, so mostly without."""
    async with contextlib.AsyncExitStack() as held:
        if not among_slow_clients:
            await held.enter_async_context(world.no_crowd)
        code = await _restart(world, signal.SIGTERM)
    if code:
        world.ledger.report_broken(f"a stopped server must end with 0, got {code}")
    world.ledger.events["server stopped and started"] += 1


async def _restart(world: World, number: signal.Signals) -> int:
    began = time.monotonic()
    code = await asyncio.to_thread(world.server.stop, number)
    await asyncio.to_thread(world.server.start)
    world.downtimes_s.append(time.monotonic() - began)
    return code


async def watch_memory(world: World) -> None:
    """Record how much memory the largest worker holds, twice a second."""
    while not world.is_over:
        sizes = [resident_mib(pid) for pid in world.server.workers]
        if sizes:
            world.memory_mib.append(max(sizes))
        await asyncio.sleep(0.5)


def summarise_memory(world: World) -> dict[str, float]:
    """Return the memory of the largest worker: first and last quarter's median, and the most."""
    quarter = max(1, len(world.memory_mib) // 4)
    first = float(np.median(world.memory_mib[:quarter]))
    last = float(np.median(world.memory_mib[-quarter:]))
    if last > first + _MOST_GROWTH_MIB:
        world.ledger.report_broken(f"workers grew by more than {_MOST_GROWTH_MIB} MiB")
    most = max(world.memory_mib)
    return {
        "worker MiB at first": round(first, 1),
        "worker MiB at last": round(last, 1),
        "worker MiB at most": round(most, 1),
    }
