"""The Metropolitan Museum of Art: https://metmuseum.github.io/, open access under CC0.

An object has a main picture and further ones. `/original/` and `/web-large/` in a link's path are
its two sizes. Objects that are not in the public domain are refused as reserved.
"""

from __future__ import annotations

import re

from searchlab.photos.licenses import RESERVED, license_url
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, as_url, check_record, five_links
from searchlab.sources.source import ApiRequest, Source, Values, Walk

_HOME = "https://www.metmuseum.org"
_API = "https://collectionapi.metmuseum.org/public/collection/v1"
_PER_PAGE = 20


def record(values: Values) -> SourceRecord:
    """Read an object, or one of its further pictures."""
    entry = RawRecord(values)
    further = entry.url("further")
    full = further or entry.url("primaryImage")
    web = full.replace("/CRDImages/", "\0").replace("/original/", "/web-large/")
    web = web.replace("\0", "/CRDImages/")
    number = entry.text("objectID")
    photo_id = f"{number}-{_stem(further)}" if further and number else number
    page = entry.url("objectURL") or f"{_HOME}/art/collection/search/{number}"
    artist, title = entry.text("artistDisplayName"), entry.text("title")
    tags = [tag.text("term") for tag in entry.each("tags")]
    texts = [title, entry.text("objectName"), entry.text("medium"), entry.text("culture")]
    license_type = "cc0" if entry.get("isPublicDomain") is True else RESERVED
    credit = ", ".join(filter(None, ("The Metropolitan Museum of Art", entry.text("creditLine"))))
    return check_record(
        SourceRecord(
            source="met",
            source_photo_id=photo_id,
            origin=("met", photo_id),
            image_url=full,
            urls=five_links(regular=web if further else entry.url("primaryImageSmall"), full=full),
            source_image_url=page,
            links=(("met", page),),
            license_type=license_type,
            license_url=license_url(license_type),
            title=title,
            photographer_full_name=artist,
            photographer_url=entry.url("artistWikidata_URL") or entry.url("artistULAN_URL"),
            source_description=". ".join(dict.fromkeys(filter(None, [*texts, ", ".join(tags)]))),
            uploaded_on=entry.day("metadataDate"),
            attribution=credit_line(
                (f"“{title}”" if title else "Object", page),
                f" by {artist}" if artist else "",
                f". {credit}",
            ),
        )
    )


def _stem(link: str) -> str:
    return re.sub(r"\.\w+$", "", link.rpartition("/")[2])


def split(thing: Values) -> list[Values]:
    """Split an object into entries: one for its main picture, then one for each further picture."""
    further = thing.get("additionalImages")
    links = [as_url(link) for link in further] if isinstance(further, list) else []
    main = {name: value for name, value in thing.items() if name != "additionalImages"}
    return [main, *({**main, "further": link} for link in links if link)]


def search(query: str) -> Walk:
    """Walk through the objects of a query, with one request for each."""
    params = {"q": query, "hasImages": "true"}
    answer = yield ApiRequest(f"{_API}/search", params, begins_page=False, has_records=False)
    ids = RawRecord(answer).get("objectIDs")
    for place, number in enumerate(ids if isinstance(ids, list) else []):
        if isinstance(number, int):
            yield ApiRequest(f"{_API}/objects/{number}", begins_page=place % _PER_PAGE == 0)


SOURCE = Source(
    name="met",
    title="The Met",
    home=_HOME,
    record=record,
    records_at=(),
    split=split,
    record_fields=(
        "license_type",
        "photographer_full_name",
        "photographer_url",
        "source_description",
        "uploaded_on",
    ),
    search=search,
    pause_s=0.1,
)
