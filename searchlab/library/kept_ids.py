"""Kept ids: a photo stays the same photo when something is written into its file.

A photo without an id of its library is known by the content that its file had at first. Programs
that write titles, keywords or ratings into files change that content, and some encode the picture
anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from searchlab.library.cache import ContentCache, Facts
from searchlab.library.decoding import thumbnail_path
from searchlab.library.scan import Picture
from searchlab.photos.table import PhotoTable

_CONTENT = re.compile("[0-9a-f]{64}")
# Mean difference of small pictures, 0 to 255. Of 500 photos that were encoded again as JPEG of
# quality 95 all were below 3.5; the most alike of different ones were 13 apart.
_MOST_APART = 5.0


def keep_moved(pictures: Sequence[Picture], before: PhotoTable | None) -> list[Picture]:
    """Note the first content of pictures whose present content is known, wherever they lie now.

    Args:
        pictures: The scanned pictures.
        before: The photos of the state before, if there is one.
    """
    if before is None:
        return list(pictures)
    here = {picture.sha256 for picture in pictures}
    first = {
        digest: named
        for digest, named in zip(before.texts("sha256"), _names(before), strict=True)
        if named != digest and digest in here and _may_stand(named, here)
    }
    return [_note(picture, first.get(picture.sha256)) for picture in pictures]


def keep_edited(
    pictures: Sequence[Picture],
    before: PhotoTable | None,
    cache: ContentCache,
    thumbnails: Path,
) -> list[Picture]:
    """Note the first content of pictures that lie where they lay, looking the same in other bytes.

    Args:
        pictures: The scanned pictures, after `keep_moved`.
        before: The photos of the state before, if there is one.
        cache: Holds the facts of all of them.
        thumbnails: Folder of their small pictures.
    """
    if before is None:
        return list(pictures)
    here = {picture.sha256 for picture in pictures}
    known = here.intersection(before.texts("sha256"))
    new = {str(one.path): one.sha256 for one in pictures if one.sha256 not in known}
    taken = here | {picture.first_sha256 for picture in pictures}
    rows = zip(before.texts("file"), before.texts("sha256"), _names(before), strict=True)
    left = {
        file: (digest, named)
        for file, digest, named in rows
        if file in new and digest not in here and _may_stand(named, taken)
    }
    facts = cache.facts(
        sorted({one for f, (digest, _) in left.items() for one in (digest, new[f])})
    )
    first = {
        file: named
        for file, (digest, named) in left.items()
        if _are_sized_alike(facts.get(digest), facts.get(new[file]))
        and _look_alike(*(thumbnail_path(thumbnails, one) for one in (digest, new[file])))
    }
    return [_note(picture, first.get(str(picture.path))) for picture in pictures]


def _names(table: PhotoTable) -> Iterable[str]:
    return table.texts("source_photo_id")


def _may_stand(named: str, taken: Collection[str]) -> bool:
    """Whether a photo is known by a content that no other picture has, or is known by."""
    return named not in taken and _CONTENT.fullmatch(named) is not None


def _note(picture: Picture, first: str | None) -> Picture:
    return picture if first is None else replace(picture, first_sha256=first)


def _are_sized_alike(one: Facts | None, other: Facts | None) -> bool:
    if one is None or other is None:
        return False
    return (one.width, one.height) == (other.width, other.height)


def _look_alike(one: Path, other: Path) -> bool:
    try:
        pixels = [np.asarray(Image.open(small).convert("RGB"), np.int16) for small in (one, other)]
    except (OSError, Image.DecompressionBombError):  # gone or damaged: nobody can tell
        return False
    first, second = pixels
    return first.shape == second.shape and float(abs(first - second).mean()) <= _MOST_APART
