"""Visitors: they look at every page, its files, pictures, and what the service says of itself."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.common.load.closed_loop import WORDS
from benchmarks.soak.http_client import Answer, HttpClient
from benchmarks.soak.world import World

_PAGES = (
    *("/", "/docs", "/docs/errors", "/docs/security", "/docs/mcp", "/openapi.json"),
    *("/collections", "/account", "/judge", "/sign-in", "/c/1", "/connect?client_id=a"),
)
_SERVICE = ("/health", "/metrics", "/health")
_METADATA = ("oauth-protected-resource", "oauth-authorization-server")
_SIZES = ("thumb", "small", "regular", "full")
_FILES = re.compile(r'(?:href|src)="([^"]*(?:static|media)/[^"]+)"')
# A visitor who is not signed in is sent on or told to; a photo may just have been deleted.
_STATUSES = (200, 303, 304, 401, 403, 404, 422)


async def visit(world: World) -> None:
    """Open one page after the other, and all files that it names."""
    async with HttpClient(world.server.base_url) as client:
        while not world.is_over:
            photo_id = world.choose_photo()
            pages = (*_PAGES, f"/photos/{photo_id}", f"/?q={world.random.choice(WORDS)}")
            page = world.random.choice(pages)
            answer = await _ask(world, client, page)
            if answer is not None:
                for place in _FILES.findall(answer.text)[:3]:
                    address = place.replace("&amp;", "&").replace("../", "").lstrip("/")
                    await _ask(world, client, f"/{address}")
                    await _ask(world, client, f"/{address}", method="HEAD")
            picture = f"/media/{photo_id}/{world.random.choice(_SIZES)}"
            shown = await _ask(world, client, picture)
            if shown is not None and shown.status == 200:
                known = {"if-none-match": shown.headers["etag"]}
                await _ask(world, client, picture, headers=known)
                await _ask(world, client, picture, headers={"range": "bytes=10-99"})
            await _ask(world, client, picture, method="HEAD")
            await _ask(world, client, f"/media/{photo_id}")
            await _ask(world, client, f"/media/{photo_id}", method="HEAD")
            for name in _METADATA:
                for path in ("", "/mcp"):
                    await _ask(world, client, f"/.well-known/{name}{path}")
            await _ask(world, client, world.random.choice(_SERVICE))


async def _ask(
    world: World, client: HttpClient, path: str, *, method: str = "GET", **options: Any
) -> Answer | None:
    headers = {"accept": "text/html", **options.pop("headers", {})}
    return await world.request(
        client, "visitor", method, path, allowed=(*_STATUSES, 206), headers=headers
    )
