"""Visitors: they look at every page, its files, pictures, and what the service says of itself."""

from __future__ import annotations

import re

import httpx

from benchmarks.common.load.closed_loop import WORDS
from benchmarks.soak.world import World

_PAGES = ("/", "/docs", "/docs/errors", "/docs/security", "/openapi.json", "/collections")
_SERVICE = ("/health", "/metrics")
_SIZES = ("thumb", "small", "regular", "full")
_FILES = re.compile(r'(?:href|src)="(/(?:static|media)/[^"]+)"')
# A visitor who is not signed in is sent on or told to; a photo may just have been deleted.
_STATUSES = (200, 302, 303, 304, 401, 403, 404)


async def visit(world: World) -> None:
    """Open one page after the other, and all files that it names."""
    async with httpx.AsyncClient(base_url=world.server.base_url, timeout=60) as client:
        while not world.is_over:
            photo_id = world.random.choice(sorted(world.current))
            pages = (*_PAGES, f"/photos/{photo_id}", f"/?q={world.random.choice(WORDS)}")
            answer = await _get(world, client, world.random.choice(pages))
            if answer is not None:
                for place in _FILES.findall(answer.text)[:5]:
                    await _get(world, client, place.replace("&amp;", "&"))
            await _get(world, client, f"/media/{photo_id}/{world.random.choice(_SIZES)}")
            await _get(world, client, world.random.choice(_SERVICE))


async def _get(world: World, client: httpx.AsyncClient, path: str) -> httpx.Response | None:
    headers = {"accept": "text/html"}
    return await world.request(client, "visitor", "GET", path, allowed=_STATUSES, headers=headers)
