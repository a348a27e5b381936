"""The records of the specification: the server answers with them, the client reads them.

The reference describes these Structs. Many answers are put together of bytes that are encoded
already; tests hold them against these. Ranges and patterns are told to the reader of the reference
alone: a client takes what comes. It imports little, since clients load it.
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

# Those of `photos.colors`, as a test holds; importing them from there would load NumPy.
COLOR_NAMES: Final = (
    "black",
    "white",
    "gray",
    "beige",
    "brown",
    "red",
    "orange",
    "yellow",
    "green",
    "teal",
    "blue",
    "purple",
    "pink",
)

PhotoId = Annotated[
    str,
    Meta(
        description="Identifier of a photo in this service.",
        examples=["0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a"],
        extra_json_schema={"format": "uuid"},
    ),
]
Address = Annotated[
    str,
    Meta(
        examples=["https://photos.example.org/media/0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a/regular"],
        extra_json_schema={"format": "uri"},
    ),
]
Instant = Annotated[
    datetime.datetime,
    Meta(
        description="ISO 8601 with the offset from UTC.",
        examples=["2026-11-21T14:22:24.120000+00:00"],
    ),
]
Day = Annotated[datetime.date, Meta(description="`YYYY-MM-DD`.", examples=["2026-11-21"])]
Month = Annotated[
    str,
    Meta(
        description="`YYYY-MM`, in UTC.",
        examples=["2026-11"],
        extra_json_schema={"pattern": r"^\d{4}-\d{2}$"},
    ),
]
Count = Annotated[int, Meta(examples=[12], extra_json_schema={"minimum": 0})]
Side = Annotated[
    int, Meta(description="Pixels.", examples=[1920], extra_json_schema={"minimum": 1})
]
Orientation = Annotated[str, Meta(extra_json_schema={"enum": list(ORIENTATIONS)})]
ColorName = Annotated[str, Meta(examples=["teal"], extra_json_schema={"enum": list(COLOR_NAMES)})]


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
        Meta(
            description="Markup: links and escaped text.",
            examples=[
                'Photo by <a href="https://example.org/annlee" rel="noopener">Ann Lee</a> (cc0)'
            ],
        ),
    ]
    plain: Annotated[str, Meta(examples=["Photo by Ann Lee (cc0)"])]


# What a selection by `fields` left out is `msgspec.UNSET`, which is false and is not encoded; the
# type says what the field is where it came.
_LEFT_OUT: Any = msgspec.UNSET


class Photo(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A photo; with `fields` just the fields that were asked for."""

    photo_id: PhotoId = _LEFT_OUT
    source_photo_id: Annotated[
        str, Meta(description="Identifier in the upstream library.", examples=["Dwu85P9SOIk"])
    ] = _LEFT_OUT
    image_url: Address = _LEFT_OUT
    urls: Urls = _LEFT_OUT
    source_image_url: Annotated[
        str,
        Meta(
            description="Page of the photo at the upstream library; empty where unknown.",
            examples=["https://example.org/photos/Dwu85P9SOIk"],
        ),
    ] = _LEFT_OUT
    width: Side = _LEFT_OUT
    height: Annotated[Side, Meta(examples=[1280])] = _LEFT_OUT
    orientation: Orientation = _LEFT_OUT
    blur_hash: Annotated[
        str, Meta(description="Compact placeholder.", examples=["LEHV6nWB2yk8pyo0adR*.7kCMdnj"])
    ] = _LEFT_OUT
    color_name: ColorName = _LEFT_OUT
    color_hex: Annotated[
        str,
        Meta(
            description="Dominant colour.",
            examples=["#1f6f8b"],
            extra_json_schema={"pattern": "^#[0-9a-fA-F]{6}$"},
        ),
    ] = _LEFT_OUT
    source: Annotated[
        str, Meta(description="A name from the sources facet.", examples=["unsplash"])
    ] = _LEFT_OUT
    license_type: Annotated[
        str, Meta(description="A name from the licences facet.", examples=["cc0"])
    ] = _LEFT_OUT
    photographer_username: Annotated[
        str, Meta(description="Empty where unknown.", examples=["annlee"])
    ] = _LEFT_OUT
    photographer_full_name: Annotated[
        str, Meta(description="Empty where unknown.", examples=["Ann Lee"])
    ] = _LEFT_OUT
    photographer_url: Annotated[
        str, Meta(description="Empty where unknown.", examples=["https://example.org/annlee"])
    ] = _LEFT_OUT
    source_description: Annotated[
        str,
        Meta(
            description="Caption by the upstream library or photographer.",
            examples=["Morning at the lake"],
        ),
    ] = _LEFT_OUT
    description: Annotated[
        str,
        Meta(
            description="Generated, in English.",
            examples=["A teal landscape photo of a lake between mountains."],
        ),
    ] = _LEFT_OUT
    alt_description: Annotated[
        str, Meta(description="Short accessibility text.", examples=["a lake between mountains"])
    ] = _LEFT_OUT
    relevance_score: Annotated[
        float,
        Meta(
            examples=[0.8731],
            description="Higher is closer to the query; 1 where there is none.",
            extra_json_schema={"minimum": 0, "maximum": 1},
        ),
    ] = _LEFT_OUT
    uploaded_on: Day = _LEFT_OUT
    attribution: Attribution = _LEFT_OUT


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of photos."""

    id: Annotated[int, Meta(examples=[7])]
    name: Annotated[
        str, Meta(examples=["Autumn"], extra_json_schema={"minLength": 1, "maxLength": MAX_NAME})
    ]
    description: (
        Annotated[
            str, Meta(examples=["Leaves and fog"], extra_json_schema={"maxLength": MAX_DESCRIPTION})
        ]
        | None
    )
    is_public: Annotated[bool, Meta(description="Whether other accounts may read it.")]
    cover_photo_id: Annotated[
        str,
        Meta(
            description="Empty while the collection has no photo.",
            examples=["0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a"],
        ),
    ]
    created_at: Instant
    updated_at: Instant
    photos_count: Annotated[Count, Meta(examples=[1])]


class CollectionPhoto(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a collection."""

    id: Annotated[int, Meta(description="Identifier of the entry.", examples=[31])]
    photo_id: PhotoId
    photo_thumbnail_url: Annotated[
        str, Meta(description="As it was sent; the photo's `thumb` where nothing was.")
    ]
    photo_source: Annotated[str, Meta(examples=["unsplash"])]
    photo_photographer: Annotated[str, Meta(description="Name for display.", examples=["Ann Lee"])]
    added_at: Instant


class CollectionWithPhotos(Collection, frozen=True, kw_only=True):
    """A collection with its photos."""

    photos: list[CollectionPhoto]


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """What deleting answers."""

    deleted: Annotated[bool, Meta(extra_json_schema={"const": True})]


class Color(msgspec.Struct, frozen=True, kw_only=True):
    """A family of colours."""

    name: ColorName
    hex: Annotated[
        str, Meta(examples=["029386"], extra_json_schema={"pattern": "^[0-9a-fA-F]{6}$"})
    ]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream library."""

    name: Annotated[str, Meta(examples=["unsplash"])]
    license_url: Annotated[
        str,
        Meta(
            description="Where its terms stand; where its photos have several licences, the one "
            "that most of them have.",
            examples=["https://unsplash.com/license"],
            extra_json_schema={"format": "uri"},
        ),
    ]


class OrientationName(msgspec.Struct, frozen=True, kw_only=True):
    """An orientation of photos."""

    name: Orientation


class License(msgspec.Struct, frozen=True, kw_only=True):
    """A licence of photos."""

    name: Annotated[str, Meta(examples=["free"])]


class Photographer(msgspec.Struct, frozen=True, kw_only=True):
    """A profile of a photographer at one upstream library."""

    username: Annotated[str, Meta(examples=["annlee"])]
    full_name: Annotated[str, Meta(examples=["Ann Lee"])]
    source: Annotated[str, Meta(examples=["unsplash"])]
    url: Annotated[
        str, Meta(description="Empty where unknown.", examples=["https://example.org/annlee"])
    ]
    photos_count: Annotated[int, Meta(examples=[12], extra_json_schema={"minimum": 1})]


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """Searches of a month."""

    used: Count
    limit: Annotated[Count, Meta(examples=[5000])]
    remaining: Annotated[Count, Meta(examples=[4988])]


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

    period_months: Annotated[
        int, Meta(examples=[12], extra_json_schema={"minimum": 1, "maximum": 24})
    ]
    records: list[MonthRecord]


class DayRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Searches of one day."""

    date: Day
    requests: Count


class DailyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Days, the oldest first."""

    period_days: Annotated[
        int, Meta(examples=[30], extra_json_schema={"minimum": 1, "maximum": 90})
    ]
    records: list[DayRecord]


class KeyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Searches by one key."""

    key_id: Annotated[str, Meta(examples=["key_3f2a91c0d4b7"])]
    name: Annotated[str, Meta(examples=["website"])]
    created_at: Instant
    last_used_at: Annotated[Instant | None, Meta(description="Null until it is used.")]
    requests_this_month: Count
    requests_today: Count


class UsageByKey(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the account."""

    keys: list[KeyUsage]


class AnswerMeta(msgspec.Struct, frozen=True, kw_only=True):
    """About one answer."""

    request_id: Annotated[
        str,
        Meta(
            description="Also in the header `X-Request-Id` and in the server's log.",
            examples=["0b6c8a52-3f1d-4f6e-9c0a-7d2e5b8f4a13"],
            extra_json_schema={"format": "uuid"},
        ),
    ]
    took_ms: Annotated[
        float, Meta(description="Milliseconds.", examples=[1.4], extra_json_schema={"minimum": 0})
    ]


class Pagination(msgspec.Struct, frozen=True):
    """How to go on."""

    per_page: Annotated[
        int,
        Meta(
            description="Page size in effect.",
            examples=[20],
            extra_json_schema={"minimum": 1, "maximum": 100},
        ),
    ]
    has_more: Annotated[
        bool, Meta(description="Whether at least one more page exists.", examples=[True])
    ]
    next_cursor: Annotated[
        str | None,
        Meta(
            description="Opaque; null exactly when `has_more` is false.", examples=["eyJwIjoyMH0"]
        ),
    ]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong."""

    code: Annotated[str, Meta(description="A code of /docs/errors.")]
    message: Annotated[str, Meta(description="What must hold, what came and what to do.")]
    details: Annotated[dict[str, Any], Meta(description="More for programs; often empty.")]


class Detail(msgspec.Struct, frozen=True):
    """One failed validation."""

    loc: Annotated[
        tuple[str | int, ...], Meta(description="Where.", examples=[["query", "per_page"]])
    ]
    msg: Annotated[str, Meta(description="What must hold and what came.")]
    type: Annotated[str, Meta(description="A word for programs.", examples=["out_of_range"])]


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The body of 422."""

    detail: Annotated[list[Detail], Meta(extra_json_schema={"minItems": 1})]
