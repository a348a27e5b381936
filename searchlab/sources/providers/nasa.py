"""NASA Image and Video Library: https://images.nasa.gov/docs/images.nasa.gov_api_docs.pdf.

NASA's pictures are in the public domain; its guideline asks to name NASA as the source. Sizes are
`~thumb`, `~small`, `~medium`, `~large` and `~orig` in the name of the file. Newer records list the
sizes that exist; where only the preview is listed, the names of the others are built from it.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from searchlab.photos.licenses import license_url
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links
from searchlab.sources.source import Source, Values, Walk, pages

_HOME = "https://images.nasa.gov"
_SIZES = {
    "thumb": "thumb",
    "small": "small",
    "regular": "medium",
    "large": "large",
    "full": "orig",
}


def record(values: Values) -> SourceRecord:
    """Read an item of a collection."""
    entry = RawRecord(values)
    photo_id = entry.text("data", 0, "nasa_id")
    page = f"{_HOME}/details/{quote(photo_id, safe='')}"
    name = entry.text("data", 0, "photographer") or entry.text("data", 0, "secondary_creator")
    title, center = entry.text("data", 0, "title"), entry.text("data", 0, "center")
    texts = entry.text("data", 0, "description"), entry.words("data", 0, "keywords")
    links = entry.each("links")
    urls = _sizes(links)
    width, height = _size(links)
    credit = name if "NASA" in name.upper() else "/".join(filter(None, ("NASA", center, name)))
    return check_record(
        SourceRecord(
            source="nasa",
            source_photo_id=photo_id,
            origin=("nasa", photo_id),
            image_url=urls["full"],
            urls=urls,
            source_image_url=page,
            links=(("nasa", page),),
            width=width,
            height=height,
            license_type="public-domain",
            license_url=license_url("public-domain"),
            title=title,
            photographer_full_name=name,
            source_description=". ".join(filter(None, (title, texts[0].rstrip("."), texts[1]))),
            alt_description=entry.text("data", 0, "description_508"),
            uploaded_on=entry.day("data", 0, "date_created"),
            attribution=credit_line(
                (f"“{title}”" if title else "Photo", page), f". Credit: {credit}"
            ),
        )
    )


def _sizes(links: list[RawRecord]) -> dict[str, str]:
    links_by_size: dict[str, str] = {}
    for link in links:
        href = link.url("href")
        size = re.search(r"~(thumb|small|medium|large|orig)\.\w+$", href)
        if size:
            links_by_size[size[1]] = href
    if set(links_by_size) == {"thumb"}:
        base = links_by_size["thumb"].rpartition("~")[0]
        links_by_size |= {name: f"{base}~{name}.jpg" for name in _SIZES.values() if name != "thumb"}
    return five_links(**{size: links_by_size.get(name, "") for size, name in _SIZES.items()})


def _size(links: list[RawRecord]) -> tuple[int, int]:
    sides = [(link.side("width"), link.side("height")) for link in links]
    return max((pair for pair in sides if all(pair)), default=(0, 0))


def search(query: str) -> Walk:
    """Walk through the pictures of a query."""
    return pages(
        "https://images-api.nasa.gov/search",
        {"q": query, "media_type": "image"},
        lambda answer, _number: any(
            link.text("rel") == "next" for link in RawRecord(answer).each("collection", "links")
        ),
    )


SOURCE = Source(
    name="nasa",
    title="NASA Images",
    home=_HOME,
    terms_url="https://www.nasa.gov/nasa-brand-center/images-and-media/",
    record=record,
    records_at=("collection", "items"),
    record_fields=(
        "photographer_full_name",
        "source_description",
        "alt_description",
        "uploaded_on",
    ),
    one_license=True,
    search=search,
)
