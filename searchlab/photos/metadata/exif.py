"""EXIF: who took a photo, when and where, as cameras and phones write it.

Only the few entries that say so are read, so that a block which points to itself, or to the same
bytes a thousand times, costs no more than a plain one.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from searchlab.photos.metadata.values import (
    clean_text,
    day_of,
    decode_text,
    description_of,
    license_of,
    names_of,
)
from searchlab.photos.sidecar import MAX_TEXT, Record, clean_tags, is_position

_DESCRIPTION, _ARTIST, _COPYRIGHT, _CHANGED = 0x010E, 0x013B, 0x8298, 0x0132
_RATING, _XMP, _IPTC, _DETAILS, _GPS = 0x4746, 0x02BC, 0x83BB, 0x8769, 0x8825
_TITLE, _COMMENT, _AUTHOR, _KEYWORDS, _SUBJECT = 0x9C9B, 0x9C9C, 0x9C9D, 0x9C9E, 0x9C9F
_WINDOWS: Final = (_TITLE, _COMMENT, _AUTHOR, _KEYWORDS, _SUBJECT)
_TAKEN, _DIGITIZED = 0x9003, 0x9004
_MAIN: Final = (_DESCRIPTION, _ARTIST, _COPYRIGHT, _CHANGED, _RATING, _DETAILS, _GPS, *_WINDOWS)
_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 10: 8, 13: 4, 129: 1}
_MAX_VALUE: Final = 4 * MAX_TEXT


@dataclass(frozen=True)
class _Block:
    """A TIFF structure.

    Attributes:
        content: From its byte order on.
        order: `<` or `>`, as in `struct`.
    """

    content: bytes
    order: str

    @classmethod
    def of(cls, block: bytes) -> _Block | None:
        block = block[6:] if block.startswith(b"Exif\0\0") else block
        order = {b"II*\0": "<", b"MM\0*": ">"}.get(block[:4])
        return None if order is None or len(block) < 8 else cls(block, order)

    def numbers(self, code: str, at: int) -> tuple[int, ...]:
        numbers: tuple[int, ...] = struct.unpack_from(self.order + code, self.content, at)
        return numbers

    def entries(
        self, start: int, wanted: Collection[int], *, most: int = _MAX_VALUE
    ) -> dict[int, bytes]:
        """Return the bytes of some entries of the directory at a place; the first of each."""
        entries: dict[int, bytes] = {}
        if not 8 <= start <= len(self.content) - 2:
            return entries
        (count,) = self.numbers("H", start)
        for at in range(start + 2, min(start + 2 + 12 * count, len(self.content) - 11), 12):
            tag, kind, n_values = self.numbers("HHI", at)
            size = _SIZES.get(kind, 0) * n_values
            if tag not in wanted or tag in entries or not 0 < size <= most:
                continue
            place = at + 8 if size <= 4 else self.numbers("I", at + 8)[0]
            if place + size <= len(self.content):
                entries[tag] = self.content[place : place + size]
        return entries

    def directory(self, pointer: bytes | None, wanted: Collection[int]) -> dict[int, bytes]:
        """Return some entries of the directory that an entry points to."""
        if pointer is None or len(pointer) != 4:
            return {}
        return self.entries(struct.unpack(self.order + "I", pointer)[0], wanted)


def exif_record(block: bytes, *, only_taken: bool = False) -> Record:
    """Read what an EXIF block, or a TIFF file, says of the photo.

    Dates are days in the camera's own time. A position of 0 and 0 is none.

    Args:
        block: The block.
        only_taken: Whether no other day stands for one of taking that is not given, neither that of
            digitising nor, failing that, that of the last change.

    Raises:
        ValueError: It is no such block.
    """
    exif = _Block.of(block)
    if exif is None:
        msg = f"EXIF must begin with its byte order, got {block[:8]!r}"
        raise ValueError(msg)
    main = exif.entries(exif.numbers("I", 4)[0], _MAIN)
    details = exif.directory(main.get(_DETAILS), (_TAKEN, _DIGITIZED))
    gps = exif.directory(main.get(_GPS), range(5))
    texts = {tag: _text(tag, raw) for tag, raw in (main | details).items()}
    descriptions = [description_of(texts.get(t, "")) for t in (_DESCRIPTION, _SUBJECT, _COMMENT)]
    tags = [_TAKEN] if only_taken else [_TAKEN, _DIGITIZED, _CHANGED]
    days = (day_of(texts.get(tag, "")) for tag in tags)
    license_type, url = license_of(texts.get(_COPYRIGHT, ""))
    latitude, longitude = _position(exif, gps)
    return Record(
        title=texts.get(_TITLE, ""),
        source_description=next(filter(None, descriptions), ""),
        photographer_full_name=names_of([texts.get(_ARTIST) or texts.get(_AUTHOR, "")]),
        copyright=texts.get(_COPYRIGHT, ""),
        license_type=license_type,
        license_url=url,
        uploaded_on=next(filter(None, days), ""),
        tags=clean_tags(texts.get(_KEYWORDS, "").split(";")),
        latitude=latitude,
        longitude=longitude,
        rating=_rating(exif, main.get(_RATING, b"")),
    )


def xmp_in_tiff(content: bytes) -> bytes:
    """Return the XMP packet of a TIFF file; empty where it has none."""
    return _of_tiff(content, _XMP)


def iptc_in_tiff(content: bytes) -> bytes:
    """Return the IPTC block of a TIFF file; empty where it has none."""
    return _of_tiff(content, _IPTC)


def _of_tiff(content: bytes, tag: int) -> bytes:
    tiff = _Block.of(content)
    if tiff is None:
        return b""
    return tiff.entries(tiff.numbers("I", 4)[0], (tag,), most=len(content)).get(tag, b"")


def _text(tag: int, raw: bytes) -> str:
    if tag in _WINDOWS:
        return clean_text(raw.decode("utf-16-le", errors="replace").split("\0")[0])
    if tag == _COPYRIGHT:  # of the photographer and of the editor
        raw = b" ".join(part.strip() for part in raw.split(b"\0")[:2])
    return decode_text(raw.split(b"\0")[0])


def _position(exif: _Block, gps: dict[int, bytes]) -> tuple[float | None, float | None]:
    sides = [
        _degrees(exif, gps.get(2, b""), gps.get(1, b"N")[0] in b"Ss"),
        _degrees(exif, gps.get(4, b""), gps.get(3, b"E")[0] in b"Ww"),
    ]
    latitude, longitude = sides
    if latitude is None or longitude is None or not is_position(latitude, longitude):
        return None, None
    return latitude, longitude


def _degrees(exif: _Block, raw: bytes, is_negative: bool) -> float | None:
    if len(raw) not in (8, 16, 24):
        return None
    numbers = struct.unpack(f"{exif.order}{len(raw) // 4}I", raw)
    total = 0.0
    for place in range(0, len(numbers), 2):
        over, under = numbers[place : place + 2]
        if under == 0 and over:
            return None
        total += over / (under or 1) / 60 ** (place // 2)
    return -total if is_negative else total


def _rating(exif: _Block, raw: bytes) -> int:
    rating = struct.unpack(exif.order + "H", raw)[0] if len(raw) == 2 else 0
    return int(rating) if rating <= 5 else 0
