"""SourceRecord: what an upstream library says of a photo; RawRecord reads its unchecked JSON."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from searchlab.errors import InputError, quote
from searchlab.photos.licenses import license_url, normal_license
from searchlab.photos.photo import URL_SIZES, web_url
from searchlab.photos.sidecar import MAX_TEXT, Record, plain_characters

_MAX_SIDE = 10**6
_HEX = re.compile(r"#[0-9a-fA-F]{6}", re.ASCII)
_PLAIN_DAY = re.compile(r"(?:19|20)[0-9]{6}", re.ASCII)  # as seconds, days of 1970 alone
_BLUR_HASH = re.compile(r"[0-9A-Za-z#$%*+,\-.:;=?@\[\]^_{|}~]{6,120}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRecord(Record):
    """A record of an upstream library in searchlab's words; empty or 0 where it says nothing.

    Attributes:
        origin: Library that published the photo and its id there: a photo that an aggregator
            passes on keeps the identity that it has at its origin.
        image_url: Base link of the picture.
        urls: Five links by size.
        shown_from_copy: The library wants pictures to be shown from a copy, not by its links.
        width: Pixels of the largest picture.
        height: Pixels of the largest picture.
        color_hex: Dominant colour.
        blur_hash: Placeholder.
        attribution: `html` and `plain`, as the library's guideline asks.
        links: Pages of the photo, at this library and at others that passed it on.
    """

    origin: tuple[str, str]
    image_url: str
    urls: Mapping[str, str]
    shown_from_copy: bool = False
    width: int = 0
    height: int = 0
    color_hex: str = ""
    blur_hash: str = ""
    attribution: Mapping[str, str]
    links: tuple[tuple[str, str], ...] = ()


class RawRecord:
    """One JSON object of an upstream library, read by paths that may lead nowhere.

    A value of another kind than it should be counts as absent: an optional field never makes a
    record useless.

    >>> RawRecord({"user": {"name": " Ann "}, "id": 7}).text("user", "name")
    'Ann'
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Wrap a JSON object.

        Raises:
            InputError: It is none.
        """
        if not isinstance(values, Mapping):
            msg = f"a record must be a JSON object, got {quote(values)}"
            raise InputError(msg)
        self.values = values

    def get(self, *path: str | int) -> Any:
        """Return what lies at a path of keys and positions; None where there is nothing."""
        value: Any = self.values
        for step in path:
            if isinstance(value, Mapping) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def inner(self, *path: str | int) -> RawRecord:
        """Return the object at a path; an empty one where there is none."""
        value = self.get(*path)
        return RawRecord(value if isinstance(value, Mapping) else {})

    def each(self, *path: str | int) -> list[RawRecord]:
        """Return the objects of the list at a path."""
        value = self.get(*path)
        listed = value if isinstance(value, list) else []
        return [RawRecord(one) for one in listed if isinstance(one, Mapping)]

    def text(self, *path: str | int) -> str:
        """Return a text, or a whole number as text, without control characters."""
        value = self.get(*path)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
            return str(value)
        return plain_characters(value)[:MAX_TEXT] if isinstance(value, str) else ""

    def first(self, *path: str | int) -> str:
        """Return a text, or the first text of a list or of a map of languages."""
        value = self.get(*path)
        while isinstance(value, Mapping | list) and value:
            value = next(iter(value.values() if isinstance(value, Mapping) else value))
        return plain_characters(value)[:MAX_TEXT] if isinstance(value, str) else ""

    def words(self, *path: str | int) -> str:
        """Return a list of texts, or of objects with a `name`, joined by commas."""
        value = self.get(*path)
        if not isinstance(value, list):
            return ""
        names = [one.get("name") if isinstance(one, Mapping) else one for one in value]
        texts = [plain_characters(name) for name in names if isinstance(name, str)]
        return ", ".join(filter(None, texts))[:MAX_TEXT]

    def url(self, *path: str | int) -> str:
        """Return a web address; one without a scheme gets https."""
        return as_url(self.get(*path))

    def side(self, *path: str | int) -> int:
        """Return a number of pixels; 0 where it is none."""
        value = self.get(*path)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 8:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return 0
        return int(value) if 0 < value <= _MAX_SIDE else 0

    def day(self, *path: str | int) -> str:
        """Return the day of an ISO time or of seconds since 1970 as `YYYY-MM-DD`."""
        value = self.get(*path)
        try:
            if isinstance(value, int | str) and _PLAIN_DAY.fullmatch(str(value)):
                return datetime.date.fromisoformat(str(value)).isoformat()
            if isinstance(value, str) and re.fullmatch(r"[0-9]{1,13}", value):
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool):
                seconds = value / 1_000 if value > 10**11 else value
                return datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC).date().isoformat()
            return datetime.date.fromisoformat(value[:10]).isoformat()
        except (TypeError, ValueError, OverflowError, OSError):
            return ""

    def color(self, *path: str | int) -> str:
        """Return a colour as `#` and six hex digits."""
        value = self.text(*path)
        return value.lower() if _HEX.fullmatch(value) else ""

    def blur_hash(self, *path: str | int) -> str:
        """Return a blur hash."""
        value = self.text(*path)
        return value if _BLUR_HASH.fullmatch(value) else ""


def as_url(value: object) -> str:
    """Return a web address that may be linked to, or an empty text."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return ""
    value = value.strip()
    return web_url(f"https:{value}" if value.startswith("//") else value)


def five_links(
    *, thumb: str = "", small: str = "", regular: str = "", large: str = "", full: str = ""
) -> dict[str, str]:
    """Return the five links of a photo.

    For a size that a library does not offer, the link of the next larger one is taken, or else that
    of the next smaller one: a link that is known to work instead of one that is guessed.
    """
    links = dict(zip(URL_SIZES, (thumb, small, regular, large, full), strict=True))
    order = [links[size] for size in URL_SIZES]
    return {
        size: next(filter(None, [*order[place:], *reversed(order[:place])]), "")
        for place, size in enumerate(URL_SIZES)
    }


def read_license(*texts: str, version: str = "", url: str = "") -> tuple[str, str]:
    """Return the name of a licence in searchlab's vocabulary and the address of its text.

    Args:
        texts: What the library calls it; the first that is known counts.
        version: Its version, where the library gives it separately.
        url: Its address, which counts before names.

    Raises:
        InputError: The library names a licence that the vocabulary does not have.
    """
    name = normal_license(url) if url else ""
    name = name or next(filter(None, (normal_license(one, version=version) for one in texts)), "")
    if not name and any((url, *texts)):
        unknown = next(filter(None, (*texts, url)))
        msg = f"its licence must be a known one, got {quote(unknown)}"
        raise InputError(msg)
    return name, url.replace("http://creativecommons.org", "https://creativecommons.org") or (
        license_url(name)
    )


def check_record(record: SourceRecord) -> SourceRecord:
    """Return a record with every link emptied that is no web address, as hostile values make them.

    Raises:
        InputError: It has no id or no picture.
    """
    if not record.source_photo_id:
        msg = f"a record of {record.source} must have an id, got none"
        raise InputError(msg)
    if not record.urls["full"]:
        msg = f"a record of {record.source} must link to its picture, got no link"
        raise InputError(msg)
    return replace(
        record,
        source_image_url=as_url(record.source_image_url),
        photographer_url=as_url(record.photographer_url),
        license_url=as_url(record.license_url),
        links=tuple((library, page) for library, page in record.links if as_url(page)),
    )
