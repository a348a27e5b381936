"""Matching the ids of vectors with photos: by id, by content, or by a part of the path.

An id may be the `photo_id`, the library's own id, the SHA-256 of the file or of its pixels, or the
path from any folder on, with the ending or without: `/data/coco/val/12.jpg`, `val/12.jpg`, `12`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

_DEEPEST: Final = 12
"""Folders of a path that an id may name."""
_DRIVE: Final = re.compile(r"^[A-Za-z]:(?=/)")


@dataclass(frozen=True)
class NamedPhoto:
    """A photo, by all that it may be called.

    Attributes:
        photo_id: Its id in a library; empty if it has none yet.
        source_photo_id: Its id in the library that it comes from; may be empty.
        sha256: Of its file, in hexadecimal.
        path: Where its file lies.
    """

    photo_id: str
    source_photo_id: str
    sha256: str
    path: Path


class NameIndex:
    """Finds the row of a photo.

    Args:
        names: Ids of the rows, all different.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._rows = {name: row for row, name in enumerate(names)}
        paths = [PurePosixPath(_DRIVE.sub("", name.replace("\\", "/"))) for name in names]
        # Vectors come from another machine: of a whole path, the innermost folder that all share
        # and what follows must be the same here. Without that folder train/1 would be val/1.
        whole = bool(paths) and all(path.is_absolute() for path in paths)
        n_cut = max(_n_shared([path.parent.parts for path in paths]) - 1, 0) if whole else 0
        self._paths = {"/".join(path.parts[n_cut:]): row for row, path in enumerate(paths)}
        self._by_pixels = bool(names) and all(len(name) in (64, 128) for name in names)

    def row_of(self, photo: NamedPhoto) -> int | None:
        """Return the row of a photo; None if no id is one of its names."""
        for name in (photo.photo_id, photo.sha256, photo.source_photo_id):
            if name and name in self._rows:
                return self._rows[name]
        for name in _path_names(photo.path):
            if name in self._paths:
                return self._paths[name]
        return self._rows.get(_pixel_hash(photo.path)) if self._by_pixels else None


def _path_names(path: Path) -> Iterator[str]:
    """Yield the parts of a path that an id may be, the longest first."""
    places = [path]
    if path.is_symlink():
        places.append(path.resolve())  # a dataset's library links to its pictures
    for place in places:
        parts = place.parts
        for depth in range(min(len(parts), _DEEPEST), 0, -1):
            tail = "/".join(parts[-depth:])
            yield tail
            yield tail.removesuffix(place.suffix)


def _n_shared(folders: Sequence[tuple[str, ...]]) -> int:
    first, last = min(folders), max(folders)
    pairs = enumerate(zip(first, last, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(last)))


def _pixel_hash(path: Path) -> str:
    """Return the SHA-256 of the decoded pixels, as MTEB names a picture; empty if unreadable."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()
    except (OSError, ValueError, Image.DecompressionBombError):
        return ""
