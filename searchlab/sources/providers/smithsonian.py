"""Smithsonian Open Access: https://edan.si.edu/openaccess/apidocs/; CC0 pictures are marked so.

A row has several pictures. Those of its delivery service are scaled by the parameter `max`, the
longer side in pixels; the others have the two links of the record.
"""

from __future__ import annotations

import re

from searchlab.photos.licenses import RESERVED, license_label
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links, read_license
from searchlab.sources.source import ApiRequest, Key, Source, Values, Walk, number_at, with_params

_HOME = "https://www.si.edu"
_ROWS = 100
_SIDES = {"thumb": 150, "small": 480, "regular": 960, "large": 1920}
_MAKERS = ("creator", "photographer", "artist", "maker", "author", "collector")


def record(values: Values) -> SourceRecord:
    """Read one picture of a row, an entry of `split`."""
    entry = RawRecord(values)
    metadata = entry.inner("content", "descriptiveNonRepeating")
    number = metadata.text("record_ID") or entry.text("id")
    place = entry.side("place")
    media = metadata.inner("online_media", "media", place)
    link = media.url("content")
    photo_id = number if place == 0 else f"{number}-{place + 1}"
    delivered = "/ids/deliveryService" in link
    urls = (
        five_links(
            **{size: with_params(link, max=side) for size, side in _SIDES.items()}, full=link
        )
        if delivered
        else five_links(thumb=media.url("thumbnail"), regular=link, full=link)
    )
    page = metadata.url("record_link") or metadata.url("guid") or _collections_page(number)
    access = media.text("usage", "access") or metadata.text("metadata_usage", "access")
    license_type, license_url = read_license(
        RESERVED if access.lower().startswith("usage conditions") else access
    )
    name = _maker(entry)
    title = metadata.text("title", "content") or entry.text("title")
    texts = (title, *_notes(entry, "notes"), *_notes(entry, "objectType"), *_notes(entry, "topic"))
    unit = metadata.text("data_source")
    return check_record(
        SourceRecord(
            source="smithsonian",
            source_photo_id=photo_id,
            origin=("smithsonian", photo_id),
            image_url=link,
            urls=urls,
            source_image_url=page,
            links=(("smithsonian", page),),
            license_type=license_type,
            license_url=license_url,
            title=title,
            photographer_full_name=name,
            source_description=". ".join(dict.fromkeys(filter(None, texts))),
            uploaded_on=entry.day("timestamp") or entry.day("lastTimeUpdated"),
            attribution=credit_line(
                (f"“{title}”" if title else "Object", page),
                f" by {name}" if name else "",
                f", {unit}" if unit else "",
                ", ",
                ("Smithsonian Institution", f"{_HOME}/"),
                ", ",
                (license_label(license_type), license_url),
            ),
        )
    )


def _collections_page(number: str) -> str:
    plain = re.fullmatch(r"[\w.-]+", number, re.ASCII)
    return f"https://collections.si.edu/search/detail/edanmdm:{number}" if plain else ""


def _maker(entry: RawRecord) -> str:
    names = entry.each("content", "freetext", "name")
    names_by_role = {one.text("label").lower(): one.text("content") for one in reversed(names)}
    return next((names_by_role[role] for role in _MAKERS if names_by_role.get(role)), "")


def _notes(entry: RawRecord, kind: str) -> list[str]:
    return [
        one.text("content")
        for one in entry.each("content", "freetext", kind)
        if one.text("label") in ("Description", "Type", "Topic")
    ]


def split(row: Values) -> list[Values]:
    """Split a row into one entry for each picture."""
    media = RawRecord(row).get("content", "descriptiveNonRepeating", "online_media", "media")
    n_media = len(media) if isinstance(media, list) and "place" not in row else 1
    return [{"place": 0, **row}, *({**row, "place": place} for place in range(1, n_media))]


def search(query: str) -> Walk:
    """Walk through the CC0 pictures of a query."""
    start = 0
    while True:
        answer = yield ApiRequest(
            "https://api.si.edu/openaccess/api/v1.0/search",
            {
                "q": f'{query} AND online_media_type:"Images" AND media_usage:"CC0"',
                "start": str(start),
                "rows": str(_ROWS),
            },
        )
        start += _ROWS
        if start >= number_at(answer, "response", "rowCount"):
            return


SOURCE = Source(
    name="smithsonian",
    title="Smithsonian",
    home=_HOME,
    record=record,
    records_at=("response", "rows"),
    split=split,
    record_fields=(
        "license_type",
        "photographer_full_name",
        "source_description",
        "uploaded_on",
    ),
    search=search,
    key=Key("SMITHSONIAN_API_KEY", "https://api.data.gov/signup/", param="api_key"),
)
