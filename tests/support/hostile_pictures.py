"""Files of pictures, built chunk by chunk so that any part of them can lie."""

import struct
import zlib

from PIL import Image

from searchlab.api.http.decoding import open_upload
from searchlab.api.wire.errors import HttpProblem, problem_of
from searchlab.errors import ImageError
from tests.support.pictures import encoded

KINDS = ("JPEG", "PNG", "WEBP", "AVIF")
RED = (220, 30, 30)


def look(content):
    """The size of the picture as displayed, or the status that refuses it."""
    try:
        return open_upload(bytes(content), side=400).size
    except ImageError as error:
        problem = problem_of(error)
        return problem.kind.status if isinstance(problem, HttpProblem) else 422


def plain(kind, size=(64, 48), **options):
    return encoded(Image.new("RGB", size, RED), kind, **options)


def segment(marker, data=b""):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data


def jpeg(*segments, rest=None):
    """A JPEG with something put in behind its first two bytes."""
    return b"\xff\xd8" + b"".join(segments) + (plain("JPEG") if rest is None else rest)[2:]


def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, *extra, data=None, depth=8, color=2, packed=None):
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    if packed is None:
        row = 1 + -(-width * depth * {0: 1, 2: 3, 3: 1, 6: 4}[color] // 8)
        packed = zlib.compress(bytes(row * height) if data is None else data)
    parts = [chunk(b"IHDR", header), *extra, chunk(b"IDAT", packed), chunk(b"IEND")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def riff(*chunks):
    body = b"WEBP" + b"".join(
        kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
        for kind, data in chunks
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


def exif_block(*entries, order="<", start=8):
    head = {"<": b"II*\0", ">": b"MM\0*"}[order]
    body = b"".join(struct.pack(order + "HHII", *entry) for entry in entries)
    return head + struct.pack(order + "IH", start, len(entries)) + body + bytes(4)


def three(number):
    return struct.pack("<I", number)[:3]


def animated_webp(n_frames):
    frame = plain("WEBP", (4, 3), lossless=True)[12:]
    place = three(0) + three(0) + three(3) + three(2) + three(40) + b"\0"
    canvas = b"\x02\0\0\0" + three(3) + three(2)
    frames = [(b"ANMF", place + frame)] * n_frames
    return riff((b"VP8X", canvas), (b"ANIM", bytes(6)), *frames)


ENDLESS = exif_block(*[(300 + number, 1, 60_000, 8) for number in range(4_900)])
