"""From the bytes of a picture to its facts, its small picture, and what models look at."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from PIL import Image

from searchlab.errors import ImageError
from searchlab.files import write_once
from searchlab.library.cache import Facts
from searchlab.photos.images.decode import (
    MAX_BYTES,
    analyse,
    for_model,
    open_rgb,
    shrink,
    thumbnail,
)
from searchlab.photos.images.headers import sniff
from searchlab.photos.images.memory import MAX_DECODING_BYTES, decoding_bytes, give_memory_back
from searchlab.photos.images.resize import Resize

THUMBNAIL_SIDE = 400
UNREADABLE = "unreadable"
CHANGED = "changed while it was indexed"
"""Why a picture is refused whose file must be looked at anew."""
TOO_LARGE = "needs more memory than there is"
_LARGE_BYTES = 200_000_000  # what so large a picture took is not kept for the next one


@dataclass(frozen=True)
class Decoded:
    """The facts of a picture, and the picture scaled for each input size that models have."""

    digest: str
    facts: Facts
    images: Mapping[int, Image.Image]


Decode: TypeAlias = Callable[[str, Path, frozenset[int]], Decoded]
"""Decodes a picture, given its digest, file and the models' input sizes; see `Decoder`."""


class Memory(Protocol):
    """A budget of memory for decoding."""

    def holding(self, n_bytes: int) -> AbstractContextManager[None]:
        """Hold so much memory."""
        ...


class Room:
    """Memory that pictures share while they are decoded: few large ones, or many small ones."""

    def __init__(self, n_bytes: int) -> None:
        self._free = self._most = n_bytes
        self._changed = threading.Condition()

    @contextmanager
    def holding(self, n_bytes: int) -> Iterator[None]:
        """Wait for some memory, or for all of it if it is too little, and hold it."""
        n_bytes = min(n_bytes, self._most)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= n_bytes)
            self._free -= n_bytes
        try:
            yield
        finally:
            with self._changed:
                self._free += n_bytes
                self._changed.notify_all()


@dataclass(frozen=True)
class Decoder:
    """How pictures are decoded; for several threads at once.

    Attributes:
        side: Short side in pixels that the models and the analysis need.
        thumbnails: Folder of the small pictures.
        resize: How pictures are scaled.
        room: Memory for the pictures that are being decoded, all together.
    """

    side: int
    thumbnails: Path
    resize: Resize
    room: Memory = field(default_factory=lambda: Room(MAX_DECODING_BYTES))

    def __call__(self, digest: str, path: Path, sizes: frozenset[int]) -> Decoded:
        """Decode the picture of a file.

        Args:
            digest: SHA-256 that its content must have.
            path: The file.
            sizes: Input sizes of the models that will look at it.
        """
        try:
            content = _content(digest, path)
        except ImageError as error:
            return Decoded(digest, Facts(problem=error.reason), {})
        needed = decoding_bytes(content, sniff(content) or "", self.side)
        with self.room.holding(needed):
            decoded = self._decode(digest, content, sizes)
            if needed > _LARGE_BYTES:
                give_memory_back()
        return decoded

    def _decode(self, digest: str, content: bytes, sizes: frozenset[int]) -> Decoded:
        try:
            decoded = open_rgb(content, min_side=self.side)
            analysis = analyse(decoded)
        except ImageError as error:
            return Decoded(digest, Facts(problem=error.reason), {})
        except MemoryError:
            return Decoded(digest, Facts(problem=TOO_LARGE), {})
        facts = Facts(
            width=decoded.width,
            height=decoded.height,
            shade=int(analysis.color_hex[1:], 16),
            palette=analysis.palette,
            blur_hash=analysis.blur_hash,
            record=decoded.metadata.record(),
        )
        scaled = shrink(decoded.image, self.side, resize=self.resize)
        self._keep_thumbnail(digest, scaled)
        images = {size: for_model(scaled, size, resize=self.resize) for size in sizes}
        return Decoded(digest, facts, images)

    def _keep_thumbnail(self, digest: str, image: Image.Image) -> None:
        small = thumbnail_path(self.thumbnails, digest)
        if not is_kept(small):
            write_once(small, thumbnail(image, THUMBNAIL_SIDE, resize=self.resize))


def thumbnail_path(folder: Path, digest: str) -> Path:
    """Return the path of the small picture of a content.

    Args:
        folder: Folder of the small pictures.
        digest: SHA-256 of the content, in hexadecimal.
    """
    return folder / digest[:2] / f"{digest[:32]}.webp"


def is_kept(small: Path) -> bool:
    """Tell whether a small picture is there; a power cut may have left an empty file."""
    try:
        return small.stat().st_size > 0
    except FileNotFoundError:
        return False


def _content(digest: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        msg = f"a picture must be readable, got {path} ({error.strerror})"
        raise ImageError(msg, reason=UNREADABLE) from error
    # What is cached under a digest must come from bytes with that digest.
    if hashlib.sha256(content).hexdigest() != digest:
        msg = f"a picture must stay as it is while it is indexed, got {path}, which changed"
        raise ImageError(msg, reason=CHANGED)
    return content
