"""The page at `/`: searches for what its address says, or shows the newest photos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from litestar import Request, Response, get, post
from PIL import Image

from searchlab.api import searches
from searchlab.api.http.context import services_of
from searchlab.api.http.uploads import read_picture
from searchlab.api.searches import FirstPage, RankedPage
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.web.conditions import list_conditions
from searchlab.api.web.emptiness import find_ways_out
from searchlab.api.web.filters import Choice, list_choices, list_meant
from searchlab.api.web.grid import blur_address, make_cards
from searchlab.api.web.search_state import PHOTOS_A_PAGE, SearchState, read_state
from searchlab.api.web.templates import redirect, respond, root_of
from searchlab.api.web.visitor import sign_in_first, visitor_of
from searchlab.errors import ExpiredCursorError
from searchlab.models.protocol import Embeddings
from searchlab.photos.colors import DEFAULT_TOLERANCE, FAMILY_NAMES
from searchlab.search.filters.palettes import PaletteColor
from searchlab.search.queries import DEFAULT_TEXT_ALPHA
from searchlab.search.searched_pictures import SearchedPicture

AnyRequest = Request[Any, Any, Any]

_SHARES = {
    1: "a spot of it",
    **{percent: f"{percent} % of it" for percent in (5, 10, 20, 30)},
    50: "half of it",
}
"""Least percents of a colour that the form offers, in words."""
_GRID_PART = "grid"
"""Value of `part` in the address of further photos, which are sent without the page around."""


@get("/")
async def show_search(request: AnyRequest) -> Response[bytes]:
    """Show what the address asks for: the search page, or how to get in."""
    if visitor_of(request) is None:
        return respond(request, "welcome.html")
    state, is_canonical = read_state(request)
    if not is_canonical:
        return redirect(request, state.address)
    if not state.is_search:
        return _show_newest(request, state)
    if state.photographer and state.part is None:
        meant = await list_meant(request, state.photographer)
        if len(meant) == 1:
            return redirect(request, state.moved(photographer=meant[0].value).address)
        if meant:
            return _ask_whom(request, state, meant)
    return await _show_results(request, state)


def _show_newest(request: AnyRequest, state: SearchState) -> Response[bytes]:
    snapshot = services_of(request).live_library.current
    rows = snapshot.engine.facets.newest(None, PHOTOS_A_PAGE).tolist()
    if snapshot.live is not None:
        rows = [row for row in rows if snapshot.live[row]]
    return respond(
        request,
        "newest.html",
        cards=make_cards(snapshot, rows, root=root_of(request)),
        n_photos=len(snapshot.engine.table),
        **_around(snapshot, state),
    )


def _ask_whom(request: AnyRequest, state: SearchState, meant: Sequence[Choice]) -> Response[bytes]:
    """Show whom a part of a name may mean, which is no search and does not count."""
    ways = [(choice, state.moved(photographer=choice.value).address) for choice in meant]
    snapshot = services_of(request).live_library.current
    return respond(request, "photographers.html", ways=ways, **_around(snapshot, state))


def _around(snapshot: ServedSnapshot, state: SearchState) -> dict[str, Any]:
    """Return what the form and the filters show."""
    config, colors = snapshot.engine.config, state.filter.palette_colors
    share = min((color.percent for color in colors if color.percent in _SHARES), default=1)
    # The form has a box for each family, with one share for all; other conditions stay beside it.
    boxed = {color.color for color in colors if color == PaletteColor(color.color, share)}
    boxed &= set(FAMILY_NAMES)
    return {
        "state": state,
        "default_alpha": DEFAULT_TEXT_ALPHA,
        "default_tolerance": DEFAULT_TOLERANCE,
        "choices": list_choices(snapshot),
        "palette_names": boxed,
        "palette_share": share,
        "shares": _SHARES,
        "palette_beside": [
            f"{color.color}:{color.percent}" for color in colors if color.color not in boxed
        ],
        "cleared": state.cleared().address,
        "conditions": list_conditions(state, config),
        "remote_pictures": snapshot.facets.has_remote_pictures.get(),
        "least_score": state.score_threshold or state.least_score(config),
        "resting_score": round(state.without("score_threshold").least_score(config), 2),
        "reference": None,
        "upload": state.moved(picture=None, photo_id=None).address.replace("/", "/picture", 1),
    }


async def _show_results(request: AnyRequest, state: SearchState) -> Response[bytes]:
    services, root = services_of(request), root_of(request)
    snapshot = services.live_library.current
    try:
        if state.snapshot is not None:
            snapshot = await services.live_library.at(state.snapshot)
    except ExpiredCursorError:
        return respond(request, "expired.html", status=410, again=state.moved().address)
    reference = _read_reference(request, state, snapshot)
    image = None if reference.vector is None else Image.new("RGB", (1, 1))
    limit = state.limit
    if state.photo_id is not None:
        limit = searches.cap_similar(request, limit, state.per_page)
    first = FirstPage(
        query=state.query(image=image, limit=limit),
        per_page=state.per_page,
        page=state.page,
        snapshot=snapshot,
        reference=reference.vector,
    )
    ranked = await searches.rank(request, first, "page")
    await searches.count(request, ranked)
    return await _respond(request, state, ranked, reference, root)


async def _respond(
    request: AnyRequest, state: SearchState, ranked: RankedPage, reference: _Reference, root: str
) -> Response[bytes]:
    snapshot, part = ranked
    scores = None if part.plan.mode == "browse" else part.scores.tolist()
    following = previous = None
    if part.start + state.per_page <= part.total:
        following = state.moved(page=state.page + 1, snapshot=snapshot.engine.snapshot_id)
    if state.page > 1:
        previous = state.moved(page=state.page - 1, snapshot=state.snapshot)
    values: dict[str, Any] = {
        "cards": make_cards(snapshot, part.rows.tolist(), root=root, scores=scores),
        "part": part,
        "shown": min(part.start - 1 + state.per_page, part.total),
        "following": following,
        "previous": previous,
        "next_grid": following and msgspec.structs.replace(following, part=_GRID_PART).address,
        "explained": part.plan.explain().split("\n"),
    }
    if state.part == _GRID_PART:
        return respond(request, "more_photos.html", **values)
    values |= _around(snapshot, state)
    values["reference"] = reference.shown
    values["ways_out"] = []
    if not part.total:
        values["ways_out"] = await find_ways_out(
            request, snapshot, state, part.query, reference.vector
        )
    return respond(request, "search.html", **values)


# -- the picture that is searched by ----------------------------------------------------------


class _Shown(NamedTuple):
    """How the picture of a search is shown: its address, text, and the page it leads to."""

    src: str
    alt: str
    address: str = ""


class _Reference(NamedTuple):
    """The picture of a search: its embedding if it was uploaded, and how it is shown."""

    vector: Embeddings | None = None
    shown: _Shown | None = None


def _read_reference(
    request: AnyRequest, state: SearchState, snapshot: ServedSnapshot
) -> _Reference:
    if state.picture is not None:
        library = services_of(request).live_library.library
        picture = SearchedPicture.unseal(state.picture, library.key)
        picture.check_model(snapshot.engine.config.model_id)
        shown = _Shown(blur_address(picture.blur_hash), "The picture that you chose, blurred")
        return _Reference(picture.vector, shown)
    if state.photo_id is not None:
        (card,) = make_cards(snapshot, [snapshot.row_of(state.photo_id)], root=root_of(request))
        shown = _Shown(card.src, card.alt, f"/photos/{state.photo_id}")
        return _Reference(None, shown)
    return _Reference()


@post("/picture", status_code=303)
async def take_picture(request: AnyRequest) -> Response[bytes]:
    """Embed a picture, and lead to the search by it; the picture itself is stored nowhere."""
    visitor = visitor_of(request)
    if visitor is None:
        raise sign_in_first(what="a search by picture is")
    state, _ = read_state(request)
    with services_of(request).slots.bodies.holding(visitor.account_id) as take:
        content = await read_picture(request, services_of(request).settings, take)
        if content is None:
            return redirect(request, state.address)
        picture = await searches.embed_picture(services_of(request), visitor.caller, content)
    token = picture.seal(services_of(request).live_library.library.key)
    return redirect(request, state.moved(picture=token, photo_id=None).address)


ROUTES = [show_search, take_picture]
