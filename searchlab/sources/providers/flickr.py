"""Flickr: https://www.flickr.com/services/api/, https://www.flickr.com/services/api/misc.urls.html.

Records come from photos.search with `extras`, and from two data sets: the ML5 landscapes and the
credit lists of Open Images. A link gives the server, the id and the secret, from which the links of
the small sizes are built that every photo has; larger ones are used only where the record has them.
"""

from __future__ import annotations

import re

from searchlab.errors import InputError
from searchlab.photos.licenses import license_label
from searchlab.photos.photo import credit_line
from searchlab.sources.markup import plain_text
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links, read_license
from searchlab.sources.source import Key, Source, Values, Walk, number_at, pages

_HOME = "https://www.flickr.com"
_LICENSES = (
    "all-rights-reserved",
    "cc-by-nc-sa-2.0",
    "cc-by-nc-2.0",
    "cc-by-nc-nd-2.0",
    "cc-by-2.0",
    "cc-by-sa-2.0",
    "cc-by-nd-2.0",
    "no-known-copyright",
    "us-government-work",
    "cc0",
    "public-domain",
)
"""By Flickr's number."""

_STATIC = re.compile(
    r"https?://[\w.-]+\.static\.?flickr\.com/(?:\d/)?(?P<server>\d+)/(?P<id>\d+)_(?P<secret>[0-9a-f]+)"
    r"(?:_[a-z0-9]{1,2})?\.(?:jpg|png|gif)(?:\?zz=1)?",
    re.ASCII,
)
_PHOTO = re.compile(r"/(?P<id>\d{4,})/?$", re.ASCII)
_OWNER = re.compile(r"/(?:photos|people)/([^/?#]+)")


def record(values: Values) -> SourceRecord:
    """Read a photo of photos.search, or of one of the data sets."""
    entry = RawRecord(values)
    if "OriginalLandingURL" in entry.values:
        return _open_images(entry)
    if "clean_name" in entry.values:
        return _ml5(entry)
    sizes = {letter: entry.url(f"url_{letter}") for letter in "tsmlo"}
    larger = entry.url("url_k") or entry.url("url_h") or sizes["l"]
    if not any((sizes["s"], sizes["m"], sizes["l"], sizes["o"])) and sizes["t"]:
        msg = "a record of flickr must link to its picture, got a thumbnail only"
        raise InputError(msg)
    width, height = _size(entry)
    return _record(
        entry,
        photo_id=entry.text("id"),
        owner=entry.text("owner"),
        username=entry.text("pathalias") or entry.text("owner"),
        name=entry.text("ownername"),
        license_text=_license(entry.text("license")),
        urls=five_links(
            thumb=sizes["t"],
            small=sizes["s"],
            regular=sizes["m"],
            large=larger,
            full=sizes["o"] or larger,
        ),
        width=width,
        height=height,
        description=plain_text(entry.text("description", "_content") or entry.text("description")),
        tags=entry.text("tags"),
        day=entry.day("dateupload"),
    )


def _ml5(entry: RawRecord) -> SourceRecord:
    # Here `owner` is the name for display, and `owner_id` is what the API calls `owner`.
    link = entry.url("url")
    parts = _STATIC.fullmatch(link)
    return _record(
        entry,
        photo_id=parts["id"] if parts else "",
        owner=entry.text("owner_id"),
        username=entry.text("owner_id"),
        name=entry.text("owner"),
        license_text=_license(entry.text("license")),
        urls=_build_links(link),
        tags=entry.text("keyword"),
    )


def _open_images(entry: RawRecord) -> SourceRecord:
    # Some of its links to pages are broken; the links to pictures tell the id, too.
    page, full = entry.url("OriginalLandingURL"), entry.url("OriginalURL")
    number = _PHOTO.search(page) or _STATIC.fullmatch(full)
    owner = _OWNER.search(page) or _OWNER.search(entry.url("AuthorProfileURL"))
    name = entry.text("Author")
    return _record(
        entry,
        photo_id=number["id"] if number else "",
        owner=owner[1] if owner else "",
        username=owner[1] if owner else "",
        name=name,
        license_text=entry.text("License"),
        urls=five_links(
            **_build_links(entry.url("Thumbnail300KURL"), small_only=True),
            large=entry.url("Thumbnail300KURL"),
            full=full,
        ),
        title=entry.text("Title"),
    )


def _record(
    entry: RawRecord,
    *,
    photo_id: str,
    owner: str,
    username: str,
    name: str,
    license_text: str,
    urls: dict[str, str],
    title: str = "",
    description: str = "",
    tags: str = "",
    width: int = 0,
    height: int = 0,
    day: str = "",
) -> SourceRecord:
    profile = f"{_HOME}/photos/{owner}/" if re.fullmatch(r"[\w@.-]+", owner, re.ASCII) else ""
    page = f"{profile}{photo_id}" if profile and photo_id.isdigit() else ""
    title = title or entry.text("title", "_content") or entry.text("title")
    license_type, license_url = read_license(license_text)
    return check_record(
        SourceRecord(
            source="flickr",
            source_photo_id=photo_id,
            origin=("flickr", photo_id),
            image_url=urls["full"],
            urls=urls,
            source_image_url=page,
            links=(("flickr", page),),
            width=width,
            height=height,
            license_type=license_type,
            license_url=license_url,
            title=title,
            photographer_username=username,
            photographer_full_name=name or username,
            photographer_url=profile,
            source_description=". ".join(filter(None, (title, description, tags))),
            uploaded_on=day,
            attribution=credit_line(
                (f"“{title}”" if title else "Photo", page),
                *(" by ", (name or username, profile)) if name or username else (),
                *(", ", (license_label(license_type), license_url)) if license_type else (),
                ", via ",
                ("Flickr", f"{_HOME}/"),
            ),
        )
    )


def _license(number: str) -> str:
    # Anything else than a number of the table is returned as it is, and reported as unknown.
    return _LICENSES[int(number)] if number.isdigit() and int(number) < len(_LICENSES) else number


def _size(entry: RawRecord) -> tuple[int, int]:
    for width, height in (
        ("o_width", "o_height"),
        *((f"width_{s}", f"height_{s}") for s in "olms"),
    ):
        if entry.side(width) and entry.side(height):
            return entry.side(width), entry.side(height)
    return 0, 0


def _build_links(link: str, *, small_only: bool = False) -> dict[str, str]:
    parts = _STATIC.fullmatch(link)
    base = (
        f"https://live.staticflickr.com/{parts['server']}/{parts['id']}_{parts['secret']}"
        if parts
        else ""
    )
    small = {
        "thumb": f"{base}_t.jpg" if base else "",
        "small": f"{base}_m.jpg" if base else "",
        "regular": f"{base}.jpg" if base else "",
    }
    return small if small_only else five_links(**small, full=link)


def search(query: str) -> Walk:
    """Walk through the photos of a query whose licences let anybody use them."""
    return pages(
        "https://api.flickr.com/services/rest/",
        {
            "method": "flickr.photos.search",
            "text": query,
            "license": "4,5,7,8,9,10",
            "media": "photos",
            "content_types": "0",
            "safe_search": "1",
            "extras": "description,license,date_upload,owner_name,path_alias,tags,o_dims,"
            "url_t,url_s,url_m,url_l,url_h,url_k,url_o",
            "per_page": "250",
            "format": "json",
            "nojsoncallback": "1",
        },
        lambda answer, number: number < number_at(answer, "photos", "pages"),
    )


SOURCE = Source(
    name="flickr",
    title="Flickr",
    home=_HOME,
    record=record,
    records_at=("photos", "photo"),
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
    key=Key("FLICKR_API_KEY", "https://www.flickr.com/services/apps/create/", param="api_key"),
)
