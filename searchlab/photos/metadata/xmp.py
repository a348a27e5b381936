"""XMP: title, description, keywords, rating, creator and place, in a file or in one beside it.

Entities and document types are refused, so that nothing is expanded and nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from searchlab.errors import InputError
from searchlab.photos.metadata.values import clean_text, day_of, license_of, names_of
from searchlab.photos.sidecar import Record, clean_tags, is_position

MAX_PACKET: Final = 2 * 2**20
_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_LANG: Final = "{http://www.w3.org/XML/1998/namespace}lang"
_DC: Final = "{http://purl.org/dc/elements/1.1/}"
_XMP: Final = "{http://ns.adobe.com/xap/1.0/}"
_RIGHTS: Final = "{http://ns.adobe.com/xap/1.0/rights/}"
_PHOTOSHOP: Final = "{http://ns.adobe.com/photoshop/1.0/}"
_EXIF: Final = "{http://ns.adobe.com/exif/1.0/}"
_CORE: Final = "{http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/}"
_EXT: Final = "{http://iptc.org/std/Iptc4xmpExt/2008-02-29/}"
_LIGHTROOM: Final = "{http://ns.adobe.com/lightroom/1.0/}"
_DIGIKAM: Final = "{http://www.digikam.org/ns/1.0/}"
_CC: Final = "{http://creativecommons.org/ns#}"
_DEGREES: Final = re.compile(
    r"(\d{1,3})(?:,(\d{1,2}(?:\.\d+)?))?(?:,(\d{1,2}(?:\.\d+)?))?([NSEW])", re.ASCII | re.IGNORECASE
)


def read_xmp_sidecar(path: Path) -> Record:
    """Read an `.xmp` file.

    Raises:
        InputError: It is none, or too large.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        packet = file.read(MAX_PACKET + 1)
    try:
        return xmp_record(packet)
    except ValueError as error:
        raise InputError(str(error)) from error


def xmp_record(packet: bytes, *, only_taken: bool = False) -> Record:
    """Read what an XMP packet says of the photo.

    Of a text in several languages the one that is marked `x-default` counts, else the first.

    Args:
        packet: The packet.
        only_taken: Whether no day of digitising stands for one of taking that is not given.

    Raises:
        ValueError: It is no XMP, too large, or declares a document type or entities.
    """
    xmp = _Properties(_parse(packet))
    rights = xmp.text(f"{_DC}rights")
    license_type, url = license_of(
        xmp.text(f"{_CC}license"),
        xmp.text(f"{_RIGHTS}WebStatement"),
        xmp.text(f"{_RIGHTS}UsageTerms"),
        rights,
    )
    days = [f"{_EXIF}DateTimeOriginal", f"{_PHOTOSHOP}DateCreated"]
    days += [f"{_XMP}CreateDate"] * (not only_taken)
    latitude, longitude = _position(xmp)
    return Record(
        title=xmp.text(f"{_DC}title") or xmp.text(f"{_PHOTOSHOP}Headline"),
        source_description=xmp.text(f"{_DC}description"),
        alt_description=xmp.text(f"{_CORE}AltTextAccessibility"),
        photographer_full_name=names_of(xmp.texts(f"{_DC}creator")),
        copyright=rights,
        license_type=license_type,
        license_url=url,
        uploaded_on=next(filter(None, (day_of(xmp.text(name)) for name in days)), ""),
        tags=clean_tags(_keywords(xmp)),
        place=_place(xmp),
        latitude=latitude,
        longitude=longitude,
        rating=_rating(xmp.text(f"{_XMP}Rating")),
    )


def _parse(packet: bytes) -> Element:
    from defusedxml.ElementTree import fromstring

    if len(packet) > MAX_PACKET:
        msg = f"XMP must have at most {MAX_PACKET:,} bytes, got more"
        raise ValueError(msg)
    is_utf16 = packet.startswith((b"\xfe\xff", b"\xff\xfe"))
    text = packet if is_utf16 else packet.strip(b"\0 \t\r\n")
    try:
        root: Element = fromstring(text, forbid_dtd=True)
    except (SyntaxError, ValueError, LookupError) as error:  # the last of unknown encodings
        msg = f"XMP must be XML without a document type, got: {error}"
        raise ValueError(msg) from error
    return root


class _Properties:
    """The properties of a packet by their names, written as attributes or as elements."""

    def __init__(self, root: Element) -> None:
        self._attributes: dict[str, str] = {}
        self._elements: dict[str, Element] = {}
        # Descriptions further in are of other pictures, such as those a montage was made of.
        whole = (about for rdf in root.iter(f"{_RDF}RDF") for about in rdf)
        for about in (each for each in whole if each.tag == f"{_RDF}Description"):
            for name, text in about.attrib.items():
                self._attributes.setdefault(name, text)
            for element in about:
                self._elements.setdefault(element.tag, element)

    def texts(self, name: str) -> list[str]:
        """Return the texts of a property, those of a language alternative by preference."""
        element = self._elements.get(name)
        if element is None:
            return [text] if (text := clean_text(self._attributes.get(name, ""))) else []
        items = [item for listed in element for item in listed if item.tag == f"{_RDF}li"]
        items.sort(key=lambda item: item.get(_LANG, "").lower() != "x-default")
        raw = [item.text or "" for item in items]
        if not items:
            raw = [element.get(f"{_RDF}resource") or element.text or ""]
        return [text for text in map(clean_text, raw) if text]

    def text(self, name: str) -> str:
        """Return the first text of a property; empty if it has none."""
        return next(iter(self.texts(name)), "")

    def parts(self, name: str) -> dict[str, str]:
        """Return the parts of the first structure of a property."""
        element = self._elements.get(name)
        parts: dict[str, str] = {}
        for one in () if element is None else element.iter():
            for part, text in {**one.attrib, one.tag: one.text or ""}.items():
                parts.setdefault(part, text)
        return {part: clean_text(text) for part, text in parts.items()}


def _keywords(xmp: _Properties) -> Iterator[str]:
    yield from xmp.texts(f"{_DC}subject")
    yield from xmp.texts(f"{_EXT}PersonInImage")
    for name, mark in ((f"{_LIGHTROOM}hierarchicalSubject", "|"), (f"{_DIGIKAM}TagsList", "/")):
        for path in xmp.texts(name):
            if not path.startswith("darktable|"):  # its own notes
                yield from reversed(path.split(mark))


def _place(xmp: _Properties) -> str:
    names = [f"{_CORE}Location", f"{_PHOTOSHOP}City", f"{_PHOTOSHOP}State", f"{_PHOTOSHOP}Country"]
    steps = [xmp.text(name) for name in names]
    if not any(steps):
        made = xmp.parts(f"{_EXT}LocationCreated")
        names = ["LocationName", "Sublocation", "City", "ProvinceState", "CountryName"]
        steps = [made.get(f"{_EXT}{name}", "") for name in names]
    return ", ".join(dict.fromkeys(filter(None, steps)))


def _position(xmp: _Properties) -> tuple[float | None, float | None]:
    latitude = _degrees(xmp.text(f"{_EXIF}GPSLatitude"), "NS")
    longitude = _degrees(xmp.text(f"{_EXIF}GPSLongitude"), "EW")
    if latitude is None or longitude is None or not is_position(latitude, longitude):
        return None, None
    return latitude, longitude


def _degrees(text: str, sides: str) -> float | None:
    parts = _DEGREES.fullmatch(text)
    if parts is None or parts[4].upper() not in sides:
        return None
    total = int(parts[1]) + float(parts[2] or 0) / 60 + float(parts[3] or 0) / 3_600
    return -total if parts[4].upper() == sides[1] else total


def _rating(text: str) -> int:
    stars = re.fullmatch(r"(-1|[0-5])(?:\.0+)?", text, re.ASCII)
    return int(stars[1]) if stars else 0
