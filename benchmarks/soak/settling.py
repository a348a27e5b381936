"""Settling: at the end, usage must be what was acknowledged, neither more nor less."""

from __future__ import annotations

from benchmarks.soak.world import ACCOUNTS, World
from searchlab.api.accounts.accounts import create_key


async def settle(world: World) -> None:
    """Compare each account's usage with what was acknowledged to it."""
    for account in ACCOUNTS:
        await _settle(world, account)


async def _settle(world: World, account: str) -> None:
    # A key of its own, since people revoke those of their accounts.
    _, key = create_key(world.database, account=account, name="settling")
    async with world.client_of(key) as client:
        answer = by_key = None
        for _ in range(100):  # a worker may just be starting again
            answer = answer or await world.request(client, account, "GET", "/api/v1/usage")
            by_key = by_key or await world.request(client, account, "GET", "/api/v1/usage/by-key")
    if answer is None or by_key is None:
        world.ledger.report_broken(f"usage of {account} could not be asked")
        return
    used = answer.json()["data"]["requests"]["used"]
    keys = sum(key["requests_this_month"] for key in by_key.json()["data"]["keys"])
    acknowledged = world.ledger.acknowledged[account]
    unknown = world.ledger.unknown[account]
    if not acknowledged <= used <= acknowledged + unknown:
        world.ledger.report_broken(
            f"{account} was acknowledged {acknowledged} searches and {unknown} broke off, "
            f"its usage says {used}"
        )
    if keys != used:
        world.ledger.report_broken(f"{account} used {used}, its keys together {keys}")
    world.ledger.events["searches counted"] += used
