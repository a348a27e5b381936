"""WordPress Photo Directory: https://wordpress.org/photos/, every photo CC0.

Requests need `_embed`, which adds the author and the sizes of the picture to each record.
"""

from __future__ import annotations

from searchlab.photos.licenses import license_url
from searchlab.photos.photo import credit_line
from searchlab.sources.markup import plain_text
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links
from searchlab.sources.source import Source, Values, Walk, pages

_HOME = "https://wordpress.org/photos"
_PER_PAGE = 100
_MAX_GROUPS = 10


def record(values: Values) -> SourceRecord:
    """Read a photo with what is embedded in it."""
    entry = RawRecord(values)
    media = entry.inner("_embedded", "wp:featuredmedia", 0)
    author = entry.inner("_embedded", "author", 0)
    slug, page = entry.text("slug"), entry.url("link")
    name = plain_text(author.text("name"))
    profile = author.url("link")

    def size(kind: str) -> str:
        return media.url("media_details", "sizes", kind, "source_url")

    full = media.url("source_url") or size("full")
    terms = [
        term.text("name")
        for group in range(_MAX_GROUPS)
        for term in entry.each("_embedded", "wp:term", group)
        if term.text("taxonomy") in ("photo_tag", "photo_category")
    ]
    text = plain_text(entry.text("content", "rendered"))
    return check_record(
        SourceRecord(
            source="wordpress",
            source_photo_id=slug,
            origin=("wordpress", slug),
            image_url=full,
            urls=five_links(
                thumb=size("medium") or size("thumbnail"),
                small=size("medium_large"),
                regular=size("large") or size("1536x1536"),
                large=size("2048x2048"),
                full=full,
            ),
            source_image_url=page,
            links=(("wordpress", page),),
            width=media.side("media_details", "width"),
            height=media.side("media_details", "height"),
            license_type="cc0",
            license_url=license_url("cc0"),
            photographer_username=author.text("slug"),
            photographer_full_name=name,
            photographer_url=profile,
            source_description=". ".join(filter(None, (text.rstrip("."), ", ".join(terms)))),
            alt_description=plain_text(media.text("alt_text")),
            uploaded_on=entry.day("date_gmt") or entry.day("date"),
            attribution=credit_line(
                "CC0 licensed ",
                ("photo", page),
                *(" by ", (name, profile)) if name else (),
                " from the ",
                ("WordPress Photo Directory", f"{_HOME}/"),
                ".",
            ),
        )
    )


def search(query: str) -> Walk:
    """Walk through the photos of a query."""
    return pages(
        "https://wordpress.org/photos/wp-json/wp/v2/photos",
        {"search": query, "_embed": "true", "per_page": str(_PER_PAGE)},
        lambda answer, _number: isinstance(answer, list) and len(answer) == _PER_PAGE,
    )


SOURCE = Source(
    name="wordpress",
    title="WordPress Photos",
    home=_HOME,
    record=record,
    records_at=(),
    record_fields=(
        "width",
        "height",
        "photographer_username",
        "photographer_full_name",
        "photographer_url",
        "source_description",
        "alt_description",
        "uploaded_on",
    ),
    one_license=True,
    search=search,
)
