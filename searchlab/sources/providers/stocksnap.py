"""StockSnap: every photo is CC0; https://stocksnap.io/license.

Its picture server has two sizes, 280 pixels high and 960 wide; the full size has no fixed address.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from searchlab.photos.licenses import license_url
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links
from searchlab.sources.source import ApiRequest, Source, Values, Walk

_HOME = "https://stocksnap.io"
_PICTURES = "https://cdn.stocksnap.io/img-thumbs"


def record(values: Values) -> SourceRecord:
    """Read a photo of the site's own list."""
    entry = RawRecord(values)
    text_id = entry.text("img_id")
    photo_id = text_id if re.fullmatch(r"[A-Za-z0-9]+", text_id) else ""
    name, profile = entry.text("author_name"), entry.url("author_profile")
    page = f"{_HOME}/photo/{photo_id}"
    return check_record(
        SourceRecord(
            source="stocksnap",
            source_photo_id=photo_id,
            origin=("stocksnap", photo_id),
            image_url=f"{_PICTURES}/960w/{photo_id}.jpg",
            urls=five_links(
                thumb=f"{_PICTURES}/280h/{photo_id}.jpg", full=f"{_PICTURES}/960w/{photo_id}.jpg"
            ),
            source_image_url=page,
            links=(("stocksnap", page),),
            width=entry.side("img_width"),
            height=entry.side("img_height"),
            license_type="cc0",
            license_url=license_url("cc0"),
            photographer_username=entry.text("author_id"),
            photographer_full_name=name,
            photographer_url=profile,
            source_description=entry.words("keywords") or entry.text("tags"),
            attribution=credit_line(
                ("Photo", page),
                *(" by ", (name, profile)) if name else (),
                " from ",
                ("StockSnap", f"{_HOME}/"),
            ),
        )
    )


def search(query: str) -> Walk:
    """Walk through the site's own list of results."""
    number = 1
    while True:
        answer = yield ApiRequest(
            f"{_HOME}/api/search-photos/{quote(query, safe='')}/relevance/desc/{number}"
        )
        if not RawRecord(answer).text("nextPage").isdigit():
            return
        number += 1


SOURCE = Source(
    name="stocksnap",
    title="StockSnap",
    home=_HOME,
    terms_url=f"{_HOME}/license",
    record=record,
    records_at=("results",),
    record_fields=(
        "width",
        "height",
        "photographer_username",
        "photographer_full_name",
        "photographer_url",
        "source_description",
    ),
    one_license=True,
    search=search,
)
