"""SearchState: everything that a search page shows follows from its address, and back.

The parameters are those of the API with the same checks, and what only pages offer besides. Each
state has one address: what is empty or the default is left out.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from litestar import Request
from msgspec import Meta

from searchlab.api.wire.parameters import query_pairs, read
from searchlab.api.wire.requests import ImageSearch, PerPage
from searchlab.config import Config
from searchlab.photos.colors import DEFAULT_TOLERANCE
from searchlab.search.cursors import MAX_PAGE
from searchlab.search.filters.palettes import PaletteColor
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.planner import bound_by_date
from searchlab.search.queries import DEFAULT_TEXT_ALPHA, Picture, Query

PHOTOS_A_PAGE: Final = 30
FORM_PART: Final = "form:"
"""How `part` begins where a form is sent without a script; the score at rest follows."""
_SNAPSHOT: Final = "^[0-9A-Za-z-]{1,64}$"


class SearchState(ImageSearch, frozen=True, kw_only=True):
    """The parameters of the page at `/`."""

    per_page: PerPage = PHOTOS_A_PAGE
    before_date: str | None = None
    palette: tuple[str, ...] = ()
    palette_share: Annotated[int, Meta(ge=1, le=100)] = 1
    picture: str | None = None
    page: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 1
    snapshot: Annotated[str, Meta(pattern=_SNAPSHOT)] | None = None
    part: str | None = None

    @property
    def filter(self) -> PhotoFilter:
        """The conditions on photos.

        Raises:
            InputError: One of them cannot hold.
        """
        return PhotoFilter(
            color_name=self.color_name,
            color_hex=self.color_hex,
            color_tolerance=self.color_tolerance,
            palette=self.palette,
            orientation=self.orientation,
            source=self.source,
            license_type=self.license_type,
            photographer=self.photographer,
            after_date=self.after_date,
            before_date=self.before_date,
        )

    @property
    def has_reference(self) -> bool:
        """Whether the search is by a picture."""
        return self.picture is not None or self.photo_id is not None

    @property
    def has_words(self) -> bool:
        """Whether the search is by words, alone or beside a picture."""
        return bool(self.q and self.q.strip())

    @property
    def is_search(self) -> bool:
        """Whether there is anything to search by; the page shows the newest photos if not."""
        return self.has_reference or self.has_words or not self.filter.is_empty

    @property
    def is_filtered(self) -> bool:
        """Whether there is any condition besides words and picture."""
        return not self.filter.is_empty or self.score_threshold is not None

    def query(self, *, image: Picture | None, limit: int | None) -> Query:
        """Return the query.

        Args:
            image: The picture behind `picture`.
            limit: Most results over all pages.

        Raises:
            InputError: Conditions exclude each other, or a value is out of range.
        """
        return Query(
            text=self.q,
            image=image,
            photo_id=self.photo_id,
            text_alpha=self.text_alpha,
            filter=self.filter,
            sort_by=self.sort_by,
            score_threshold=self.score_threshold,
            limit=limit,
        )

    def least_score(self, config: Config) -> float:
        """Return the score that a photo must have to be shown, 0 where all are.

        Args:
            config: How the library is searched; bounds words that are sorted by date.
        """
        if not (self.has_words or self.has_reference):
            return 0.0
        if not self.has_words or (self.has_reference and not self.text_alpha):
            return self.score_threshold or 0.0
        query = Query(text=self.q, sort_by=self.sort_by, score_threshold=self.score_threshold)
        return bound_by_date(query, config).score_threshold or 0.0

    # -- addresses ------------------------------------------------------------------------------

    def pairs(self) -> list[tuple[str, str]]:
        """Return the parameters that the address needs."""
        plain = msgspec.structs.replace(
            self,
            q=self.q if self.has_words else None,
            palette=self._palette(),
            palette_share=1,
            text_alpha=self.text_alpha if self._mixes else DEFAULT_TEXT_ALPHA,
            color_tolerance=self.color_tolerance if self._has_color else DEFAULT_TOLERANCE,
            score_threshold=self.score_threshold if self._has_threshold else None,
            snapshot=self.snapshot if self.page > 1 else None,
            part=None if self._resting_score is not None else self.part,
            cursor=None,
            fields=None,
        )
        pairs: list[tuple[str, str]] = []
        for name, default in _DEFAULTS.items():
            value = getattr(plain, name)
            if value == default:
                continue
            if isinstance(value, tuple):
                pairs += [(name, text) for text in value]
            else:
                pairs.append((name, value if isinstance(value, str) else _text(value)))
        return pairs

    @property
    def address(self) -> str:
        """Path and query of this state."""
        return f"/?{urlencode(pairs)}" if (pairs := self.pairs()) else "/"

    def moved(self, **changes: Any) -> SearchState:
        """Return another state, on its first page unless `page` is among the changes."""
        return msgspec.structs.replace(
            self, **{"page": 1, "snapshot": None, "part": None} | changes
        )

    def without(self, name: str, value: str | None = None) -> SearchState:
        """Return the state without a condition, or without one value of a list."""
        if value is None:
            return self.moved(**{name: _DEFAULTS[name]})
        return self.moved(**{name: tuple(text for text in getattr(self, name) if text != value)})

    def cleared(self) -> SearchState:
        """Return the search by the same words and picture without any condition."""
        by = {name: getattr(self, name) for name in ("q", "picture", "photo_id", "text_alpha")}
        return SearchState(**by)

    @property
    def _mixes(self) -> bool:
        return self.has_words and self.has_reference

    @property
    def _has_threshold(self) -> bool:
        if self.score_threshold is None or self.score_threshold == self._resting_score:
            return False
        # By date 0 shows all, where without a threshold only what is relevant is shown.
        return self.score_threshold != 0 or (self.has_words and self.sort_by == "newest")

    @property
    def _resting_score(self) -> float | None:
        """The least score of a form that sends what nobody has chosen; None of other addresses."""
        if self.part is None or not self.part.startswith(FORM_PART):
            return None
        with suppress(ValueError):
            return float(self.part.removeprefix(FORM_PART))
        return None

    @property
    def _has_color(self) -> bool:
        return bool(self.color_name or self.color_hex or self.palette)

    def _palette(self) -> tuple[str, ...]:
        # The form has one share for all colours; an address names it for each.
        if self.palette_share == 1:
            return self.palette
        return tuple(
            text if ":" in text else str(PaletteColor(text, self.palette_share))
            for text in self.palette
        )


_DEFAULTS: Final[dict[str, Any]] = {
    field.name: field.default
    for field in msgspec.structs.fields(SearchState)
    if field.name not in ("cursor", "fields")
}


def read_state(request: Request[Any, Any, Any]) -> tuple[SearchState, bool]:
    """Read the state of a page; empty values, which forms send, are as good as none.

    Returns:
        The state, and whether it came by the address that `SearchState.address` gives.

    Raises:
        Invalid: Values cannot be converted, or are out of range; lists all of them.
    """
    came = [(name, value) for name, value in query_pairs(request) if name in _DEFAULTS]
    filled = [(name, value) for name, value in came if value.strip()]
    request.scope["query_string"] = urlencode(filled).encode()
    state = read(SearchState, request)
    return state, sorted(came) == sorted(state.pairs())


def _text(value: Any) -> str:
    # Decimals as people write them, unless that would be another number.
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if float(short) == value else repr(value)
