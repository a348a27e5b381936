"""Indexers: they add and delete photos while the server runs; deleted ones must be gone."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.common.load.searchlab_server import MAIN
from benchmarks.soak.world import World

_TURNS = 10
# A server checks for a new snapshot every 0.1 s, and opens it; how long that took at most is in the
# record. This is the bound where the machine has hardly any time for the server.
_GONE_WITHIN_S = 60.0
_IN_A_ROW = 12  # answers, so that each worker has given some
_STAYS_S = 2.0


def draw(path: Path, number: int) -> None:
    """Draw a small picture, a different one for each number."""
    rng = np.random.default_rng(number)
    Image.fromarray(rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)).save(path)


async def change_photos(world: World) -> None:
    """Add a photo and delete another one, again and again."""
    async for turn in world.turns(_TURNS):
        number = turn + 1
        draw(world.photos / f"new-{number}.png", number)
        (world.photos / f"new-{number - 2}.png").unlink(missing_ok=True)
        before = world.current
        await _index(world)
        for photo_id in before - world.current:
            await _check_gone(world, photo_id)


async def _check_gone(world: World, photo_id: str) -> None:
    """Wait until a deleted photo is gone; from then on no worker may show it."""
    began, path, gone = time.monotonic(), f"/api/v1/photos/{photo_id}", 0
    while gone < _IN_A_ROW:
        async with world.client("reader") as client:  # a new connection may reach another worker
            answer = await world.request(client, "reader", "GET", path, allowed=(404, 200))
        if answer is None:
            began += 0.2  # the server is down
            continue
        gone = gone + 1 if answer.status == 404 else 0
        if not gone and time.monotonic() - began > _GONE_WITHIN_S:
            world.ledger.report_broken(f"photo {photo_id} was deleted and is still shown")
            return
    world.gone_s.append(time.monotonic() - began)
    await asyncio.sleep(_STAYS_S)
    async with world.client("reader") as client:
        for _ in range(_IN_A_ROW):
            await world.request(client, "reader", "GET", path, allowed=(404,))
    world.ledger.events["photos deleted"] += 1


async def _index(world: World) -> None:
    """Run `searchlab index` beside the server."""
    words = ["index", "--data", str(world.data), str(world.photos)]
    process = await asyncio.create_subprocess_exec(
        *MAIN, *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    _, output = await process.communicate()
    if process.returncode:
        world.ledger.report_broken(
            f"index ended with {process.returncode}: {output.decode()[-300:]}"
        )
    world.note_snapshot()
    world.ledger.events["snapshots swapped in"] = len(world.order) - 1
