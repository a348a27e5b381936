"""Usage counters of the account (4.6): its searches by month, day and key."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get

from searchlab.api.accounts import usage
from searchlab.api.accounts.clock import utc_now
from searchlab.api.http.context import caller_of, context_of, services_of
from searchlab.api.wire.envelope import succeed
from searchlab.api.wire.operations import Operation
from searchlab.api.wire.parameters import read
from searchlab.api.wire.requests import Days, Months
from searchlab.api.wire.schema import DailyUsage, MonthlyUsage, Usage, UsageByKey


@get(
    "/api/v1/usage",
    opt=Operation(operation_id="getUsage", summary="Searches of the current month", data=Usage).opt,
)
async def get_usage(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Searches of the current month."""
    caller, services = caller_of(request), services_of(request)
    limit, today = context_of(request).plan.requests_per_month, utc_now().date()
    record = await services.in_database(
        usage.read_month, services.database, caller.account_id, today, limit=limit
    )
    context_of(request).used = record["requests"]["used"]
    return succeed(request, record)


@get(
    "/api/v1/usage/monthly",
    opt=Operation(
        operation_id="getMonthlyUsage",
        summary="Searches by month",
        description="The most recent month first, months without searches included.",
        parameters=Months,
        data=MonthlyUsage,
    ).opt,
)
async def get_monthly_usage(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Searches by month."""
    months, caller = read(Months, request).months, caller_of(request)
    services, today = services_of(request), utc_now().date()
    record = await services.in_database(
        usage.read_months, services.database, caller.account_id, months, today
    )
    return succeed(request, record)


@get(
    "/api/v1/usage/daily",
    opt=Operation(
        operation_id="getDailyUsage",
        summary="Searches by day",
        description="The oldest day first, days without searches included.",
        parameters=Days,
        data=DailyUsage,
    ).opt,
)
async def get_daily_usage(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Searches by day."""
    days, caller = read(Days, request).days, caller_of(request)
    services, today = services_of(request), utc_now().date()
    record = await services.in_database(
        usage.read_days, services.database, caller.account_id, days, today
    )
    return succeed(request, record)


@get(
    "/api/v1/usage/by-key",
    opt=Operation(
        operation_id="getUsageByKey",
        summary="Searches by key of the account",
        description="Connected apps stand among the keys, and so do the pages of this server, as "
        "`pages`, once they were searched this month. So the counts add up to the month's.",
        data=UsageByKey,
    ).opt,
)
async def get_usage_by_key(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Searches by key of the account."""
    services, account_id = services_of(request), caller_of(request).account_id
    await services.meter.flush()
    record = await services.in_database(usage.read_keys, services.database, account_id, utc_now())
    return succeed(request, record)


ROUTES = [get_usage, get_monthly_usage, get_daily_usage, get_usage_by_key]
