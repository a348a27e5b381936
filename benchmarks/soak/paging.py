"""Pagers: they page through whole rankings, and check that no photo is skipped or comes twice."""

from __future__ import annotations

import time
from collections import Counter

from benchmarks.soak.http_client import HttpClient
from benchmarks.soak.world import SEARCH, World

_RANKINGS: tuple[dict[str, str], ...] = (
    {"color_name": "blue"},
    {"orientation": "landscape"},
    {"after_date": "2001-01-01"},
    {"q": "castle"},
    {"q": "a red flower", "sort_by": "newest"},
    {"q": "water", "color_hex": "#1f6f8b", "color_tolerance": "120"},
)
_KEPT_S = 3_600


async def walk_rankings(world: World) -> None:
    """Walk through one ranking after the other."""
    async with world.client("pager") as client:
        while not world.is_over:
            params = {"fields": "photo_id,source", "per_page": "40"}
            if await _walk(world, client, world.random.choice(_RANKINGS) | params):
                world.ledger.events["walks to the end"] += 1


async def _walk(world: World, client: HttpClient, params: dict[str, str]) -> bool:
    """Page through a ranking; returns True if it was followed to its end."""
    photo_ids: list[str] = []
    snapshot, total, cursor = "", 0, None
    while not world.is_over:
        page_params = params if cursor is None else {"cursor": cursor, "fields": params["fields"]}
        answer = await world.request(
            client, "pager", "GET", SEARCH, params=page_params, allowed=(200, 410), searches=1
        )
        if answer is None:
            continue
        if answer.status == 410:
            _judge_expiry(world, snapshot)
            return False
        if cursor is None:
            snapshot = answer.headers["x-searchlab-snapshot"]
            total = int(answer.headers["x-searchlab-plan"].split("candidates=")[1].split(";")[0])
        elif answer.headers["x-searchlab-snapshot"] != snapshot:
            world.ledger.report_broken(f"a walk through {snapshot} went on in another snapshot")
        photo_ids += [photo["photo_id"] for photo in answer.json()["data"]]
        pagination = answer.json()["pagination"]
        cursor = pagination["next_cursor"]
        if pagination["has_more"] != (cursor is not None):
            world.ledger.report_broken(f"has_more and next_cursor must agree, got {pagination}")
        if cursor is None:
            return _judge_walk(world, params, photo_ids, snapshot, total)
    return False


def _judge_expiry(world: World, snapshot: str) -> None:
    """Check that a cursor expired only when its snapshot had been replaced for long."""
    world.ledger.events["walks whose snapshot was dropped"] += 1
    passed_s = time.monotonic() - world.replaced.get(snapshot, time.monotonic())
    if passed_s < _KEPT_S:
        world.ledger.report_broken(f"a cursor of {snapshot} expired after {passed_s:.0f} s")


def _judge_walk(
    world: World, params: dict[str, str], photo_ids: list[str], snapshot: str, total: int
) -> bool:
    """Compare the photos of a walk with those of its snapshot.

    Returns:
        False if photos came twice and the snapshot is not known, else True.
    """
    repeated = [photo_id for photo_id, count in Counter(photo_ids).items() if count > 1]
    if repeated:
        world.ledger.report_broken(f"{params}: photos were met twice: {repeated[:3]}")
    world.note_snapshot()
    start = world.snapshots.get(snapshot)
    if start is None:  # it was only served between two calls of `note_snapshot`
        return not repeated
    later = world.order[world.order.index(snapshot) :]
    staying = frozenset.intersection(*(world.snapshots[name] for name in later))
    strangers = set(photo_ids) - start
    deleted = len(start) - len(staying)
    if strangers:
        world.ledger.report_broken(f"{params}: photos of another snapshot were met: {strangers}")
    if not total - deleted <= len(photo_ids) <= total:
        world.ledger.report_broken(
            f"{params}: {total} photos meet it in {snapshot}, {deleted} were deleted since, "
            f"{len(photo_ids)} were met"
        )
    if "q" in params and "color_hex" not in params and (skipped := staying - set(photo_ids)):
        world.ledger.report_broken(f"{params}: photos were skipped: {sorted(skipped)[:3]}")
    return True
