"""Pixabay: https://pixabay.com/api/docs/.

Links to larger pictures are valid for a day and must not be embedded permanently, so photos are
shown from a copy. `_640` in `webformatURL` becomes `_340` for the next smaller size. The date is
only in the path of `previewURL`; photos from before 9 January 2019 are CC0, later ones have
Pixabay's own licence.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from searchlab.photos.licenses import FREE, license_url
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links
from searchlab.sources.source import Key, Source, Values, Walk, number_at, pages, with_params

_HOME = "https://pixabay.com"
_CC0_BEFORE = "2019-01-09"
_PER_PAGE = 200
_DATE = re.compile(r"/photo/(\d{4})/(\d\d)/(\d\d)/", re.ASCII)


def record(values: Values) -> SourceRecord:
    """Read a hit."""
    entry = RawRecord(values)
    photo_id, page = entry.text("id"), entry.url("pageURL")
    preview, middle = entry.url("previewURL"), entry.url("webformatURL")
    large = entry.url("largeImageURL")
    name, user_id = entry.text("user"), entry.text("user_id")
    profile = f"{_HOME}/users/{quote(name, safe='')}-{user_id}/" if user_id.isdigit() else ""
    date = _DATE.search(preview)
    day = RawRecord({"day": "-".join(date.groups())}).day("day") if date else ""
    license_type = "cc0" if day and day < _CC0_BEFORE else FREE
    referral = {
        "utm_source": "link-attribution",
        "utm_medium": "referral",
        "utm_campaign": "image",
        "utm_content": photo_id,
    }
    full = entry.url("imageURL") or entry.url("fullHDURL") or large
    return check_record(
        SourceRecord(
            source="pixabay",
            source_photo_id=photo_id,
            origin=("pixabay", photo_id),
            image_url=full or middle,
            urls=five_links(
                thumb=preview,
                small=re.sub(r"_640(?=\.\w+$)", "_340", middle),
                regular=middle,
                large=large,
                full=full,
            ),
            shown_from_copy=True,
            source_image_url=page,
            links=(("pixabay", page),),
            width=entry.side("imageWidth"),
            height=entry.side("imageHeight"),
            license_type=license_type,
            license_url=license_url("cc0")
            if license_type == "cc0"
            else f"{_HOME}/service/license-summary/",
            photographer_username=name,
            photographer_full_name=name,
            photographer_url=profile,
            source_description=entry.text("tags"),
            uploaded_on=day,
            attribution=credit_line(
                ("Image", page),
                *(" by ", (name, with_params(profile, **referral))) if name else (),
                " from ",
                ("Pixabay", with_params(f"{_HOME}/", **referral)),
            ),
        )
    )


def search(query: str) -> Walk:
    """Walk through the results of a query, of which Pixabay returns the first 500 only."""
    return pages(
        "https://pixabay.com/api/",
        {"q": query, "image_type": "photo", "safesearch": "true", "per_page": str(_PER_PAGE)},
        lambda answer, number: number * _PER_PAGE < number_at(answer, "totalHits"),
    )


SOURCE = Source(
    name="pixabay",
    title="Pixabay",
    home=_HOME,
    terms_url=f"{_HOME}/service/license-summary/",
    record=record,
    records_at=("hits",),
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
    key=Key("PIXABAY_API_KEY", "https://pixabay.com/api/docs/", param="key"),
)
