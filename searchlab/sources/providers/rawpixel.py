"""Rawpixel: https://www.rawpixel.com/services/licenses; pictures in the public domain and others.

`style_uri` has a placeholder for a width: `image_250` and so on, up to 1300 pixels. The licence is
that of the record, or where it has none, the one that the label beside the picture names.
"""

from __future__ import annotations

import re

from searchlab.photos.licenses import FREE, RESERVED
from searchlab.photos.photo import credit_line
from searchlab.sources.markup import plain_text
from searchlab.sources.record import (
    RawRecord,
    SourceRecord,
    as_url,
    check_record,
    five_links,
    read_license,
)
from searchlab.sources.source import Source, Values, Walk, number_at, pages

_HOME = "https://www.rawpixel.com"
_PER_PAGE = 100
_WIDTHS = {"thumb": 250, "small": 500, "regular": 900, "full": 1300}
_LABELS = (
    ("cc0", "cc0"),
    ("u.s. government", "us-government-work"),
    ("public domain", "public-domain"),
    ("premium", RESERVED),
    ("editorial", RESERVED),
    ("free", FREE),
)


def record(values: Values) -> SourceRecord:
    """Read a result of a search."""
    entry = RawRecord(values)
    metadata = entry.inner("metadata")
    photo_id, page = entry.text("id"), entry.url("url")
    style = entry.text("style_uri")
    sizes = {size: as_url(style.replace("{}", f"image_{n}")) for size, n in _WIDTHS.items()}
    if "{}" not in style:
        sizes = {"full": entry.url("google_teaser")}
    label = (entry.text("info_label") or metadata.text("info_label")).lower()
    by_label = next((name for words, name in _LABELS if words in label), label)
    license_type, license_url = read_license(
        metadata.text("license"), by_label, url=metadata.url("licenseUrl")
    )
    artist = re.sub(r"\s*\(Source\)$", "", entry.text("artist_names"))
    account = metadata.text("artists", 0, "account_url")
    text = plain_text(metadata.text("description_text") or metadata.text("description"))
    title = plain_text(metadata.text("title")).partition("|")[0].strip(" ,.")
    return check_record(
        SourceRecord(
            source="rawpixel",
            source_photo_id=photo_id,
            origin=("rawpixel", photo_id),
            image_url=sizes["full"],
            urls=five_links(**sizes),
            source_image_url=page,
            links=(("rawpixel", page),),
            width=entry.side("width") or entry.side("display_image_width"),
            height=entry.side("height") or entry.side("display_image_height"),
            license_type=license_type,
            license_url=license_url or f"{_HOME}/services/licenses",
            title=title,
            photographer_username=account,
            photographer_full_name=artist,
            photographer_url=f"{_HOME}/{account}" if re.fullmatch(r"[\w-]+", account) else "",
            source_description=". ".join(
                filter(None, (text.rstrip("."), metadata.words("popular_keywords")))
            ),
            alt_description=plain_text(metadata.text("image_alt")),
            attribution=credit_line(
                ("Image", page),
                " by ",
                ("rawpixel.com", f"{_HOME}/"),
                f" / {artist}" if artist else "",
            ),
        )
    )


def search(query: str) -> Walk:
    """Walk through the public-domain pictures of a query."""
    return pages(
        "https://www.rawpixel.com/api/v1/search",
        {"search": query, "tags": "$publicdomain", "pagesize": str(_PER_PAGE)},
        lambda answer, number: number * _PER_PAGE < number_at(answer, "total"),
    )


SOURCE = Source(
    name="rawpixel",
    title="Rawpixel",
    home=_HOME,
    terms_url=f"{_HOME}/services/licenses",
    record=record,
    records_at=("results",),
    record_fields=(
        "width",
        "height",
        "license_type",
        "photographer_username",
        "photographer_full_name",
        "photographer_url",
        "source_description",
        "alt_description",
    ),
    search=search,
)
