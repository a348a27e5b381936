"""Writers: they make collections and keys, send POSTs twice, and revoke and delete again."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx

from benchmarks.soak.world import World
from searchlab.api.accounts.accounts import create_key, revoke_key

_ACCOUNT = "maker"
_MOST_TRIES = 40


async def make_collections(world: World) -> None:
    """Make collections, fill and delete them, each POST twice."""
    async with world.client(_ACCOUNT) as client:
        while not world.over:
            made = await _twice(world, client, "/api/v1/collections", {"name": "soak"})
            if made is None:
                continue
            place = f"/api/v1/collections/{made['data']['id']}"
            entry = {"photo_id": min(world.current)}
            added = await _twice(world, client, f"{place}/photos", entry)
            answer = await world.request(client, _ACCOUNT, "GET", place)
            if added is not None and answer is not None and answer.status_code == 200:
                count = answer.json()["data"]["photos_count"]
                if count != 1:
                    world.ledger.blame(f"a photo was added once, the collection holds {count}")
                again = f"{place}/photos"
                await world.request(client, _ACCOUNT, "POST", again, json=entry, may=(409,))
            await world.request(client, _ACCOUNT, "DELETE", place)
            world.ledger.events["collections made and deleted"] += 1


async def _twice(
    world: World, client: httpx.AsyncClient, path: str, body: dict[str, str]
) -> dict[str, Any] | None:
    """Send a POST again until it is answered, and then once more; returns the one answer."""
    headers = {"idempotency-key": str(uuid.uuid4())}
    answers: list[httpx.Response] = []
    tries = 0
    while len(answers) < 2 and tries < _MOST_TRIES and not world.over:
        tries += 1
        answer = await world.request(
            client, _ACCOUNT, "POST", path, json=body, headers=headers, may=(200, 409)
        )
        if answer is not None and answer.status_code == 200:
            answers.append(answer)
        elif answer is not None:  # held by a worker that was killed, for up to a minute
            world.ledger.events["retries that had to wait"] += 1
            return None
    if len(answers) < 2:
        return None
    first, again = answers
    if again.headers.get("idempotency-replayed") != "true" or first.content != again.content:
        world.ledger.blame(f"POST {path} was answered anew: {again.text[:200]}")
    data: dict[str, Any] = first.json()
    return data


async def make_keys(world: World) -> None:
    """Make keys and revoke them; both must hold at once on every connection."""
    facet = "/api/v1/facets/colors"
    while not world.over:
        made, secret = await asyncio.to_thread(
            create_key, world.database, account=_ACCOUNT, name=f"short {uuid.uuid4()}"
        )
        clients = [world.client_of(secret) for _ in range(4)]
        for client in clients:
            await world.request(client, _ACCOUNT, "GET", facet)
        await asyncio.to_thread(revoke_key, world.database, made.key_id)
        for client in clients:
            await world.request(client, _ACCOUNT, "GET", facet, may=(401,))
            await client.aclose()
        world.ledger.events["keys made and revoked"] += 1
        await asyncio.sleep(0.3)
