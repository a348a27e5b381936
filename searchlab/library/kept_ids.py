"""Kept ids: a photo stays the same photo when something is written into its file.

A photo without an id of its library is known by the content that its file had at first. Programs
that write titles, keywords or ratings into files change that content, but not the picture.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from searchlab.library.cache import ContentCache, Facts
from searchlab.library.scan import Picture
from searchlab.photos.table import PhotoTable

_CONTENT = re.compile("[0-9a-f]{64}")


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
    pictures: Sequence[Picture], before: PhotoTable | None, cache: ContentCache
) -> list[Picture]:
    """Note the first content of pictures that lie where they lay, looking the same in other bytes.

    Args:
        pictures: The scanned pictures, after `keep_moved`.
        before: The photos of the state before, if there is one.
        cache: Holds the facts of all of them.
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
        if _look_the_same(facts.get(digest), facts.get(new[file]))
    }
    return [_note(picture, first.get(str(picture.path))) for picture in pictures]


def _names(table: PhotoTable) -> Iterable[str]:
    return table.texts("source_photo_id")


def _may_stand(named: str, taken: Collection[str]) -> bool:
    """Whether a photo is known by a content that no other picture has, or is known by."""
    return named not in taken and _CONTENT.fullmatch(named) is not None


def _note(picture: Picture, first: str | None) -> Picture:
    return picture if first is None else replace(picture, first_sha256=first)


def _look_the_same(one: Facts | None, other: Facts | None) -> bool:
    return one is not None and other is not None and _look(one) == _look(other)


def _look(facts: Facts) -> tuple[object, ...]:
    return facts.width, facts.height, facts.shade, facts.palette, facts.blur_hash
