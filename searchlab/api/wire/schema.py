"""The records of the specification: the server answers with them, the client reads them.

The reference describes these Structs. Many answers are joined from bytes that were encoded before;
tests compare those answers with these Structs. This module imports little, since clients load it.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from searchlab.photos.photo import ORIENTATIONS

MAX_NAME = 255
MAX_DESCRIPTION = 1000
"""Most characters of a collection's name and description."""
MAX_PHOTO_TEXT = 255
"""Most characters of a saved photo's source and photographer."""
MAX_ADDRESS = 2000
"""Most characters of the link to its thumbnail."""

# The same names as in `photos.colors`, as a test checks; importing that would load NumPy.
# fmt: off
COLOR_NAMES: Final = (
    "black", "white", "gray", "beige", "brown", "red", "orange", "yellow", "green", "teal", "blue",
    "purple", "pink",
)
# fmt: on


def _describe(description: str = "", *, example: Any = None, **schema: Any) -> Meta:
    """Describe a value in the reference; no range is checked, so clients accept any value."""
    return Meta(
        description=description or None,
        examples=None if example is None else [example],
        extra_json_schema=schema or None,
    )


PhotoId = Annotated[
    str,
    _describe(
        "Identifier of a photo in this service.",
        example="0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a",
        format="uuid",
    ),
]
Address = Annotated[
    str,
    _describe(
        example="https://photos.example.org/media/0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a/regular",
        format="uri",
    ),
]
Instant = Annotated[
    datetime.datetime,
    _describe("ISO 8601 with the offset from UTC.", example="2026-11-21T14:22:24.120000+00:00"),
]
Day = Annotated[datetime.date, _describe("`YYYY-MM-DD`.", example="2026-11-21")]
Month = Annotated[
    str,
    _describe("`YYYY-MM`, in UTC.", example="2026-11", pattern=r"^\d{4}-\d{2}$"),
]
Count = Annotated[int, _describe(example=12, minimum=0)]
Side = Annotated[int, _describe("Pixels.", example=1920, minimum=1)]
Orientation = Annotated[str, _describe(enum=list(ORIENTATIONS))]
ColorName = Annotated[str, _describe(example="teal", enum=list(COLOR_NAMES))]


class Urls(msgspec.Struct, frozen=True, kw_only=True):
    """Links to the picture, by size."""

    thumb: Address
    small: Address
    regular: Address
    large: Address
    full: Address


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The credit of a photo, ready to display."""

    html: Annotated[
        str,
        _describe(
            "Markup: links and escaped text.",
            example='Photo by <a href="https://example.org/annlee" rel="noopener">Ann Lee</a> '
            "(cc0)",
        ),
    ]
    plain: Annotated[str, _describe(example="Photo by Ann Lee (cc0)")]


# A field that the selection by `fields` left out is `msgspec.UNSET`, which is false and is not
# encoded; the annotation is the type of a field that came.
_LEFT_OUT: Any = msgspec.UNSET


class Photo(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A photo; with the parameter `fields` only the requested fields."""

    photo_id: PhotoId = _LEFT_OUT
    source_photo_id: Annotated[
        str, _describe("Identifier in the upstream library.", example="Dwu85P9SOIk")
    ] = _LEFT_OUT
    image_url: Address = _LEFT_OUT
    urls: Urls = _LEFT_OUT
    source_image_url: Annotated[
        str,
        _describe(
            "Page of the photo at the upstream library; empty where unknown.",
            example="https://example.org/photos/Dwu85P9SOIk",
        ),
    ] = _LEFT_OUT
    width: Side = _LEFT_OUT
    height: Annotated[Side, _describe(example=1280)] = _LEFT_OUT
    orientation: Orientation = _LEFT_OUT
    blur_hash: Annotated[
        str, _describe("Compact placeholder.", example="LEHV6nWB2yk8pyo0adR*.7kCMdnj")
    ] = _LEFT_OUT
    color_name: ColorName = _LEFT_OUT
    color_hex: Annotated[
        str,
        _describe("Dominant colour.", example="#1f6f8b", pattern="^#[0-9a-fA-F]{6}$"),
    ] = _LEFT_OUT
    source: Annotated[str, _describe("A name from the sources facet.", example="unsplash")] = (
        _LEFT_OUT
    )
    license_type: Annotated[str, _describe("A name from the licences facet.", example="cc0")] = (
        _LEFT_OUT
    )
    photographer_username: Annotated[str, _describe("Empty where unknown.", example="annlee")] = (
        _LEFT_OUT
    )
    photographer_full_name: Annotated[str, _describe("Empty where unknown.", example="Ann Lee")] = (
        _LEFT_OUT
    )
    photographer_url: Annotated[
        str, _describe("Empty where unknown.", example="https://example.org/annlee")
    ] = _LEFT_OUT
    source_description: Annotated[
        str,
        _describe(
            "Caption by the upstream library or photographer.",
            example="Morning at the lake",
        ),
    ] = _LEFT_OUT
    description: Annotated[
        str,
        _describe(
            "Generated, in English.",
            example="A teal landscape photo of a lake between mountains.",
        ),
    ] = _LEFT_OUT
    alt_description: Annotated[
        str, _describe("Short accessibility text.", example="a lake between mountains")
    ] = _LEFT_OUT
    relevance_score: Annotated[
        float,
        _describe(
            example=0.8731,
            description="Higher is closer to the query; 1 where there is none.",
            minimum=0,
            maximum=1,
        ),
    ] = _LEFT_OUT
    uploaded_on: Day = _LEFT_OUT
    attribution: Attribution = _LEFT_OUT


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of photos."""

    id: Annotated[int, _describe(example=7)]
    name: Annotated[str, _describe(example="Autumn", minLength=1, maxLength=MAX_NAME)]
    description: (
        Annotated[str, _describe(example="Leaves and fog", maxLength=MAX_DESCRIPTION)] | None
    )
    is_public: Annotated[bool, _describe("Whether other accounts may read it.")]
    cover_photo_id: Annotated[
        str,
        _describe(
            "Empty while the collection has no photo.",
            example="0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a",
        ),
    ]
    created_at: Instant
    updated_at: Instant
    photos_count: Annotated[Count, _describe(example=1)]


class CollectionPhoto(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a collection."""

    id: Annotated[int, _describe("Identifier of the entry.", example=31)]
    photo_id: PhotoId
    photo_thumbnail_url: Annotated[
        str, _describe("As it was sent; the photo's `thumb` if none was sent.")
    ]
    photo_source: Annotated[str, _describe(example="unsplash")]
    photo_photographer: Annotated[str, _describe("Name for display.", example="Ann Lee")]
    added_at: Instant


class CollectionWithPhotos(Collection, frozen=True, kw_only=True):
    """A collection with its photos."""

    photos: list[CollectionPhoto]


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a deletion."""

    deleted: Annotated[bool, _describe(const=True)]


class Color(msgspec.Struct, frozen=True, kw_only=True):
    """A family of colours."""

    name: ColorName
    hex: Annotated[str, _describe(example="029386", pattern="^[0-9a-fA-F]{6}$")]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream library."""

    name: Annotated[str, _describe(example="unsplash")]
    license_url: Annotated[
        str,
        _describe(
            "Page of its terms; where its photos have several licences, the licence that most of "
            "them have.",
            example="https://unsplash.com/license",
            format="uri",
        ),
    ]


class OrientationName(msgspec.Struct, frozen=True, kw_only=True):
    """An orientation of photos."""

    name: Orientation


class License(msgspec.Struct, frozen=True, kw_only=True):
    """A licence of photos."""

    name: Annotated[str, _describe(example="free")]


class Photographer(msgspec.Struct, frozen=True, kw_only=True):
    """A profile of a photographer at one upstream library."""

    username: Annotated[str, _describe(example="annlee")]
    full_name: Annotated[str, _describe(example="Ann Lee")]
    source: Annotated[str, _describe(example="unsplash")]
    url: Annotated[str, _describe("Empty where unknown.", example="https://example.org/annlee")]
    photos_count: Annotated[int, _describe(example=12, minimum=1)]


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """Searches of a month."""

    used: Count
    limit: Annotated[Count, _describe(example=5000)]
    remaining: Annotated[Count, _describe(example=4988)]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The current month."""

    period: Month
    requests: Requests


class MonthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Searches of one month."""

    month: Month
    requests: Count


class MonthlyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Months, the most recent first."""

    period_months: Annotated[int, _describe(example=12, minimum=1, maximum=24)]
    records: list[MonthRecord]


class DayRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Searches of one day."""

    date: Day
    requests: Count


class DailyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Days, the oldest first."""

    period_days: Annotated[int, _describe(example=30, minimum=1, maximum=90)]
    records: list[DayRecord]


class KeyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Searches by one key."""

    key_id: Annotated[str, _describe(example="key_3f2a91c0d4b7")]
    name: Annotated[str, _describe(example="website")]
    created_at: Instant
    last_used_at: Annotated[
        Instant | None, _describe("Null until the key is used, and always for `pages`.")
    ]
    requests_this_month: Count
    requests_today: Count


class UsageByKey(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the account."""

    keys: list[KeyUsage]


class AnswerMeta(msgspec.Struct, frozen=True, kw_only=True):
    """About one answer."""

    request_id: Annotated[
        str,
        _describe(
            "Also in the header `X-Request-Id`, but where an answer is sent again, and in the "
            "server's log.",
            example="0b6c8a52-3f1d-4f6e-9c0a-7d2e5b8f4a13",
            format="uuid",
        ),
    ]
    took_ms: Annotated[float, _describe("Milliseconds.", example=1.4, minimum=0)]


class Pagination(msgspec.Struct, frozen=True):
    """How to get the next page."""

    per_page: Annotated[
        int,
        _describe("Page size in effect.", example=20, minimum=1, maximum=100),
    ]
    has_more: Annotated[bool, _describe("Whether at least one more page exists.", example=True)]
    next_cursor: Annotated[
        str | None,
        _describe("Opaque; null exactly when `has_more` is false.", example="eyJwIjoyMH0"),
    ]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong."""

    code: Annotated[str, _describe("A code of /docs/errors.")]
    message: Annotated[str, _describe("What must hold, what came and what to do.")]
    details: Annotated[dict[str, Any], _describe("Further values for programs; often empty.")]


class Detail(msgspec.Struct, frozen=True):
    """One failed validation."""

    loc: Annotated[
        tuple[str | int, ...],
        _describe("Place of the value in the request.", example=["query", "per_page"]),
    ]
    msg: Annotated[str, _describe("What must hold and what came.")]
    type: Annotated[str, _describe("A word for programs.", example="out_of_range")]


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The body of 422."""

    detail: Annotated[list[Detail], _describe(minItems=1)]
