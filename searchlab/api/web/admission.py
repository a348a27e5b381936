"""Admission to a page: the guard of forms, the visitor, and the account's rate limit."""

from __future__ import annotations

import math
from typing import Any

from litestar import Request

from searchlab.api.accounts.plans import PLANS
from searchlab.api.http.context import context_of, services_of
from searchlab.api.web.same_origin import check_same_origin
from searchlab.api.web.visitor import find_visitor
from searchlab.api.wire.errors import HttpProblem


async def admit(request: Request[Any, Any, Any]) -> None:
    """Admit a request to a page; runs before each of them.

    With a visitor, the request's context has a caller from here on, as on the routes of the API.

    Raises:
        HttpProblem: A form from elsewhere (403), an account without a known plan (403), or too many
            requests of the account (429).
    """
    check_same_origin(request)
    visitor = await find_visitor(request)
    if visitor is None:
        return
    context, services = context_of(request), services_of(request)
    if visitor.plan not in PLANS:
        msg = f"the account's plan must be one of {', '.join(PLANS)}, got {visitor.plan}"
        raise HttpProblem(msg, "FORBIDDEN")
    context.caller = caller = visitor.caller
    context.verdict = services.rates.check(f"account:{visitor.account_id}")
    if not context.verdict.allowed:
        services.metrics.count_refusal("rate")
        wait_s = math.ceil(context.verdict.retry_after_s)
        msg = f"too many requests in a short time; try again in {wait_s} s"
        raise HttpProblem(msg, "RATE_LIMITED", headers={"Retry-After": str(wait_s)})
    context.used = services.meter.peek(caller)
    if context.used is None:
        context.used = await services.in_database(services.meter.read_used, caller)
