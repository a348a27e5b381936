"""Indexers: they add and delete photos while the server runs; deleted ones must be gone."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.common.load.searchlab_server import MAIN
from benchmarks.soak.world import World

# A server checks for a new snapshot every 0.1 s; the machine may be busy, so more time is allowed.
_SEEN_AFTER_S = 2


def draw(path: Path, number: int) -> None:
    """Draw a small picture, a different one for each number."""
    rng = np.random.default_rng(number)
    Image.fromarray(rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)).save(path)


async def change_photos(world: World) -> None:
    """Add a photo and delete another one, again and again."""
    number = 0
    async with world.client("reader") as client:
        while not world.is_over:
            number += 1
            draw(world.photos / f"new-{number}.png", number)
            (world.photos / f"new-{number - 2}.png").unlink(missing_ok=True)
            before = world.current
            await _index(world)
            deleted = before - world.current
            await asyncio.sleep(_SEEN_AFTER_S)
            for photo_id in deleted:
                for _ in range(4):
                    await world.request(
                        client, "reader", "GET", f"/api/v1/photos/{photo_id}", allowed=(404,)
                    )
            world.ledger.events["photos deleted"] += len(deleted)
            await asyncio.sleep(_SEEN_AFTER_S)


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
