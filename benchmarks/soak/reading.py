"""Readers: they send every request that only reads, and wrong requests too."""

from __future__ import annotations

import httpx

from benchmarks.common.load.closed_loop import WORDS
from benchmarks.soak.world import SEARCH, World

_ACCOUNT = "reader"
_FILTERS: tuple[dict[str, str], ...] = (
    {"color_name": "blue"},
    {"orientation": "landscape"},
    {"after_date": "2001-01-01"},
)
_FACETS = ("colors", "sources", "orientations", "licenses")


async def read_at_random(world: World) -> None:
    """Send one request after the other, drawn at random."""
    texts = 4 * (_search_by_text,)
    kinds = (*texts, _read_photo, _search_steered, _search_by_upload, _read_facets, _read_usage)
    async with world.client(_ACCOUNT) as client:
        while not world.is_over:
            await world.random.choice((*kinds, _send_wrong))(world, client)


async def _search_by_text(world: World, client: httpx.AsyncClient) -> None:
    text = f"{world.random.choice(WORDS)} {world.random.randrange(50)}"
    params = {"q": text, **world.random.choice(_FILTERS)}
    await world.request(client, _ACCOUNT, "GET", SEARCH, params=params, searches=True)


async def _read_photo(world: World, client: httpx.AsyncClient) -> None:
    photo = f"/api/v1/photos/{_choose_photo(world)}"
    await world.request(client, _ACCOUNT, "GET", photo, allowed=(200, 404))
    similar = f"{photo}/similar"
    await world.request(client, _ACCOUNT, "GET", similar, allowed=(200, 404), searches=True)


async def _search_steered(world: World, client: httpx.AsyncClient) -> None:
    params = {"photo_id": _choose_photo(world), "q": world.random.choice(WORDS), "per_page": "5"}
    await world.request(
        client, _ACCOUNT, "POST", SEARCH, params=params, allowed=(200, 404), searches=True
    )


async def _search_by_upload(world: World, client: httpx.AsyncClient) -> None:
    content = (world.photos / "upload.jpg").read_bytes()
    files = {"image": ("a.jpg", content, "image/jpeg")}
    first = await world.request(client, _ACCOUNT, "POST", SEARCH, files=files, searches=True)
    if first is not None and first.status_code == 200:
        more = {"cursor": first.json()["pagination"]["next_cursor"]}
        await world.request(
            client, _ACCOUNT, "POST", SEARCH, params=more, allowed=(200, 410), searches=True
        )


async def _read_facets(world: World, client: httpx.AsyncClient) -> None:
    for facet in _FACETS:
        await world.request(client, _ACCOUNT, "GET", f"/api/v1/facets/{facet}")
    start = {"q": world.random.choice(WORDS)[:2]}
    suggest = "/api/v1/facets/photographers/suggest"
    await world.request(client, _ACCOUNT, "GET", suggest, params=start)


async def _read_usage(world: World, client: httpx.AsyncClient) -> None:
    for path in ("", "/monthly", "/daily", "/by-key"):
        await world.request(client, _ACCOUNT, "GET", f"/api/v1/usage{path}")


async def _send_wrong(world: World, client: httpx.AsyncClient) -> None:
    wrong = {"q": "castle", "per_page": "101"}
    await world.request(client, _ACCOUNT, "GET", SEARCH, params=wrong, allowed=(422,))
    await world.request(client, _ACCOUNT, "GET", "/api/v1/nothing", allowed=(404,))


def _choose_photo(world: World) -> str:
    return world.random.choice(sorted(world.current))
