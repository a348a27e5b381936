"""Wikimedia Commons: https://commons.wikimedia.org/wiki/Commons:Reusing_content_outside_Wikimedia.

The fields of `extmetadata` are HTML. Pictures are scaled by their path: `/thumb/`, the path of the
file and `/960px-NAME`, in the widths of https://www.mediawiki.org/wiki/Common_thumbnail_sizes and
never wider than the file itself. Where an author prescribes an attribution, it is used.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from searchlab.photos.licenses import license_label
from searchlab.photos.photo import credit_line
from searchlab.sources.markup import first_link, plain_text
from searchlab.sources.record import (
    RawRecord,
    SourceRecord,
    as_url,
    check_record,
    five_links,
    read_license,
)
from searchlab.sources.source import ApiRequest, Source, Values, Walk

_HOME = "https://commons.wikimedia.org"
_FILE = re.compile(
    r"https://upload\.wikimedia\.org/wikipedia/commons/([0-9a-f]/[0-9a-f]{2}/([^/?]+))"
)
_USER = re.compile(r"https?://commons\.wikimedia\.org/w(?:iki/|/index\.php\?title=)User:([^/?#&]+)")
_WIDTHS = {"thumb": 250, "small": 500, "regular": 960, "large": 1920}


def record(values: Values) -> SourceRecord:
    """Read a page of a query with `prop=imageinfo`."""
    entry = RawRecord(values)
    info = entry.inner("imageinfo", 0)

    def extra(name: str) -> str:
        return info.text("extmetadata", name, "value")

    photo_id, link = entry.text("pageid"), info.url("url")
    page = info.url("descriptionurl") or info.url("descriptionshorturl")
    artist = plain_text(extra("Artist"))
    profile = first_link(extra("Artist"))
    user = _USER.match(profile)
    license_type, license_url = read_license(
        *map(extra, ("LicenseShortName", "License", "UsageTerms")), url=as_url(extra("LicenseUrl"))
    )
    title = _title(plain_text(extra("ObjectName")) or entry.text("title"))
    width = info.side("width")
    credit = plain_text(extra("Attribution"))
    return check_record(
        SourceRecord(
            source="wikimedia",
            source_photo_id=photo_id,
            origin=("wikimedia", photo_id),
            image_url=link,
            urls=_sizes(link, info.url("thumburl"), width),
            source_image_url=page,
            links=(("wikimedia", page),),
            width=width,
            height=info.side("height"),
            license_type=license_type,
            license_url=license_url,
            title=title,
            photographer_username=unquote(user[1]).replace("_", " ") if user else "",
            photographer_full_name=artist,
            photographer_url=profile,
            source_description=plain_text(extra("ImageDescription")) or title,
            uploaded_on=info.day("timestamp") or info.day("extmetadata", "DateTime", "value"),
            attribution=credit_line(
                (f"“{title}”" if title else "Photo", page),
                *(". ", (credit, profile)) if credit else (),
                *(" by ", (artist, profile)) if artist and not credit else (),
                *(", ", (license_label(license_type), license_url)) if license_type else (),
                ", via ",
                ("Wikimedia Commons", f"{_HOME}/"),
            ),
        )
    )


def _title(text: str) -> str:
    return re.sub(r"\.\w{3,4}$", "", text.removeprefix("File:")).replace("_", " ")


def _sizes(link: str, scaled: str, width: int) -> dict[str, str]:
    match = _FILE.fullmatch(link)
    if match is None:
        return five_links(small=scaled, full=link)
    path, name = match[1], match[2]
    kind = name.rpartition(".")[2].lower()
    before = "lossy-page1-" if kind in ("tif", "tiff") else ""
    after = {"svg": ".png", "tif": ".jpg", "tiff": ".jpg"}.get(kind, "")
    base = f"https://upload.wikimedia.org/wikipedia/commons/thumb/{path}/{before}"
    sizes = {
        size: f"{base}{pixels}px-{name}{after}"
        for size, pixels in _WIDTHS.items()
        if pixels < width
    }
    return five_links(**sizes, full=link)


def search(query: str) -> Walk:
    """Walk through the bitmaps that a query finds."""
    params = {
        "action": "query",
        "format": "json",
        "formatversion": "2",
        "generator": "search",
        "gsrsearch": f"filetype:bitmap {query}",
        "gsrnamespace": "6",
        "gsrlimit": "50",
        "prop": "imageinfo",
        "iiprop": "url|user|size|mime|timestamp|extmetadata",
    }
    further: dict[str, str] = {}
    while True:
        answer = yield ApiRequest(f"{_HOME}/w/api.php", {**params, **further})
        follows = RawRecord(answer).get("continue")
        if not isinstance(follows, dict) or not follows:
            return
        further = {str(name): str(value) for name, value in follows.items()}


SOURCE = Source(
    name="wikimedia",
    title="Wikimedia Commons",
    home=_HOME,
    record=record,
    records_at=("query", "pages"),
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
