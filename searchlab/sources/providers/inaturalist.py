"""iNaturalist: https://api.inaturalist.org/v1/docs/, https://github.com/inaturalist/inaturalist-open-data.

An observation has several photos; its taxon says what they show. Sizes are the names of the files:
thumb, small, medium, large, original. Rows of the open data are read too, as other catalogues have
them.
"""

from __future__ import annotations

import re

from searchlab.photos.licenses import RESERVED, license_label
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links, read_license
from searchlab.sources.source import Source, Values, Walk, number_at, pages

_HOME = "https://www.inaturalist.org"
_PER_PAGE = 100
_SIZED = re.compile(r"/(?:square|thumb|small|medium|large|original)(?=\.\w+$)")


def record(values: Values) -> SourceRecord:
    """Read one photo: an entry of `split`, or a row of the open data."""
    entry = RawRecord(values)
    if "foreign_identifier" in entry.values:
        photo_id, link = entry.text("foreign_identifier"), entry.url("image_url")
        license_type, license_url = read_license("", url=entry.url("license_url"))
        login = name = entry.text("creator")
        profile = entry.url("creator_url")
        texts = [entry.text("title"), entry.words("raw_tags")]
        width, height = entry.side("width"), entry.side("height")
        day = ""
    else:
        photo_id, link = entry.text("photo", "id"), entry.url("photo", "url")
        code = entry.text("photo", "license_code")
        license_type, license_url = read_license(code or RESERVED, version=_version(code))
        login = entry.text("user", "login")
        name = entry.text("user", "name") or login
        profile = f"{_HOME}/people/{login}" if re.fullmatch(r"[\w-]+", login) else ""
        texts = [
            entry.text("taxon", "preferred_common_name"),
            entry.text("taxon", "name"),
            entry.text("description"),
        ]
        sides = ("photo", "original_dimensions")
        width, height = entry.side(*sides, "width"), entry.side(*sides, "height")
        day = entry.day("created_at") or entry.day("photo", "created_at")
    page = f"{_HOME}/photos/{photo_id}"
    title = next(filter(None, texts), "")
    return check_record(
        SourceRecord(
            source="inaturalist",
            source_photo_id=photo_id,
            origin=("inaturalist", photo_id),
            image_url=_resize_url(link, "original"),
            urls=five_links(
                thumb=_resize_url(link, "thumb"),
                small=_resize_url(link, "small"),
                regular=_resize_url(link, "medium"),
                large=_resize_url(link, "large"),
                full=_resize_url(link, "original"),
            ),
            source_image_url=page,
            links=(("inaturalist", page),),
            width=width,
            height=height,
            license_type=license_type,
            license_url=license_url,
            title=title,
            photographer_username=login,
            photographer_full_name=name,
            photographer_url=profile,
            source_description=". ".join(filter(None, texts)),
            uploaded_on=day,
            attribution=credit_line(
                (f"“{title}”" if title else "Photo", page),
                *(" © " if license_type != "cc0" else " by ", (name, profile)) if name else (),
                ", ",
                (license_label(license_type), license_url),
                ", via ",
                ("iNaturalist", f"{_HOME}/"),
            ),
        )
    )


def _resize_url(link: str, size: str) -> str:
    return _SIZED.sub(f"/{size}", link)


def _version(code: str) -> str:
    return "4.0" if code.lower().startswith("cc-by") else ""  # the one that iNaturalist offers


def split(observation: Values) -> list[Values]:
    """Split an observation into entries, one for each photo, each with the shared fields."""
    photos = observation.get("photos")
    if not isinstance(photos, list) or not photos:
        return [observation]
    shared = {name: value for name, value in observation.items() if name != "photos"}
    return [{**shared, "photo": photo} for photo in photos]


def search(query: str) -> Walk:
    """Walk through the observations of a query whose photos anybody may use."""
    return pages(
        "https://api.inaturalist.org/v1/observations",
        {
            "q": query,
            "photos": "true",
            "photo_license": "cc0,cc-by,cc-by-sa",
            "quality_grade": "research",
            "per_page": str(_PER_PAGE),
        },
        lambda answer, number: number * _PER_PAGE < min(number_at(answer, "total_results"), 10_000),
    )


SOURCE = Source(
    name="inaturalist",
    title="iNaturalist",
    home=_HOME,
    record=record,
    records_at=("results",),
    split=split,
    record_fields=(
        "width",
        "height",
        "license_type",
        "photographer_username",
        "photographer_full_name",
        "photographer_url",
        "source_description",
        "uploaded_on",
    ),
    search=search,
)
