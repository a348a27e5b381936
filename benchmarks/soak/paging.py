"""Pagers: they walk through whole rankings, and see that no photo is skipped or met twice."""

from __future__ import annotations

from collections import Counter

import httpx

from benchmarks.soak.world import SEARCH, World

_RANKINGS: tuple[dict[str, str], ...] = (
    {"color_name": "blue"},
    {"orientation": "landscape"},
    {"after_date": "2001-01-01"},
    {"q": "castle"},
    {"q": "a red flower", "sort_by": "newest"},
    {"q": "water", "color_hex": "#1f6f8b", "color_tolerance": "120"},
)
_KEPT = 3


async def page(world: World) -> None:
    """Walk through one ranking after the other."""
    async with world.client("pager") as client:
        while not world.over:
            params = {"fields": "photo_id,source", "per_page": "40"}
            if await _walk(world, client, world.random.choice(_RANKINGS) | params):
                world.ledger.events["walks to the end"] += 1


async def _walk(world: World, client: httpx.AsyncClient, params: dict[str, str]) -> bool:
    """Page to the end; True if there was one."""
    met: list[str] = []
    snapshot, total, cursor = "", 0, None
    while not world.over:
        page_params = params if cursor is None else {"cursor": cursor, "fields": params["fields"]}
        answer = await world.request(
            client, "pager", "GET", SEARCH, params=page_params, may=(200, 410), searches=True
        )
        if answer is None:
            continue
        if answer.status_code == 410:
            _judge_expiry(world, snapshot)
            return False
        if cursor is None:
            snapshot = answer.headers["x-searchlab-snapshot"]
            total = int(answer.headers["x-searchlab-plan"].split("candidates=")[1].split(";")[0])
        elif answer.headers["x-searchlab-snapshot"] != snapshot:
            world.ledger.blame(f"a walk through {snapshot} went on in another snapshot")
        met += [photo["photo_id"] for photo in answer.json()["data"]]
        pagination = answer.json()["pagination"]
        cursor = pagination["next_cursor"]
        if pagination["has_more"] != (cursor is not None):
            world.ledger.blame(f"has_more and next_cursor must agree, got {pagination}")
        if cursor is None:
            return _judge_walk(world, params, met, snapshot, total)
    return False


def _judge_expiry(world: World, snapshot: str) -> None:
    """See that a cursor expired only because its snapshot is one of the old ones."""
    world.ledger.events["walks whose snapshot was dropped"] += 1
    held = world.order[-_KEPT:]
    if snapshot in held[1:]:
        world.ledger.blame(f"a cursor of {snapshot} expired, held are {held}")


def _judge_walk(
    world: World, params: dict[str, str], met: list[str], snapshot: str, total: int
) -> bool:
    """Compare what a walk met with what its snapshot holds; False if it repeated itself."""
    repeated = [photo_id for photo_id, count in Counter(met).items() if count > 1]
    if repeated:
        world.ledger.blame(f"{params}: photos were met twice: {repeated[:3]}")
    world.note_snapshot()
    start = world.snapshots.get(snapshot)
    if start is None:  # it was in force for a moment between two looks
        return not repeated
    since = world.order[world.order.index(snapshot) :]
    staying = frozenset.intersection(*(world.snapshots[name] for name in since))
    strangers = set(met) - start
    deleted = len(start) - len(staying)
    if strangers:
        world.ledger.blame(f"{params}: photos of another snapshot were met: {strangers}")
    if not total - deleted <= len(met) <= total:
        world.ledger.blame(
            f"{params}: {total} photos meet it in {snapshot}, {deleted} were deleted since, "
            f"{len(met)} were met"
        )
    if "q" in params and "color_hex" not in params and (skipped := staying - set(met)):
        world.ledger.blame(f"{params}: photos were skipped: {sorted(skipped)[:3]}")
    return True
