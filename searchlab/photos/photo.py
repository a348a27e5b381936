"""Photo: the one record that every library's pictures become, with the specification's fields."""

from __future__ import annotations

import datetime
import html
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from searchlab.errors import InputError, quote

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "searchlab.photo")

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_EPOCH = datetime.date(1970, 1, 1)
_DIRECTION_CONTROLS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))

ORIENTATIONS = ("landscape", "portrait", "square")
URL_SIZES = ("thumb", "small", "regular", "large", "full")

PHOTO_FIELDS = (
    "photo_id",
    "source_photo_id",
    "image_url",
    "urls",
    "source_image_url",
    "width",
    "height",
    "orientation",
    "blur_hash",
    "color_name",
    "color_hex",
    "source",
    "license_type",
    "photographer_username",
    "photographer_full_name",
    "photographer_url",
    "source_description",
    "description",
    "alt_description",
    "relevance_score",
    "uploaded_on",
    "attribution",
)

OWNERS_FIELDS = ("file", "folder", "tags", "place", "latitude", "longitude", "rating")
"""Attributes of a `Photo` that others are not shown unless its owner says so."""


def photo_id_of(source: str, source_photo_id: str) -> str:
    """Return the stable id of a photo: the UUIDv5 of its library and its id there.

    >>> photo_id_of("unsplash", "abc") == photo_id_of("unsplash", "abc")
    True
    """
    return str(uuid.uuid5(NAMESPACE, json.dumps([source, source_photo_id])))


def day_number(text: str, *, name: str) -> int:
    """Turn `YYYY-MM-DD` into days since 1970-01-01.

    Raises:
        InputError: It is no such day; the message calls it `name`.
    """
    try:
        if not _DAY.fullmatch(text):
            raise ValueError
        return (datetime.date.fromisoformat(text) - _EPOCH).days
    except (TypeError, ValueError):
        msg = f"{name} must be a day as YYYY-MM-DD, got {quote(text)}"
        raise InputError(msg) from None


def iso_day(number: int) -> str:
    """Turn days since 1970-01-01 into `YYYY-MM-DD`."""
    return (_EPOCH + datetime.timedelta(days=number)).isoformat()


def orientation_of(width: int, height: int) -> str:
    """Name the orientation of a displayed picture: square only where the sides are equal.

    >>> orientation_of(1200, 1200), orientation_of(1201, 1200), orientation_of(3, 4)
    ('square', 'landscape', 'portrait')
    """
    if width == height:
        return "square"
    return "landscape" if width > height else "portrait"


@dataclass(frozen=True, kw_only=True, slots=True)
class Photo:
    """One photo, with all fields of the specification except the score, which a result has.

    Attributes:
        photo_id: UUID-shaped and unique in a library on disk.
        source_photo_id: Identifier in the upstream library.
        image_url: Base image link.
        urls: Five links by size: thumb, small, regular, large, full.
        source_image_url: Page of the photo at the upstream library; empty where there is none.
        width: Pixels of the displayed picture.
        height: Pixels of the displayed picture.
        orientation: `landscape`, `portrait` or `square`.
        blur_hash: Compact placeholder.
        color_name: Family of the dominant colour.
        color_hex: Dominant colour, `#` and six hex digits.
        source: Upstream library.
        license_type: Lower-case licence name.
        photographer_username: Empty where unknown, like the two fields below.
        photographer_full_name: Name for display.
        photographer_url: Profile page.
        source_description: Caption by the upstream library or photographer.
        description: Generated long description.
        alt_description: Short accessibility text, generated unless the record brought one.
        uploaded_on: `YYYY-MM-DD`.
        attribution: `html` and `plain`, ready to display.
        file: Path of the picture on this machine; empty for photos that live elsewhere.
        sha256: Hex digest of the picture's bytes; empty where they were never read.
        folder: Where the file lies, from the name of the indexed folder on, `/` between names.
        title: The photo's own title.
        tags: Keywords that people gave it.
        place: Where it was taken, in words, such as `Alfama, Lisbon, Portugal`.
        latitude: Degrees, north positive; None where unknown, as is `longitude` then.
        longitude: Degrees, east positive.
        rating: Stars from 1 to 5; 0 for none, -1 for a photo that its owner rejected.
        palette: Up to five (hex, percent of the picture) pairs, the largest first.

    What follows `attribution` is the owner's, and searchlab's own palette: it is no part of the
    record that others are shown.
    """

    photo_id: str
    source_photo_id: str
    image_url: str
    urls: Mapping[str, str]
    source_image_url: str
    width: int
    height: int
    orientation: str
    blur_hash: str
    color_name: str
    color_hex: str
    source: str
    license_type: str
    photographer_username: str
    photographer_full_name: str
    photographer_url: str
    source_description: str
    description: str
    alt_description: str
    uploaded_on: str
    attribution: Mapping[str, str]
    file: str = ""
    sha256: str = ""
    folder: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    place: str = ""
    latitude: float | None = None
    longitude: float | None = None
    rating: int = 0
    palette: tuple[tuple[str, int], ...] = ()

    def to_dict(self, *, relevance_score: float) -> dict[str, Any]:
        """Return the record as the specification names and orders it, all 22 fields."""
        values = {name: getattr(self, name) for name in PHOTO_FIELDS if name != "relevance_score"}
        values |= {"urls": dict(self.urls), "attribution": dict(self.attribution)}
        values["relevance_score"] = relevance_score
        return {name: values[name] for name in PHOTO_FIELDS}


def web_url(value: str) -> str:
    """Return an http or https URL unchanged and anything else as an empty string.

    An `href` must never hold a script, so only these two schemes pass.

    >>> web_url("javascript:alert(1)"), web_url("https://example.org/a")
    ('', 'https://example.org/a')
    """
    if " " in value or not value.isprintable():  # no other blank is printable
        return ""
    try:
        parts = urlsplit(value)
    except ValueError:
        return ""
    return value if parts.scheme in {"http", "https"} and parts.netloc else ""


def attribution_of(
    *,
    title: str,
    photographer: str,
    license_type: str,
    page: str,
    profile: str,
    license_url: str,
    copyright_notice: str = "",
) -> dict[str, str]:
    """Build the credit line of a photo, as markup and as text.

    Every part is optional; what is unknown is left out, never invented. The markup holds nothing
    but links and escaped text.

    Args:
        title: The photo's own title.
        photographer: Name for display.
        license_type: Name of the licence.
        page: URL of the photo's page.
        profile: URL of the photographer's page.
        license_url: URL of the licence.
        copyright_notice: As the owner wrote it; stands where no photographer is known.

    Returns:
        `html` and `plain`; both empty where nothing is known.
    """
    title, photographer, license_type = map(_line, (title, photographer, license_type))
    notice = _line(copyright_notice)
    if not (title or photographer or license_type or web_url(page) or notice):
        return {"html": "", "plain": ""}
    parts: list[str | tuple[str, str]] = [(f"“{title}”" if title else "Photo", page)]
    if photographer:
        parts += [" by ", (photographer, profile)]
    elif notice:
        parts.append(f", {notice}")
    if license_type:
        parts += [" ", (f"({license_type})", license_url)]
    return credit_line(*parts)


def credit_line(*parts: str | tuple[str, str]) -> dict[str, str]:
    """Join pieces of a credit, as markup and as text.

    Args:
        parts: Plain text, or a text and the address that it links to. Everything is escaped, and
            only web addresses become links.

    Returns:
        `html` and `plain`.

    >>> credit_line("Photo by ", ("<Ann>", "https://example.org/?a&b"), ".")["plain"]
    'Photo by <Ann>.'
    """
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    return {
        "html": "".join(_link(_piece(text), url) for text, url in pairs).strip(),
        "plain": "".join(_piece(text) for text, _ in pairs).strip(),
    }


def _piece(text: str) -> str:
    # On one line, but with the blanks at its ends, which separate it from the pieces around it.
    line = _line(text)
    if not line:
        return " " * bool(text)
    return f"{' ' * text[0].isspace()}{line}{' ' * text[-1].isspace()}"


def _line(text: str) -> str:
    # On one line, without control characters that reverse the direction of the text around it.
    return " ".join(text.translate(_DIRECTION_CONTROLS).split())


def _link(text: str, url: str) -> str:
    safe = web_url(url)
    if not safe:
        return html.escape(text)
    return f'<a href="{html.escape(safe)}" rel="noopener">{html.escape(text)}</a>'


def check_fields(names: list[str]) -> tuple[str, ...]:
    """Check a selection of Photo fields and return it in the specification's order.

    Raises:
        InputError: A name that is no Photo field.
    """
    unknown = sorted(set(names) - set(PHOTO_FIELDS))
    if unknown:
        msg = f"fields must be names among {', '.join(PHOTO_FIELDS)}, got {unknown}"
        raise InputError(msg)
    return tuple(name for name in PHOTO_FIELDS if name in set(names))
