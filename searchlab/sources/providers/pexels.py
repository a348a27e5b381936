"""Pexels: https://www.pexels.com/api/documentation/.

The guideline wants the photographer and Pexels named, with a link to the photo's page. The username
follows the @ in the address of the profile; where there is no @, it is empty.
"""

from __future__ import annotations

import re

from searchlab.photos.licenses import FREE
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links
from searchlab.sources.source import Key, Source, Values, Walk, pages

_HOME = "https://www.pexels.com"


def record(values: Values) -> SourceRecord:
    """Read a photo resource."""
    entry = RawRecord(values)
    photo_id, page = entry.text("id"), entry.url("url")
    name, profile = entry.text("photographer"), entry.url("photographer_url")
    handle = re.fullmatch(r"https://www\.pexels\.com/@([\w.~-]+)/?", profile)
    return check_record(
        SourceRecord(
            source="pexels",
            source_photo_id=photo_id,
            origin=("pexels", photo_id),
            image_url=entry.url("src", "original"),
            urls=five_links(
                thumb=entry.url("src", "tiny"),
                small=entry.url("src", "medium"),
                regular=entry.url("src", "large"),
                large=entry.url("src", "large2x"),
                full=entry.url("src", "original"),
            ),
            source_image_url=page,
            links=(("pexels", page),),
            width=entry.side("width"),
            height=entry.side("height"),
            # Not `avg_color`: the mean of a picture is no colour that stands for it.
            license_type=FREE,
            license_url=f"{_HOME}/license/",
            photographer_username=handle[1] if handle else "",
            photographer_full_name=name,
            photographer_url=profile,
            alt_description=entry.text("alt"),
            attribution=credit_line(
                ("Photo", page),
                *(" by ", (name, profile)) if name else (),
                " on ",
                ("Pexels", f"{_HOME}/"),
            ),
        )
    )


def search(query: str) -> Walk:
    """Walk through the results of a query."""
    return pages(
        "https://api.pexels.com/v1/search",
        {"query": query, "per_page": "80"},
        lambda answer, _number: bool(RawRecord(answer).text("next_page")),
    )


SOURCE = Source(
    name="pexels",
    title="Pexels",
    home=_HOME,
    terms_url=f"{_HOME}/license/",
    record=record,
    records_at=("photos",),
    record_fields=(
        "width",
        "height",
        "photographer_username",
        "photographer_full_name",
        "photographer_url",
        "alt_description",
    ),
    one_license=True,
    search=search,
    key=Key("PEXELS_API_KEY", "https://www.pexels.com/api/", header="Authorization"),
)
