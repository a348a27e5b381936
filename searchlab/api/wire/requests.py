"""The parameters and bodies of each operation, as the specification defines them.

These Structs check requests (`parameters.read`) and document them (`openapi`).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from searchlab.api.wire.schema import MAX_ADDRESS, MAX_DESCRIPTION, MAX_NAME, MAX_PHOTO_TEXT
from searchlab.photos.colors import DEFAULT_TOLERANCE, FAMILY_NAMES, MAX_TOLERANCE
from searchlab.photos.photo import ORIENTATIONS
from searchlab.search.queries import (
    DEFAULT_PER_PAGE,
    DEFAULT_TEXT_ALPHA,
    MAX_LIMIT,
    MAX_PER_PAGE,
    MAX_QUERY_LENGTH,
    MAX_TEXT_ALPHA,
)

NO_NUL = "^[^\\u0000]*$"
"""Pattern of any accepted text: JSON and URLs can carry NUL, databases and C cannot."""

_TEXT = {"pattern": NO_NUL}
# Addresses that are surely accepted; the check itself (`web_url`) accepts more than this pattern.
_ADDRESS = {"format": "uri", "pattern": "^https?://[A-Za-z0-9.-]+(/[!-~]*)?$"}
_PhotoText = Annotated[str, Meta(max_length=MAX_PHOTO_TEXT, extra_json_schema=_TEXT)]

Fields = Annotated[
    str,
    Meta(
        description="Comma-separated names of Photo fields; every field the plan allows if left "
        "out. An unknown name is `INVALID_FIELDS`.",
        examples=["photo_id,urls,attribution"],
    ),
]
CursorToken = Annotated[
    str,
    Meta(
        description="`pagination.next_cursor` of the page before. It holds the query, the filters "
        "and the page size: all other parameters but `fields` are ignored."
    ),
]
PerPage = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_PER_PAGE,
        description="Page size; a request with a cursor keeps that of the first page.",
    ),
]
Limit = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_LIMIT,
        description="Most results over all pages: the best matches, in whatever order they come.",
    ),
]


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that searches by text and by picture share."""

    q: (
        Annotated[
            str,
            Meta(
                max_length=MAX_QUERY_LENGTH,
                description="What the photos show, in any language.",
                examples=["a lake in the mountains", "雪山下的湖"],
            ),
        ]
        | None
    ) = None
    color_name: (
        Annotated[
            str,
            Meta(
                description="A name from the colours facet; not together with `color_hex`.",
                examples=["teal"],
                extra_json_schema={"enum": list(FAMILY_NAMES)},
            ),
        ]
        | None
    ) = None
    color_hex: (
        Annotated[
            str,
            Meta(
                description="A shade as `#` and six hex digits; not together with `color_name`.",
                examples=["#1f6f8b"],
                extra_json_schema={"pattern": "^#[0-9a-fA-F]{6}$"},
            ),
        ]
        | None
    ) = None
    color_tolerance: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_TOLERANCE,
            description="0 (strict) to 255 (loose): the radius around `color_hex`, or how far the "
            "family of `color_name` is widened or narrowed.",
        ),
    ] = DEFAULT_TOLERANCE
    orientation: tuple[
        Annotated[
            str,
            Meta(
                description="Orientation of the picture as displayed; several are alternatives.",
                extra_json_schema={"enum": list(ORIENTATIONS)},
            ),
        ],
        ...,
    ] = ()
    source: tuple[
        Annotated[
            str, Meta(description="A name from the sources facet; several are alternatives.")
        ],
        ...,
    ] = ()
    license_type: tuple[
        Annotated[
            str, Meta(description="A name from the licences facet; several are alternatives.")
        ],
        ...,
    ] = ()
    per_page: PerPage = DEFAULT_PER_PAGE
    limit: Limit | None = None
    score_threshold: (
        Annotated[float, Meta(ge=0, le=1, description="Lowest `relevance_score` to be listed.")]
        | None
    ) = None
    cursor: CursorToken | None = None
    fields: Fields | None = None
    after_date: (
        Annotated[
            str,
            Meta(
                description="Only photos published on that day or later.",
                examples=["2024-05-01"],
                extra_json_schema={"format": "date"},
            ),
        ]
        | None
    ) = None
    sort_by: Annotated[
        str,
        Meta(
            description="`relevance`, best match first, or `newest`. Both show the same photos; "
            "`score_threshold` leaves out what is hardly relevant.",
            extra_json_schema={"enum": ["relevance", "newest"]},
        ),
    ] = "relevance"
    photographer: (
        Annotated[str, Meta(description="Exact username; see the suggest endpoint.")] | None
    ) = None


class TextSearch(Conditions, frozen=True, kw_only=True):
    """GET /search/photos."""


class ImageSearch(Conditions, frozen=True, kw_only=True):
    """POST /search/photos."""

    photo_id: (
        Annotated[
            str,
            Meta(description="An indexed photo as the reference, in place of an uploaded picture."),
        ]
        | None
    ) = None
    text_alpha: Annotated[
        float,
        Meta(
            ge=0,
            le=MAX_TEXT_ALPHA,
            description="How much `q` counts beside the picture; 0 ignores the text.",
        ),
    ] = DEFAULT_TEXT_ALPHA


class NextPage(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that count in a request with a cursor."""

    cursor: str | None = None
    fields: str | None = None


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """GET /photos/{photo_id}/similar."""

    per_page: PerPage = DEFAULT_PER_PAGE
    limit: Limit | None = None
    cursor: CursorToken | None = None
    fields: Fields | None = None


class OnePhoto(msgspec.Struct, frozen=True, kw_only=True):
    """GET /photos/{photo_id}."""

    fields: Fields | None = None


class Months(msgspec.Struct, frozen=True, kw_only=True):
    """GET /usage/monthly."""

    months: Annotated[int, Meta(ge=1, le=24, description="Number of months, with this one.")] = 12


class Days(msgspec.Struct, frozen=True, kw_only=True):
    """GET /usage/daily."""

    days: Annotated[int, Meta(ge=1, le=90, description="Days back, today included.")] = 30


class OneCollection(msgspec.Struct, frozen=True, kw_only=True):
    """The parameter in the paths below /collections/{collection_id}."""

    collection_id: Annotated[int, Meta(examples=[7])]


class NewCollection(msgspec.Struct, frozen=True, kw_only=True):
    """POST /collections."""

    name: Annotated[
        str, Meta(min_length=1, max_length=MAX_NAME, examples=["Autumn"], extra_json_schema=_TEXT)
    ]
    description: (
        Annotated[str, Meta(max_length=MAX_DESCRIPTION, extra_json_schema=_TEXT)] | None
    ) = None
    is_public: Annotated[bool, Meta(description="Whether other accounts may read it.")] = False


class NewCollectionPhoto(msgspec.Struct, frozen=True, kw_only=True):
    """POST /collections/{collection_id}/photos; fields left out are filled from the index."""

    photo_id: Annotated[str, Meta(min_length=1, max_length=100, extra_json_schema=_TEXT)]
    photo_thumbnail_url: (
        Annotated[str, Meta(max_length=MAX_ADDRESS, extra_json_schema=_ADDRESS)] | None
    ) = None
    photo_source: _PhotoText | None = None
    photo_photographer: _PhotoText | None = None
