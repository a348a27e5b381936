"""Readers: they send every request of the API that only reads, and wrong requests too."""

from __future__ import annotations

import uuid
from urllib.parse import quote

from benchmarks.common.load.closed_loop import WORDS
from benchmarks.soak.http_client import HttpClient
from benchmarks.soak.world import SEARCH, World
from searchlab.api.accounts.accounts import create_key

_ACCOUNT = "reader"
_FILTERS: tuple[dict[str, str], ...] = (
    {"color_name": "blue"},
    {"orientation": "landscape"},
    {"after_date": "2001-01-01"},
)
_FACETS = ("colors", "sources", "orientations", "licenses")
_PHOTOGRAPHERS = "/api/v1/facets/photographers"


async def read_at_random(world: World) -> None:
    """Send one request after the other, drawn at random, with a key of one's own."""
    texts = 6 * (_search_by_text,)
    rest = (_read_photo, _search_steered, _search_by_upload, _read_facets, _read_usage, _send_wrong)
    _, key = create_key(world.database, account=_ACCOUNT, name=f"reader {uuid.uuid4()}")
    async with world.client_of(key) as client:
        while not world.is_over:
            await world.random.choice((*texts, *rest, _read_photo))(world, client)


async def _search_by_text(world: World, client: HttpClient) -> None:
    text = f"{world.random.choice(WORDS)} {world.random.randrange(50)}"
    params = {"q": text, **world.random.choice(_FILTERS)}
    await world.request(client, _ACCOUNT, "GET", SEARCH, params=params, searches=1)


async def _read_photo(world: World, client: HttpClient) -> None:
    photo = f"/api/v1/photos/{world.choose_photo()}"
    await world.request(client, _ACCOUNT, "GET", photo, allowed=(200, 404))
    similar = f"{photo}/similar"
    await world.request(client, _ACCOUNT, "GET", similar, allowed=(200, 404), searches=1)


async def _search_steered(world: World, client: HttpClient) -> None:
    words = world.random.choice(WORDS)
    params = {"photo_id": world.choose_photo(), "q": words, "per_page": "5"}
    await world.request(
        client, _ACCOUNT, "POST", SEARCH, params=params, allowed=(200, 404), searches=1
    )


async def _search_by_upload(world: World, client: HttpClient) -> None:
    picture = world.upload
    first = await world.request(client, _ACCOUNT, "POST", SEARCH, picture=picture, searches=1)
    if first is not None and first.status == 200:
        more = {"cursor": first.json()["pagination"]["next_cursor"]}
        for _ in range(3):
            await world.request(
                client, _ACCOUNT, "POST", SEARCH, params=more, allowed=(200, 410), searches=1
            )


async def _read_facets(world: World, client: HttpClient) -> None:
    for facet in _FACETS:
        await world.request(client, _ACCOUNT, "GET", f"/api/v1/facets/{facet}")
    start = {"q": world.random.choice(WORDS)[:2]}
    answer = await world.request(client, _ACCOUNT, "GET", f"{_PHOTOGRAPHERS}/suggest", params=start)
    people = [] if answer is None else answer.json()["data"]
    username = quote(people[0]["username"] if people else "nobody", safe="")
    await world.request(client, _ACCOUNT, "GET", f"{_PHOTOGRAPHERS}/{username}")


async def _read_usage(world: World, client: HttpClient) -> None:
    for path in ("", "/monthly", "/daily", "/by-key"):
        await world.request(client, _ACCOUNT, "GET", f"/api/v1/usage{path}")


async def _send_wrong(world: World, client: HttpClient) -> None:
    wrong = {"q": "castle", "per_page": "101"}
    await world.request(client, _ACCOUNT, "GET", SEARCH, params=wrong, allowed=(422,))
    await world.request(client, _ACCOUNT, "GET", "/api/v1/nothing", allowed=(404,))
    await world.request(client, _ACCOUNT, "PUT", "/api/v1/collections", allowed=(405,))
