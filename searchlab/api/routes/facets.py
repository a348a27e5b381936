"""The values that the filters accept (4.4): colours, sources, orientations, licences and so on."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from litestar import Request, Response, get
from msgspec import Meta

from searchlab.api.http.caching import answer_cached
from searchlab.api.http.context import services_of
from searchlab.api.wire.errors import invalid
from searchlab.api.wire.operations import Operation
from searchlab.api.wire.parameters import read
from searchlab.api.wire.schema import Color, License, OrientationName, Photographer, Source
from searchlab.search.filters.photographers import (
    DEFAULT_SUGGESTIONS,
    MAX_PART_LENGTH,
    MAX_SUGGESTIONS,
    Photographers,
)
from searchlab.search.filters.photographers import Photographer as Profile

_FACETS = "/api/v1/facets"
_PHOTOGRAPHERS = f"{_FACETS}/photographers"
# Searching the names of so many takes at most 3 ms, short enough for the event loop.
_FEW_PHOTOGRAPHERS = 50_000


class Suggest(msgspec.Struct, frozen=True, kw_only=True):
    """GET /facets/photographers/suggest."""

    q: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_PART_LENGTH,
            description="Any part of a name or username.",
            examples=["ann", "soren"],
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=MAX_SUGGESTIONS, description="Most to return.")] = (
        DEFAULT_SUGGESTIONS
    )


@get(
    f"{_FACETS}/colors",
    opt=Operation(
        operation_id="listColors",
        summary="List the colour names",
        description="Each stands for a family of shades; `hex` is the most typical of them.",
        data=list[Color],
    ).opt,
)
async def list_colors(request: Request[Any, Any, Any]) -> Response[bytes]:
    """List the colour names."""
    return answer_cached(request, services_of(request).live_library.current.facets.colors)


@get(
    f"{_FACETS}/sources",
    opt=Operation(
        operation_id="listSources", summary="List the upstream libraries", data=list[Source]
    ).opt,
)
async def list_sources(request: Request[Any, Any, Any]) -> Response[bytes]:
    """List the upstream libraries."""
    return answer_cached(request, services_of(request).live_library.current.facets.sources)


@get(
    f"{_FACETS}/orientations",
    opt=Operation(
        operation_id="listOrientations",
        summary="List the orientations",
        data=list[OrientationName],
    ).opt,
)
async def list_orientations(request: Request[Any, Any, Any]) -> Response[bytes]:
    """List the orientations."""
    return answer_cached(request, services_of(request).live_library.current.facets.orientations)


@get(
    f"{_FACETS}/licenses",
    opt=Operation(
        operation_id="listLicenses",
        summary="List the licences",
        description="`free` is listed even if no photo has it.",
        data=list[License],
    ).opt,
)
async def list_licenses(request: Request[Any, Any, Any]) -> Response[bytes]:
    """List the licences."""
    return answer_cached(request, services_of(request).live_library.current.facets.licenses)


@get(
    f"{_PHOTOGRAPHERS}/suggest",
    opt=Operation(
        operation_id="suggestPhotographers",
        summary="Find photographers by a part of their name or username",
        description="Neither case nor accents matter, and no character is a wildcard. Exact "
        "matches come first, then names with a word that begins with `q`, then the others; within "
        "each group by most photos, then username, then source.",
        parameters=Suggest,
        data=list[Photographer],
    ).opt,
)
async def suggest_photographers(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Find photographers by a part of their name or username."""
    profiles = await suggest(request, read(Suggest, request))
    return answer_cached(request, msgspec.Raw(msgspec.json.encode(profiles)))


async def suggest(request: Request[Any, Any, Any], wanted: Suggest) -> list[Profile]:
    """Find photographers, off the event loop where there are many."""
    photographers = await photographers_of(request)
    if len(photographers) <= _FEW_PHOTOGRAPHERS:
        return photographers.suggest(wanted.q, wanted.limit)
    threads = services_of(request).search_threads
    return await threads.run(photographers.suggest, wanted.q, wanted.limit)


@get(
    f"{_PHOTOGRAPHERS}/{{username:path}}",
    opt=Operation(
        operation_id="getPhotographer",
        summary="List the profiles of a username",
        description="One for each upstream library, by most photos; none for an unknown username.",
        data=list[Photographer],
    ).opt,
)
async def get_photographer(request: Request[Any, Any, Any]) -> Response[bytes]:
    """List the profiles of a username."""
    profiles = (await photographers_of(request)).find(_read_username(request))
    return answer_cached(request, msgspec.Raw(msgspec.json.encode(profiles)))


async def photographers_of(request: Request[Any, Any, Any]) -> Photographers:
    """Return the photographers of the library that is served."""
    services = services_of(request)
    photographers = services.live_library.current.photographers
    if photographers.is_made:
        return photographers.get()
    return await services.search_threads.run(photographers.get)


def _read_username(request: Request[Any, Any, Any]) -> str:
    # From the raw path if there is one: the router drops slashes, which a username may contain.
    raw = (request.scope.get("raw_path") or b"").split(b"?", 1)[0]
    _, prefix, encoded = raw.partition(f"{_PHOTOGRAPHERS}/".encode())
    if not prefix:
        return str(request.path_params["username"]).removeprefix("/")
    try:
        return unquote(encoded.decode(), errors="strict")
    except UnicodeDecodeError:
        msg = "username must be UTF-8, got other bytes"
        raise invalid(("path", "username"), msg, "utf8") from None


ROUTES = [
    list_colors,
    list_sources,
    list_orientations,
    list_licenses,
    suggest_photographers,
    get_photographer,
]
