"""Admission of a known caller: its plan, what it has used this month, and its rate limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.plans import PLANS
from searchlab.api.accounts.rates import retry_after
from searchlab.api.http.context import RequestContext, Services
from searchlab.api.wire.errors import HttpProblem, overloaded

Subject = TypeVar("Subject")
Reply = TypeVar("Reply")
Found = TypeVar("Found")

_ADMISSION_S = 3.0


async def admit(services: Services, context: RequestContext, caller: Caller) -> None:
    """Admit a request of a caller, which its context has from here on.

    Raises:
        HttpProblem: The account has no known plan (403), there were too many requests of the key
            (429), or the database does not answer (503).
    """
    context.caller = caller
    services.meter.touch(caller)
    if caller.plan not in PLANS:
        plans = ", ".join(PLANS)
        msg = f"the account's plan must be one of {plans}, got {caller.plan}; change the plan"
        raise HttpProblem(msg, "FORBIDDEN")
    context.used = services.meter.peek(caller)
    if context.used is None:
        context.used = await ask(services, services.meter.read_used, caller)
    context.verdict = services.rates.check(caller.key_id)
    if not context.verdict.allowed:
        services.metrics.count_refusal("rate")
        rate = services.settings.rate_per_second
        msg = f"a key may send {rate:g} requests a second, got more; wait for Retry-After seconds"
        wait = retry_after(context.verdict.retry_after_s).decode()
        raise HttpProblem(msg, "RATE_LIMITED", headers={"Retry-After": wait})


async def ask(services: Services, question: Callable[[Subject], Reply], subject: Subject) -> Reply:
    """Ask the database in a thread, so that one that hangs delays no other request.

    Raises:
        HttpProblem: It does not answer in time (503).
    """
    try:
        async with asyncio.timeout(_ADMISSION_S):
            return await services.key_threads.run(question, subject)
    except TimeoutError:
        services.metrics.count_refusal("overload")
        raise overloaded() from None


async def look_up(
    services: Services, scope: Any, find: Callable[[str], Found | None], secret: str
) -> Found | None:
    """Ask the database for the owner of a secret, unless the address has sent too many wrong ones.

    What was in force a moment ago is asked for nevertheless.

    Args:
        services: The worker's.
        scope: ASGI scope of the request.
        find: Finds the owner, or None.
        secret: What came.

    Raises:
        HttpProblem: Too many wrong ones (429), or the database does not answer (503).
    """
    address = services.proxies.client_of(scope)
    verdict = services.wrong_keys.check(address, take=False)
    if not (verdict.allowed or services.recent_secrets.has(secret)):
        services.metrics.count_refusal("guess")
        wait = retry_after(verdict.retry_after_s).decode()
        msg = "an address may send few wrong keys, got more; wait for Retry-After seconds"
        raise HttpProblem(msg, "RATE_LIMITED", headers={"Retry-After": wait})
    owner = await ask(services, find, secret)
    services.recent_secrets.note(secret, in_force=owner is not None)
    if owner is None:
        services.wrong_keys.check(address)
    return owner
