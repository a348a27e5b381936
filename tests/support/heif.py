"""HEIF files for tests: written by pillow-heif, or put together box by box."""

import struct
from functools import lru_cache

from PIL import Image

from tests.support.pictures import RED, encoded


def heic(image, **options):
    """A picture as an encoder writes it."""
    return encoded(image, "HEIF", **options)


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + kind + body


def full_box(kind, *parts, version=0):
    return box(kind, bytes([version, 0, 0, 0]), *parts)


def ispe(width, height):
    """The property that declares a size."""
    return full_box(b"ispe", struct.pack(">II", width, height))


def grid(rows, columns, width, height):
    """The content of an item that is made of tiles."""
    return bytes([0, 1, rows - 1, columns - 1]) + struct.pack(">II", width, height)


@lru_cache
def coded(side):
    """The decoder's settings, as a property, and the bytes of a red square."""
    content = heic(Image.new("RGB", (side, side), RED))
    at = content.find(b"hvcC") - 4
    end = at + struct.unpack_from(">I", content, at)[0]
    return content[at:end], content[content.find(b"mdat") + 4 :]


def assembled(items, properties, references=()):
    """Put a file together whose first item is the picture; the same bytes are stored once.

    `items` are (number, kind, bytes, numbers of properties from 1 on), `references` are
    (kind, from, to several).
    """
    head = box(b"ftyp", b"heic\0\0\0\0mif1heic")
    n_before = len(head) + len(_meta(items, properties, references, {})) + 8
    body, places = b"", {}
    for number, _, content, _ in items:
        known = [
            places[other] for other, _, same, _ in items if other in places and same == content
        ]
        places[number] = known[0] if known else (n_before + len(body), len(content))
        body += b"" if known else content
    return head + _meta(items, properties, references, places) + box(b"mdat", body)


def _meta(items, properties, references, places):
    n = struct.pack(">H", len(items))
    infe = [
        full_box(b"infe", struct.pack(">HH", number, 0), kind, b"\0", version=2)
        for number, kind, _, _ in items
    ]
    places = [
        struct.pack(">HHHII", number, 0, 1, *places.get(number, (0, 0))) for number, *_ in items
    ]
    owners = [
        struct.pack(">HB", number, len(has)) + bytes(128 | one for one in has)
        for number, _, _, has in items
    ]
    referring = [
        box(kind, struct.pack(f">HH{len(others)}H", number, len(others), *others))
        for kind, number, others in references
    ]
    ipma = full_box(b"ipma", struct.pack(">I", len(items)), *owners)
    return full_box(
        b"meta",
        full_box(b"hdlr", bytes(4) + b"pict" + bytes(13)),
        full_box(b"pitm", struct.pack(">H", items[0][0])),
        full_box(b"iloc", b"\x44\0", n, *places),
        full_box(b"iinf", n, *infe),
        full_box(b"iref", *referring) if referring else b"",
        box(b"iprp", box(b"ipco", *properties), ipma),
    )
