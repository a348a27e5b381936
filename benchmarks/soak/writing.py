"""Writers: they make collections and keys, send each POST twice, and delete and revoke again."""

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
        while not world.is_over:
            created = await _post_twice(world, client, "/api/v1/collections", {"name": "soak"})
            if created is None:
                continue
            place = f"/api/v1/collections/{created['data']['id']}"
            entry = {"photo_id": min(world.current)}
            added = await _post_twice(world, client, f"{place}/photos", entry)
            answer = await world.request(client, _ACCOUNT, "GET", place)
            if added is not None and answer is not None and answer.status_code == 200:
                count = answer.json()["data"]["photos_count"]
                if count != 1:
                    world.ledger.report_broken(
                        f"a photo was added once, the collection holds {count}"
                    )
                again = f"{place}/photos"
                await world.request(client, _ACCOUNT, "POST", again, json=entry, allowed=(409,))
            await world.request(client, _ACCOUNT, "DELETE", place)
            world.ledger.events["collections made and deleted"] += 1


async def _post_twice(
    world: World, client: httpx.AsyncClient, path: str, body: dict[str, str]
) -> dict[str, Any] | None:
    """Send a POST until it is answered, and then once more; both answers must be the same.

    Returns:
        The body of the answer; None if it did not come twice.
    """
    headers = {"idempotency-key": str(uuid.uuid4())}
    answers: list[httpx.Response] = []
    tries = 0
    while len(answers) < 2 and tries < _MOST_TRIES and not world.is_over:
        tries += 1
        answer = await world.request(
            client, _ACCOUNT, "POST", path, json=body, headers=headers, allowed=(200, 409)
        )
        if answer is not None and answer.status_code == 200:
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
    while not world.is_over:
        key, secret = await asyncio.to_thread(
            create_key, world.database, account=_ACCOUNT, name=f"short {uuid.uuid4()}"
        )
        clients = [world.client_of(secret) for _ in range(4)]
        for client in clients:
            await world.request(client, _ACCOUNT, "GET", facet)
        await asyncio.to_thread(revoke_key, world.database, key.key_id)
        for client in clients:
            await world.request(client, _ACCOUNT, "GET", facet, allowed=(401,))
            await client.aclose()
        world.ledger.events["keys made and revoked"] += 1
        await asyncio.sleep(0.3)
