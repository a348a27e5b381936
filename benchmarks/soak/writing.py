"""Writers: they make collections and keys, send each POST twice, and delete and revoke again."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

from benchmarks.soak.http_client import Answer, HttpClient
from benchmarks.soak.world import FORWARDED, World
from searchlab.api.accounts.accounts import create_key, revoke_key

_ACCOUNT = "maker"
_MOST_TRIES = 40
_KEYS, _GUESSES = 40, 160
_AT_ONCE, _A_SECOND = 100, 2  # guesses of an address that are looked up


async def make_collections(world: World) -> None:
    """Make collections, fill, empty and delete them, each POST twice."""
    async with world.client(_ACCOUNT) as client:
        while not world.is_over:
            created = await _post_twice(world, client, "/api/v1/collections", {"name": "soak"})
            if created is None:
                continue
            number = created["data"]["id"]
            listed = await world.request(client, _ACCOUNT, "GET", "/api/v1/collections")
            if listed is not None and listed.status == 200:
                ids = [one["id"] for one in listed.json()["data"]]
                if number not in ids:
                    world.ledger.report_broken(f"collection {number} was made, the list has {ids}")
            await _fill(world, client, f"/api/v1/collections/{number}")
            world.ledger.events["collections made and deleted"] += 1


async def _fill(world: World, client: HttpClient, place: str) -> None:
    entry = {"photo_id": min(world.current)}
    added = await _post_twice(world, client, f"{place}/photos", entry)
    answer = await world.request(client, _ACCOUNT, "GET", place)
    if added is not None and answer is not None and answer.status == 200:
        count = answer.json()["data"]["photos_count"]
        if count != 1:
            world.ledger.report_broken(f"a photo was added once, the collection holds {count}")
        again = f"{place}/photos"
        await world.request(client, _ACCOUNT, "POST", again, json=entry, allowed=(409,))
        taken = f"{again}/{entry['photo_id']}"
        removed = await world.request(client, _ACCOUNT, "DELETE", taken, allowed=(200, 404))
        if removed is not None:
            await world.request(client, _ACCOUNT, "DELETE", taken, allowed=(404,))
    deleted = await world.request(client, _ACCOUNT, "DELETE", place, allowed=(200, 404))
    if deleted is not None:
        await world.request(client, _ACCOUNT, "GET", place, allowed=(404,))


async def _post_twice(
    world: World, client: HttpClient, path: str, body: dict[str, str]
) -> dict[str, Any] | None:
    """Send a POST until it is answered, and then once more; both answers must be the same.

    Returns:
        The body of the answer; None if it did not come twice.
    """
    headers = {"idempotency-key": str(uuid.uuid4())}
    answers: list[Answer] = []
    tries = 0
    while len(answers) < 2 and tries < _MOST_TRIES and not world.is_over:
        tries += 1
        answer = await world.request(
            client, _ACCOUNT, "POST", path, json=body, headers=headers, allowed=(200, 409)
        )
        if answer is not None and answer.status == 200:
            answers.append(answer)
        elif answer is not None:  # a killed worker may hold the idempotency key for a minute
            world.ledger.events["retries that had to wait"] += 1
            return None
    if len(answers) < 2:
        return None
    first, again = answers
    if again.headers.get("idempotency-replayed") != "true" or first.content != again.content:
        world.ledger.report_broken(f"POST {path} was answered anew: {again.text[:200]}")
    data: dict[str, Any] = first.json()
    return data


async def make_keys(world: World) -> None:
    """Make keys and revoke them; both must take effect at once on every connection."""
    facet = "/api/v1/facets/colors"
    async for _ in world.turns(_KEYS):
        key, secret = await asyncio.to_thread(
            create_key, world.database, account=_ACCOUNT, name=f"short {uuid.uuid4()}"
        )
        # Else these tries with a revoked key would be held against everybody on this machine.
        address = {FORWARDED: world.draw_address()}
        clients = [world.client_of(secret, **address) for _ in range(4)]
        for client in clients:
            await world.request(client, _ACCOUNT, "GET", facet)
        await asyncio.to_thread(revoke_key, world.database, key.key_id)
        for client in clients:
            await world.request(client, _ACCOUNT, "GET", facet, allowed=(401,))
            await client.close()
        world.ledger.events["keys made and revoked"] += 1


async def guess_keys(world: World) -> None:
    """Guess keys from one address; beyond a hundred, few a second may be looked up."""
    facet, looked_up = "/api/v1/facets/colors", 0
    wrong = {"x-api-key": "sl_" + 43 * "x", FORWARDED: world.draw_address()}
    began = time.monotonic()
    async with HttpClient(world.server.base_url) as client:
        for _ in range(_GUESSES):
            answer = await world.request(
                client, "nobody", "GET", facet, headers=wrong, allowed=(401, 429)
            )
            looked_up += answer is not None and answer.status == 401
    world.ledger.events["keys guessed"] += _GUESSES
    most = _AT_ONCE + _A_SECOND * (time.monotonic() - began)
    if looked_up > most + 1:
        world.ledger.report_broken(f"{looked_up} guesses of one address were looked up of {most}")
