"""Tools that tell what filters accept, who the photographers are, and how much was used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from searchlab.api.mcp.answers import MOST_BYTES, NOTICE, ToolAnswer, cited, cut, fit_all, take_part
from searchlab.api.mcp.calls import path_of, query_of
from searchlab.api.mcp.tool import Tool, ToolCall, arguments_of, schema_of
from searchlab.api.oauth.scopes import SEARCH
from searchlab.api.routes.facets import Suggest
from searchlab.api.wire.errors import invalid
from searchlab.api.wire.parameters import convert
from searchlab.api.wire.schema import (
    DailyUsage,
    KeyUsage,
    MonthlyUsage,
    Photographer,
    Requests,
)
from searchlab.errors import count, quote

FACETS: Final = ("colors", "sources", "orientations", "licenses")

Start = Annotated[
    int, Meta(ge=1, le=10**6, description="`next_start` of the answer before, to read on.")
]
Notice = Annotated[str, Meta(extra_json_schema={"const": NOTICE})]
NextStart = Annotated[int | None, Meta(description="`start` of the rest; null if this is all.")]


class _Facet(msgspec.Struct, kw_only=True):
    facet: Annotated[
        str,
        Meta(description="Which list of values.", extra_json_schema={"enum": list(FACETS)}),
    ]
    start: Start = 1


class _Value(msgspec.Struct, kw_only=True):
    name: Annotated[str, Meta(description="What the filter accepts.")]
    hex: Annotated[str, Meta(description="Of a colour, its most typical shade.")] | None = None
    license_url: Annotated[str, Meta(description="Of a source, its terms.")] | None = None


class Values(msgspec.Struct, kw_only=True):
    """The values that a filter accepts."""

    notice: Notice
    values: list[_Value]
    next_start: NextStart


class Photographers(msgspec.Struct, kw_only=True):
    """Profiles of photographers."""

    notice: Notice
    photographers: list[Photographer]


class _Windows(msgspec.Struct, kw_only=True):
    months: Annotated[int, Meta(ge=1, le=24, description="Also by month, for so many.")] | None = (
        None
    )
    days: Annotated[int, Meta(ge=1, le=90, description="Also by day, for so many.")] | None = None
    by_key: Annotated[
        bool, Meta(description="Also by key, connected app and the server's pages.")
    ] = False


class UsageSoFar(msgspec.Struct, kw_only=True):
    """The account's searches."""

    notice: Notice
    period: Annotated[str, Meta(description="`YYYY-MM`, in UTC.")]
    requests: Requests
    monthly: MonthlyUsage | None = None
    daily: DailyUsage | None = None
    keys: Annotated[list[KeyUsage], Meta(description="The first that one answer holds.")] | None = (
        None
    )


async def _list_values(call: ToolCall) -> ToolAnswer:
    own = convert(_Facet, call.arguments, "arguments")
    if own.facet not in FACETS:
        msg = f"facet must be one of {', '.join(FACETS)}, got {quote(own.facet)}"
        raise invalid(("arguments", "facet"), msg, "enum")
    reply = await call.api.get(path_of("facets", own.facet))
    part = take_part(reply.data, lambda value: cut(value["name"], 100), start=own.start)
    data = {"notice": NOTICE, "values": part.entries, "next_start": part.next_start}
    return ToolAnswer(data, "\n".join([f"{own.facet}: {', '.join(part.lines)}", *part.more]))


async def _suggest(call: ToolCall) -> ToolAnswer:
    names = Suggest.__struct_fields__
    reply = await call.api.get(
        path_of("facets", "photographers", "suggest"), query_of(call.arguments, names)
    )
    part = fit_all(reply.data, _describe_photographer, most=_LIST_BYTES)
    data = {"notice": NOTICE, "photographers": part.entries}
    head = "Search with photographer=USERNAME." if part.lines else "Nobody of this name."
    return ToolAnswer(data, "\n".join([head, NOTICE, *part.lines]))


def _describe_photographer(_number: int, profile: Mapping[str, Any]) -> str:
    return (
        f"{cited(profile['username'])}: {cited(profile['full_name'])}, "
        f"{cut(profile['source'], 60)}, {count(profile['photos_count'], 'photo')}"
    )


async def _tell_usage(call: ToolCall) -> ToolAnswer:
    own = convert(_Windows, call.arguments, "arguments")
    current = (await call.api.get(path_of("usage"))).data
    data: dict[str, Any] = {"notice": NOTICE, **current}
    searches = current["requests"]
    lines = [
        f"{searches['used']} of {searches['limit']} searches used in {current['period']}, "
        f"{searches['remaining']} left."
    ]
    if own.months is not None:
        reply = await call.api.get(path_of("usage", "monthly"), [("months", str(own.months))])
        data["monthly"] = reply.data
        lines += [f"{one['month']}: {one['requests']}" for one in reply.data["records"]]
    if own.days is not None:
        reply = await call.api.get(path_of("usage", "daily"), [("days", str(own.days))])
        data["daily"] = reply.data
        lines += [f"{one['date']}: {one['requests']}" for one in reply.data["records"]]
    if own.by_key:
        reply = await call.api.get(path_of("usage", "by-key"))
        part = take_part(reply.data["keys"], _describe_key, most=_KEYS_BYTES)
        data["keys"] = part.entries
        lines += [NOTICE, *part.lines]
        if part.next_start is not None:
            lines.append(f"{len(reply.data['keys']) - len(part.entries)} more are not shown.")
    return ToolAnswer(data, "\n".join(lines))


def _describe_key(key: Mapping[str, Any]) -> str:
    return f"{cited(key['name'], 60)}: {key['requests_this_month']} this month"


_LIST_BYTES: Final = MOST_BYTES - 1_000
# Beside 24 months and 90 days.
_KEYS_BYTES: Final = 10_000
TOOLS: Final = (
    Tool(
        name="facets",
        title="List what filters accept",
        description="List the names that the filters of `search_photos` accept: colours, sources, "
        "orientations or licences. Counts no search.",
        scope=SEARCH,
        arguments=arguments_of(_Facet),
        answer=schema_of(Values),
        run=_list_values,
    ),
    Tool(
        name="suggest_photographers",
        title="Find photographers",
        description="Find photographers by a part of their name or username; neither case nor "
        "accents matter. Their username is what the filter `photographer` takes. Counts no search.",
        scope=SEARCH,
        arguments=arguments_of(Suggest),
        answer=schema_of(Photographers),
        run=_suggest,
    ),
    Tool(
        name="usage",
        title="Searches used",
        description="Tell how many searches the account has used and has left this month, and on "
        "request by month, by day, and by key, connected app and the server's pages. Counts no "
        "search.",
        scope=SEARCH,
        arguments=arguments_of(_Windows),
        answer=schema_of(UsageSoFar),
        run=_tell_usage,
    ),
)
