"""IPTC-IIM: title, caption, keywords, credit and place, as picture agencies have written them."""

from __future__ import annotations

from typing import Final

from searchlab.photos.metadata.values import (
    clean_text,
    day_of,
    decode_text,
    license_of,
    names_of,
)
from searchlab.photos.sidecar import Record, clean_tags

_TITLE, _KEYWORD, _DAY, _CREATOR, _HEADLINE, _NOTICE, _CAPTION = 5, 25, 55, 80, 105, 116, 120
_CITY, _PART_OF_CITY, _STATE, _COUNTRY = 90, 92, 95, 101
_UTF8: Final = b"\x1b%G"
_MOST: Final = 10_000


def iptc_record(block: bytes) -> Record:
    """Read what an IPTC block says of the photo.

    Raises:
        ValueError: It is no such block.
    """
    if not block.startswith(b"\x1c"):
        msg = f"IPTC must begin with 1c, got {block[:8]!r}"
        raise ValueError(msg)
    texts = _texts(block)

    def first(*numbers: int) -> str:
        return next((texts[number][0] for number in numbers if number in texts), "")

    license_type, url = license_of(first(_NOTICE))
    place = (first(number) for number in (_PART_OF_CITY, _CITY, _STATE, _COUNTRY))
    return Record(
        title=first(_TITLE, _HEADLINE),
        source_description=first(_CAPTION),
        photographer_full_name=names_of(texts.get(_CREATOR, [])),
        copyright=first(_NOTICE),
        license_type=license_type,
        license_url=url,
        uploaded_on=day_of(first(_DAY)),
        tags=clean_tags(texts.get(_KEYWORD, [])),
        place=", ".join(dict.fromkeys(filter(None, place))),
    )


def _texts(block: bytes) -> dict[int, list[str]]:
    """Return the texts of the second record by their number, up to where it is damaged."""
    texts: dict[int, list[str]] = {}
    at, is_utf8 = 0, False
    for _ in range(_MOST):
        if block[at : at + 1] != b"\x1c" or at + 5 > len(block):
            break
        record, number = block[at + 1], block[at + 2]
        size = int.from_bytes(block[at + 3 : at + 5], "big")
        at += 5
        if size & 0x8000:  # a long one: so many bytes tell its length
            n_bytes = size & 0x7FFF
            size = int.from_bytes(block[at : at + min(n_bytes, 8)], "big")
            at += n_bytes
        raw = block[at : at + size]
        at += size
        if (record, number) == (1, 90):
            is_utf8 = raw == _UTF8
        elif record == 2:
            text = clean_text(raw.decode(errors="replace")) if is_utf8 else decode_text(raw)
            if text:
                texts.setdefault(number, []).append(text)
    return texts
