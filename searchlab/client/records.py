"""What the API answers: the specification's records, field names letter for letter."""

from __future__ import annotations

import datetime
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")

# What a selection by `fields` left out is `msgspec.UNSET`, which is false and is not encoded; the
# type says what the field is where it came.
_LEFT_OUT: Any = msgspec.UNSET


class AnswerMeta(msgspec.Struct, frozen=True, kw_only=True):
    """About one answer: `request_id` finds it in the server's log; `took_ms` in milliseconds."""

    request_id: str
    took_ms: float


class Pagination(msgspec.Struct, frozen=True, kw_only=True):
    """Where a page stands: `next_cursor` is None exactly where `has_more` is false."""

    per_page: int
    has_more: bool
    next_cursor: str | None


class Envelope(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What every successful answer is wrapped in."""

    success: bool
    data: T
    meta: AnswerMeta
    error: Any = None
    pagination: Pagination | None = None


class Urls(msgspec.Struct, frozen=True, kw_only=True):
    """Five links to one picture by size."""

    thumb: str
    small: str
    regular: str
    large: str
    full: str


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """A credit line ready to display, as markup and as text."""

    html: str
    plain: str


class Photo(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One photo; fields that the request did not ask for are `msgspec.UNSET`.

    `width` and `height` are pixels, `relevance_score` is 0 to 1, `color_hex` is `#` and six digits.
    """

    photo_id: str = _LEFT_OUT
    source_photo_id: str = _LEFT_OUT
    image_url: str = _LEFT_OUT
    urls: Urls = _LEFT_OUT
    source_image_url: str = _LEFT_OUT
    width: int = _LEFT_OUT
    height: int = _LEFT_OUT
    orientation: str = _LEFT_OUT
    blur_hash: str = _LEFT_OUT
    color_name: str = _LEFT_OUT
    color_hex: str = _LEFT_OUT
    source: str = _LEFT_OUT
    license_type: str = _LEFT_OUT
    photographer_username: str = _LEFT_OUT
    photographer_full_name: str = _LEFT_OUT
    photographer_url: str = _LEFT_OUT
    source_description: str = _LEFT_OUT
    description: str = _LEFT_OUT
    alt_description: str = _LEFT_OUT
    relevance_score: float = _LEFT_OUT
    uploaded_on: datetime.date = _LEFT_OUT
    attribution: Attribution = _LEFT_OUT

    def _repr_html_(self) -> str:
        from searchlab.client.grids import grid_html

        return grid_html([self])


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of photos; `cover_photo_id` is empty while there are none."""

    id: int
    name: str
    description: str | None
    is_public: bool
    cover_photo_id: str
    created_at: datetime.datetime
    updated_at: datetime.datetime
    photos_count: int


class CollectionPhoto(msgspec.Struct, frozen=True, kw_only=True):
    """A saved entry of a collection; `id` is the entry's own."""

    id: int
    photo_id: str
    photo_thumbnail_url: str
    photo_source: str
    photo_photographer: str
    added_at: datetime.datetime


class CollectionWithPhotos(Collection, frozen=True, kw_only=True):
    """A collection as its own page shows it."""

    photos: list[CollectionPhoto]


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """That something is gone."""

    deleted: bool


class Color(msgspec.Struct, frozen=True, kw_only=True):
    """A colour family; `hex` is six digits without `#`."""

    name: str
    hex: str


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream library."""

    name: str
    license_url: str


class OrientationName(msgspec.Struct, frozen=True, kw_only=True):
    """`landscape`, `portrait` or `square`."""

    name: str


class License(msgspec.Struct, frozen=True, kw_only=True):
    """A licence that photos come under."""

    name: str


class Photographer(msgspec.Struct, frozen=True, kw_only=True):
    """A profile at one upstream library."""

    username: str
    full_name: str
    source: str
    url: str
    photos_count: int


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of the account in this month."""

    used: int
    limit: int
    remaining: int


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The current month; `period` is `YYYY-MM`."""

    period: str
    requests: Requests


class MonthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One month, `YYYY-MM`."""

    month: str
    requests: int


class MonthlyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Months, the most recent first."""

    period_months: int
    records: list[MonthRecord]


class DayRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One day."""

    date: datetime.date
    requests: int


class DailyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Days, the oldest first."""

    period_days: int
    records: list[DayRecord]


class KeyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One key of the account; `last_used_at` is None until its first request."""

    key_id: str
    name: str
    created_at: datetime.datetime
    last_used_at: datetime.datetime | None
    requests_this_month: int
    requests_today: int


class UsageByKey(msgspec.Struct, frozen=True, kw_only=True):
    """Every key of the account."""

    keys: list[KeyUsage]


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that failed validation, and where: `("query", "per_page")`."""

    loc: tuple[str | int, ...]
    msg: str
    type: str
