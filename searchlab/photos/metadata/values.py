"""Texts, days and licences as metadata of all kinds write them."""

from __future__ import annotations

import datetime
import re

from searchlab.photos.licenses import RESERVED, license_url, normal_license
from searchlab.photos.photo import web_url
from searchlab.photos.sidecar import MAX_TEXT, plain_characters

_DAY = re.compile(r"\s*(\d{4})(?:[-:./]?(\d\d)(?:[-:./]?(\d\d))?)?(?=$|[T\s]|[-:./] {2})", re.ASCII)
_URL = re.compile(r"https?://[^\s<>\"']+")
# Codes of licences that in a notice may as well be words or somebody's initials.
_NO_NOTICES = frozenset({"arr", "attribution", "by", "fal", "free", "nc", "nd", "pd", "sa", "zero"})
# What cameras put where a person would describe a photo.
_BY_CAMERAS = re.compile(
    r"(?:OLYMPUS|SONY|MINOLTA|SAMSUNG|KONICA|KODAK|LEICA|Exif_JPEG|DIGITAL|DSC|CAMERA|PICTURE|"
    r"DCIM|default|cof|ptr|hdr|[\W\d_])*"
)


def clean_text(text: str) -> str:
    """Return a text without control characters and blanks around it, of at most `MAX_TEXT`."""
    return plain_characters(text[: 2 * MAX_TEXT])[:MAX_TEXT]


def decode_text(raw: bytes) -> str:
    """Read a text whose encoding nobody tells: UTF-8 if it is any, else Western European."""
    try:
        return clean_text(raw.decode())
    except UnicodeDecodeError:
        return clean_text(raw.decode("cp1252", errors="replace"))


def day_of(text: str) -> str:
    """Return the day of a time; the first one of the month or year where no more is known.

    >>> day_of("2019:07:04 10:11:12"), day_of("20190704"), day_of("1965")
    ('2019-07-04', '2019-07-04', '1965-01-01')
    >>> day_of("19650000"), day_of("1965-07-00"), day_of("1965:07:   :  :  ")
    ('1965-01-01', '1965-07-01', '1965-07-01')
    >>> day_of("0000:00:00 00:00:00"), day_of("    :  :  ")
    ('', '')
    """
    parts = _DAY.match(text)
    if parts is None:
        return ""
    year, month, day = (int(part or 0) for part in parts.groups())
    try:
        return datetime.date(year, month or 1, day or 1).isoformat()
    except ValueError:
        return ""


def description_of(text: str) -> str:
    """Return a description; empty for the names that cameras write in its place.

    >>> description_of("OLYMPUS DIGITAL CAMERA"), description_of("My camera")
    ('', 'My camera')
    """
    return "" if _BY_CAMERAS.fullmatch(text) else text


def names_of(people: list[str]) -> str:
    """Join names of people, each of which may be several parted by `;`."""
    names = [name.strip() for one in people for name in one.split(";")]
    return ", ".join(dict.fromkeys(filter(None, names)))


def license_of(*texts: str) -> tuple[str, str]:
    """Return the licence that notices or addresses name, and its address; empty if none is known.

    >>> license_of("© 2019 Ann Lee", "https://creativecommons.org/licenses/by/4.0/")
    ('cc-by-4.0', 'https://creativecommons.org/licenses/by/4.0/')
    >>> license_of("(c) Ann Lee. All rights reserved.")
    ('all-rights-reserved', '')
    """
    for text in texts:
        for url in _URL.findall(text):
            address = web_url(url.rstrip(".,;)"))
            if name := normal_license(address):
                return name, address
        is_word = text.strip(" ().").lower() in _NO_NOTICES
        if not is_word and (name := normal_license(text[:200])):
            return name, license_url(name)
        if "all rights reserved" in text.lower():
            return RESERVED, ""
    return "", ""
