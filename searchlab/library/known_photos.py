"""Reuses what another library has computed, so that no photo is embedded twice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from searchlab.errors import InputError
from searchlab.library.library import Library


def take_known(library: Library, other: Library) -> None:
    """Give a library the facts, vectors and small pictures that another one has.

    What it has itself stays. Interrupted, it leaves small pictures at most, which are looked for
    only beside facts.

    Args:
        library: The library that gets them.
        other: One that nobody writes to meanwhile.

    Raises:
        ConflictError: Somebody else is writing to `library`.
        DataError: A cache of the two is damaged, or of another version.
        InputError: The folder cannot be written.
    """
    with library.writing(), library.cache() as cache:
        for small in other.thumbnails.glob("*/*"):
            place = library.thumbnails / small.relative_to(other.thumbnails)
            # What a killed run left unfinished is written to again, so it must not be shared.
            if small.suffix != ".part" and not place.exists():
                _link(small, place)
        cache.take_from(other.folder / "cache.db")


def _link(small: Path, place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(small, place)
        except OSError:  # another disk, or one without links
            part = place.with_suffix(".part")
            shutil.copyfile(small, part)
            part.replace(place)
    except OSError as error:
        msg = f"{place} must be a file that can be written, got: {error.strerror}"
        raise InputError(msg) from error
