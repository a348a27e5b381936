"""Openverse: https://api.openverse.org/v1/, an aggregator of openly licensed pictures.

A record names the library that published the photo and links to its page there. The photo keeps the
identity that it has there, so that a photo which comes from both libraries is one photo.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from searchlab.photos.licenses import license_label
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links, read_license
from searchlab.sources.source import Key, Source, Values, Walk, number_at, pages, with_params

_HOME = "https://openverse.org"
_ORIGINS = {
    "flickr": r"/photos/[^/]+/(\d+)",
    "inaturalist": r"/photos/(\d+)",
    "met": r"/art/collection/search/(\d+)",
    "nasa": r"/details[/-]([^/]+?)(?:\.html)?",
    "rawpixel": r"/image/(\d+)(?:/.*)?",
    "stocksnap": r"/photo/(?:.*-)?([A-Z0-9]{10})",
    "wordpress": r"/photos/photo/([^/]+)",
}
"""Patterns that find the id of a photo in the path of its page at the library of its origin."""


def record(values: Values) -> SourceRecord:
    """Read an image of a search or of its own page."""
    entry = RawRecord(values)
    photo_id, link = entry.text("id"), entry.url("url")
    page = entry.url("foreign_landing_url")
    name, title = entry.text("creator"), entry.text("title")
    license_type, license_url = read_license(
        entry.text("license"),
        version=entry.text("license_version"),
        url=entry.url("license_url"),
    )
    thumbnail = entry.url("thumbnail")
    return check_record(
        SourceRecord(
            source="openverse",
            source_photo_id=photo_id,
            origin=_origin(entry.text("source"), page) or ("openverse", photo_id),
            image_url=link,
            urls=five_links(
                thumb=with_params(thumbnail, compressed="true"),
                small=thumbnail,
                regular=link,
                full=link,
            ),
            source_image_url=page,
            links=((entry.text("source") or "openverse", page), ("openverse", _page(photo_id))),
            width=entry.side("width"),
            height=entry.side("height"),
            license_type=license_type,
            license_url=license_url,
            title=title,
            photographer_full_name=name,
            photographer_url=entry.url("creator_url"),
            source_description=". ".join(filter(None, (title, entry.words("tags")))),
            uploaded_on=entry.day("indexed_on"),
            attribution=credit_line(
                (f"“{title}”" if title else "This work", page),
                *(" by ", (name, entry.url("creator_url"))) if name else (),
                " is marked with "
                if license_type in ("cc0", "public-domain")
                else " is licensed under ",
                (license_label(license_type), license_url),
                ", via ",
                ("Openverse", _page(photo_id)),
            ),
        )
    )


def _page(photo_id: str) -> str:
    return f"{_HOME}/image/{photo_id}" if re.fullmatch(r"[\w-]+", photo_id, re.ASCII) else ""


def _origin(library: str, page: str) -> tuple[str, str] | None:
    parts = urlsplit(page)
    if library == "wikimedia":  # its ids are page ids, which an address by file name does not have
        ids = parse_qs(parts.query).get("curid", [""])
        return (library, ids[0]) if ids[0].isdigit() else None
    match = re.fullmatch(_ORIGINS.get(library, r"(?!)"), parts.path.rstrip("/"))
    return (library, match[1]) if match else None


def search(query: str) -> Walk:
    """Walk through the pictures of a query that anybody may use and change."""
    return pages(
        "https://api.openverse.org/v1/images/",
        {"q": query, "page_size": "20", "license_type": "commercial,modification"},
        lambda answer, number: number < number_at(answer, "page_count"),
    )


SOURCE = Source(
    name="openverse",
    title="Openverse",
    home=_HOME,
    record=record,
    records_at=("results",),
    record_fields=(
        "width",
        "height",
        "license_type",
        "photographer_full_name",
        "photographer_url",
        "source_description",
        "uploaded_on",
    ),
    search=search,
    key=Key(
        "OPENVERSE_TOKEN",
        "https://api.openverse.org/v1/#tag/auth",
        header="Authorization",
        before="Bearer ",
        needed=False,
    ),
)
