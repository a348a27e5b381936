"""Filters: the values that the search page offers, and suggestions of photographers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from litestar import Request, Response, get
from litestar.enums import MediaType

from searchlab.api.routes.facets import Suggest, photographers_of, suggest
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.web.templates import page_headers
from searchlab.api.web.visitor import sign_in_first, visitor_of
from searchlab.api.wire.parameters import read
from searchlab.photos.colors import FAMILIES
from searchlab.photos.licenses import license_label
from searchlab.photos.photo import ORIENTATIONS
from searchlab.search.filters.photo_filter import facet_counts
from searchlab.search.filters.photographers import (
    MAX_PART_LENGTH,
    MAX_SUGGESTIONS,
    Photographer,
)


class Choice(NamedTuple):
    """A value of a filter.

    Attributes:
        value: As in the address.
        label: As people read it.
        n_photos: Photos of the library that have it; None where it is not counted.
        shade: `#rrggbb` of a colour; empty for others.
    """

    value: str
    label: str
    n_photos: int | None = None
    shade: str = ""


def list_choices(snapshot: ServedSnapshot) -> dict[str, list[Choice]]:
    """List what each filter of the search page offers."""
    facets = snapshot.engine.facets
    return {
        "color": [Choice(name, name.capitalize(), None, FAMILIES[name]) for name in FAMILIES],
        "orientation": [Choice(name, name.capitalize()) for name in ORIENTATIONS],
        "source": [Choice(name, name, n) for name, n in facet_counts(facets, "source").items()],
        "license_type": [
            Choice(name, license_label(name), n)
            for name, n in facet_counts(facets, "license_type").items()
            if n
        ],
    }


async def list_meant(request: Request[Any, Any, Any], text: str) -> list[Choice]:
    """List whom a text in the field for photographers may mean, each username once.

    It is empty if the text is a username itself, or if nobody is called like that.
    """
    if (await photographers_of(request)).find(text) or len(text) > MAX_PART_LENGTH:
        return []
    return _by_username(await suggest(request, Suggest(q=text, limit=MAX_SUGGESTIONS)))


def _by_username(profiles: Sequence[Photographer]) -> list[Choice]:
    # The filter takes a username, which somebody may have at several libraries.
    people: dict[str, Choice] = {}
    for profile in profiles:
        username, before = profile.username, people.get(profile.username)
        n_photos = profile.photos_count + ((before and before.n_photos) or 0)
        label = before.label if before else profile.full_name or username
        people[username] = Choice(username, label, n_photos)
    return list(people.values())


@get("/photographers")
async def suggest_photographers(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Suggest photographers for the field of the search page, as JSON."""
    if visitor_of(request) is None:
        raise sign_in_first(what="suggestions are")
    people = _by_username(await suggest(request, read(Suggest, request)))
    content = msgspec.json.encode([(one.value, one.label, one.n_photos) for one in people])
    return Response(content, media_type=MediaType.JSON, headers=page_headers())


ROUTES = [suggest_photographers]
