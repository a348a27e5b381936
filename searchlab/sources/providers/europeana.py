"""Europeana: https://europeana.atlassian.net/wiki/spaces/EF/overview, pictures of Europe's museums.

Rights are the address of a licence or of a statement of rightsstatements.org. Europeana scales to
200 and 400 pixels of width; the picture itself lies at the museum that holds it.
"""

from __future__ import annotations

import re

from searchlab.photos.licenses import license_label
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links, read_license
from searchlab.sources.source import ApiRequest, Key, Source, Values, Walk, with_params

_HOME = "https://www.europeana.eu"
_ROWS = 100


def record(values: Values) -> SourceRecord:
    """Read an item of a search."""
    entry = RawRecord(values)
    photo_id, full = entry.text("id"), entry.first("edmIsShownBy")
    preview = RawRecord({"url": entry.first("edmPreview")}).url("url")
    link = RawRecord({"url": full}).url("url")
    page = re.sub(r"\?utm_source=.*$", "", entry.url("guid")) or entry.url("edmIsShownAt", 0)
    name = _creator(entry)
    title = entry.first("title") or entry.first("dcTitleLangAware")
    holder = entry.first("dataProvider")
    license_type, license_url = read_license(
        "", url=RawRecord({"url": entry.first("rights")}).url("url")
    )
    description = entry.first("dcDescriptionLangAware", "en") or entry.first("dcDescription")
    return check_record(
        SourceRecord(
            source="europeana",
            source_photo_id=photo_id,
            origin=("europeana", photo_id),
            image_url=link,
            urls=five_links(
                thumb=with_params(preview, size="w200"),
                small=with_params(preview, size="w400"),
                regular=link,
                full=link,
            )
            if link
            else five_links(),
            source_image_url=page,
            links=(("europeana", page),),
            license_type=license_type,
            license_url=license_url,
            title=title,
            photographer_full_name=name,
            source_description=". ".join(filter(None, (title.rstrip("."), description))),
            uploaded_on=entry.day("timestamp_created"),
            attribution=credit_line(
                (f"“{title}”" if title else "Item", page),
                f" by {name}" if name else "",
                f", {holder}" if holder else "",
                ", via ",
                ("Europeana", f"{_HOME}/"),
                *(", ", (license_label(license_type), license_url)) if license_type else (),
            ),
        )
    )


def _creator(entry: RawRecord) -> str:
    # A creator may be an address in a vocabulary, which is no name.
    makers = [entry.first("dcCreatorLangAware", "en"), entry.first("dcCreator")]
    return next((name for name in makers if name and "://" not in name), "")


def search(query: str) -> Walk:
    """Walk through the openly licensed pictures of a query."""
    cursor = "*"
    while cursor:
        answer = yield ApiRequest(
            "https://api.europeana.eu/record/v2/search.json",
            {
                "query": query,
                "qf": "TYPE:IMAGE",
                "media": "true",
                "reusability": "open",
                "profile": "rich",
                "rows": str(_ROWS),
                "cursor": cursor,
            },
        )
        cursor = RawRecord(answer).text("nextCursor")


SOURCE = Source(
    name="europeana",
    title="Europeana",
    home=_HOME,
    record=record,
    records_at=("items",),
    record_fields=(
        "license_type",
        "photographer_full_name",
        "source_description",
        "uploaded_on",
    ),
    search=search,
    key=Key("EUROPEANA_API_KEY", "https://pro.europeana.eu/page/get-api", header="X-Api-Key"),
)
