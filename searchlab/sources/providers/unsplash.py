"""Unsplash: https://unsplash.com/documentation, https://help.unsplash.com/en/articles/2511315.

Links must be Unsplash's own and keep their `ixid`, by which views are counted; sizes are set by the
parameters of its image server. The guideline wants the photographer and Unsplash named, both linked
with `utm_source` and `utm_medium=referral`.
"""

from __future__ import annotations

from searchlab.photos.licenses import FREE
from searchlab.photos.photo import credit_line
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links
from searchlab.sources.source import Key, Source, Values, Walk, number_at, pages, with_params

_REFERRAL = {"utm_source": "searchlab", "utm_medium": "referral"}
_HOME = "https://unsplash.com"


def record(values: Values) -> SourceRecord:
    """Read a photo object."""
    entry = RawRecord(values)
    photo_id, raw = entry.text("id"), entry.url("urls", "raw")
    username = entry.text("user", "username")
    name = entry.text("user", "name") or username
    profile = entry.url("user", "links", "html")
    page = entry.url("links", "html")
    return check_record(
        SourceRecord(
            source="unsplash",
            source_photo_id=photo_id,
            origin=("unsplash", photo_id),
            image_url=raw or entry.url("urls", "full"),
            urls=five_links(
                thumb=entry.url("urls", "thumb"),
                small=entry.url("urls", "small"),
                regular=entry.url("urls", "regular"),
                large=with_params(raw, w=1920, fit="max", fm="jpg", q=80),
                full=entry.url("urls", "full") or raw,
            ),
            source_image_url=page,
            links=(("unsplash", page),),
            width=entry.side("width"),
            height=entry.side("height"),
            color_hex=entry.color("color"),
            blur_hash=entry.blur_hash("blur_hash"),
            license_type=FREE,
            license_url=f"{_HOME}/license",
            photographer_username=username,
            photographer_full_name=name,
            photographer_url=profile,
            source_description=entry.text("description"),
            alt_description=entry.text("alt_description"),
            uploaded_on=entry.day("created_at"),
            attribution=credit_line(
                *("Photo by ", (name, with_params(profile, **_REFERRAL))) if name else ("Photo",),
                " on ",
                ("Unsplash", with_params(f"{_HOME}/", **_REFERRAL)),
            ),
        )
    )


def search(query: str) -> Walk:
    """Walk through the results of a query."""
    return pages(
        "https://api.unsplash.com/search/photos",
        {"query": query, "per_page": "30"},
        lambda answer, number: number < number_at(answer, "total_pages"),
    )


SOURCE = Source(
    name="unsplash",
    title="Unsplash",
    home=_HOME,
    terms_url=f"{_HOME}/license",
    record=record,
    records_at=("results",),
    record_fields=(
        "width",
        "height",
        "blur_hash",
        "color_hex",
        "photographer_username",
        "photographer_full_name",
        "photographer_url",
        "source_description",
        "alt_description",
        "uploaded_on",
    ),
    one_license=True,
    search=search,
    key=Key(
        "UNSPLASH_ACCESS_KEY",
        "https://unsplash.com/developers",
        header="Authorization",
        before="Client-ID ",
    ),
)
