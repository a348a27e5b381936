"""The plan's searches of a month: refused when used up, counted before an answer leaves."""

from __future__ import annotations

from typing import Any

from litestar import Request

from searchlab.api.accounts.meter import Also
from searchlab.api.accounts.plans import PLANS, Plan
from searchlab.api.accounts.rates import seconds_left_in_month
from searchlab.api.http.context import caller_of, context_of, services_of
from searchlab.api.wire.errors import Problem
from searchlab.errors import QuotaError


def plan_of(request: Request[Any, Any, Any]) -> Plan:
    """Return the plan of the caller's account."""
    return PLANS[caller_of(request).plan]


def check_quota(request: Request[Any, Any, Any]) -> None:
    """Refuse a search of an account that has used up its month, before anything is computed.

    Raises:
        Problem: It has.
    """
    used = context_of(request).used
    if used is not None and used >= plan_of(request).requests_per_month:
        raise _used_up(request)


async def count_search(request: Request[Any, Any, Any], also: Also | None = None) -> None:
    """Count a search; returns when it is committed, so that no answer leaves uncounted.

    Args:
        request: The search.
        also: Runs in the same transaction.

    Raises:
        Problem: The month is used up; nothing is counted.
    """
    context, plan = context_of(request), plan_of(request)
    meter = services_of(request).meter
    try:
        with context.timed("count"):
            context.used = await meter.count(
                caller_of(request), limit=plan.requests_per_month, also=also
            )
    except QuotaError:
        context.used = plan.requests_per_month
        raise _used_up(request) from None


def _used_up(request: Request[Any, Any, Any]) -> Problem:
    services_of(request).metrics.count_refusal("quota")
    plan = plan_of(request)
    msg = (
        f"the plan {plan.name} allows {plan.requests_per_month:,} searches a month, got one more; "
        "wait for the next month (UTC), or change the plan"
    )
    wait = str(max(1, seconds_left_in_month()))
    details = {"plan": plan.name, "limit": plan.requests_per_month}
    return Problem(msg, "QUOTA_EXCEEDED", details=details, headers={"Retry-After": wait})
