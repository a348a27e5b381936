"""Decoding: a process that turns uploaded pictures into what a model sees, and that can be stopped.

It reads pictures from standard input, one after the other, and writes small RGB pictures, or why it
refuses them. Decoders are large, old and fed by strangers, so the process has limits of memory and
of time, gives way to searches (`NICE`), and knows nothing but the picture.
"""

from __future__ import annotations

import json
import math
import os
import resource
import select
import struct
import sys
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from PIL import Image

from searchlab.errors import ImageError
from searchlab.photos.images.decode import WORKING_SIDE, check_format, for_model, open_rgb
from searchlab.photos.images.effort import decoding_effort
from searchlab.photos.images.memory import give_memory_back

# With these a decoder needs about 1 GB at worst; a JPEG can be decoded at an eighth of its size.
MAX_UPLOAD_PIXELS: Final = {
    "JPEG": 128_000_000,
    "PNG": 40_000_000,
    "WEBP": 40_000_000,
    "AVIF": 40_000_000,
}
MAX_EFFORT: Final = 1_600_000_000
"""Pixels times passes of a picture: twelve passes over the largest JPEG; encoders make ten."""
NICE: Final = 10
"""On a core that searches use, decoding gets a tenth."""
MEMORY_BYTES: Final = 1_536 * 2**20
# After a larger picture the process ends, for what was allocated is seldom given back.
_KEPT_BYTES: Final = 256 * 2**20
REQUEST: Final = struct.Struct("<QId")  # bytes of the picture, input size of the model, seconds
ANSWER: Final = struct.Struct("<BBIIQ")  # refused, last, width, height, bytes of what follows


READY: Final = b"\1"
"""Written once a process has started; what ends before is no fault of a picture."""


class DecodeRefusal(NamedTuple):
    """Why a picture is refused, as `ImageError` says."""

    reason: str
    message: str


def check_effort(content: bytes) -> int:
    """Return pixels times passes of an upload; see `decoding_effort`.

    Raises:
        ImageError: It is more than any sensible picture takes, or the format is not accepted.
    """
    kind = check_format(content, MAX_UPLOAD_PIXELS)
    most_pixels = MAX_UPLOAD_PIXELS[kind]
    pixels, passes = decoding_effort(content, kind)
    effort = min(pixels, most_pixels) * passes  # of more, the decoder goes over none
    if effort > MAX_EFFORT and pixels <= most_pixels:
        msg = (
            f"a picture must take {MAX_EFFORT:,} pixels times passes or less, got a {kind} with "
            f"{effort:,}; save it anew"
        )
        raise ImageError(msg, reason="too complex")
    return effort


def open_upload(content: bytes, *, side: int) -> Image.Image:
    """Decode an untrusted picture within the limits of uploads.

    Args:
        content: Bytes of the file.
        side: Least pixels of the short side, for decoders that can shrink while they read.

    Returns:
        RGB in sRGB, rotated upright.

    Raises:
        ImageError: The picture is refused.
    """
    check_effort(content)
    format = check_format(content, MAX_UPLOAD_PIXELS)
    limit = MAX_UPLOAD_PIXELS[format]
    picture = open_rgb(content, min_side=side, formats=[format], max_pixels=limit).image
    picture.info.clear()  # it is upright already, so the orientation in EXIF is no longer true
    return picture


def open_for_model(content: bytes, input_size: int) -> Image.Image:
    """Decode an upload and scale it to a model's input size, as photos and queries are.

    Raises:
        ImageError: The picture is refused.
    """
    return for_model(open_upload(content, side=max(WORKING_SIDE, input_size)), input_size)


def main() -> None:
    """Run as `python -m searchlab.api.http.decoding [IDLE_S]`, until the end of standard input.

    Without a picture for IDLE_S seconds it ends by itself; `inf`, the default, is for ever.
    """
    idle_s = float(sys.argv[1]) if len(sys.argv) > 1 else math.inf
    os.nice(NICE)
    _limit(resource.RLIMIT_AS, _address_space() + MEMORY_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    # Whatever a decoder prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    answers.write(READY)
    requests = sys.stdin.buffer
    wait_s = None if math.isinf(idle_s) else idle_s
    while select.select([requests], [], [], wait_s)[0] and _answer_next(requests, answers):
        give_memory_back()


def _answer_next(requests: BinaryIO, answers: BinaryIO) -> bool:
    head = requests.read(REQUEST.size)
    if len(head) < REQUEST.size:
        return False
    n_bytes, input_size, seconds = REQUEST.unpack(head)
    content = requests.read(n_bytes)
    if len(content) < n_bytes:
        return False
    _limit_time(seconds)
    try:
        picture = open_for_model(content, input_size)
        (width, height), body = picture.size, picture.tobytes()
        refused = False
    except (ImageError, MemoryError) as error:
        refused, width, height = True, 0, 0
        body = json.dumps(_refusal(error)).encode()
    last = _peak_bytes() > _KEPT_BYTES
    answers.write(ANSWER.pack(refused, last, width, height, len(body)))
    view = memoryview(body)
    while view:
        view = view[answers.write(view) :]
    return not last


def _refusal(error: ImageError | MemoryError) -> DecodeRefusal:
    if isinstance(error, ImageError):
        return DecodeRefusal(error.reason, str(error))
    most = f"{MEMORY_BYTES // 2**20:,} MiB"
    msg = f"a picture must be decoded in {most} of memory, got one that needs more; scale it down"
    return DecodeRefusal("too complex", msg)


def _limit_time(seconds: float) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, math.ceil(usage.ru_utime + usage.ru_stime + seconds))


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _peak_bytes() -> int:
    # Not `ru_maxrss`, which counts what the process that started this one held.
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:  # a system without it
        return 0
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024


def _address_space() -> int:
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        return int(pages) * resource.getpagesize()
    except OSError:  # a system without it
        return 2**30


if __name__ == "__main__":
    main()
