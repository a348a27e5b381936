"""What `searchlab index` was given, checked before it makes or changes a library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from searchlab.errors import InputError
from searchlab.library.retention import (
    LONGEST_S,
    MOST_BYTES,
    read_retention,
    write_retention,
)
from searchlab.library.roots import LIBRARY_FILE, Root


def check_kept(minutes: float | None, gigabytes: float | None) -> None:
    """Check how long, and in how much room, replaced snapshots are to be kept.

    Raises:
        InputError: A number is out of range, or none at all.
    """
    for name, value, most in (
        ("--keep-minutes", minutes, LONGEST_S / 60),
        ("--keep-gb", gigabytes, MOST_BYTES / 1e9),
    ):
        if value is not None and not 0 <= value <= most:  # NaN is in no range
            msg = f"{name} must be a number from 0 to {int(most):,}, got {value:.15g}"
            raise InputError(msg)


def keep(folder: Path, minutes: float | None, gigabytes: float | None) -> None:
    """Tell a library what `check_kept` has checked; what is None stays as it was."""
    if minutes is None and gigabytes is None:
        return
    told = read_retention(folder)
    if minutes is not None:
        told = replace(told, kept_s=60 * minutes)
    if gigabytes is not None:
        told = replace(told, kept_bytes=round(1e9 * gigabytes))
    write_retention(folder, told)


def check_covered(folder: Path, roots: Sequence[Root], forget: Sequence[Path]) -> None:
    """Check that a new library would cover something, so that no empty one is left behind.

    Raises:
        InputError: It would cover nothing, or is to forget what it never covered.
    """
    if (folder.expanduser() / LIBRARY_FILE).exists():
        return
    places = {root.place for root in roots}
    for place in forget:
        if place.resolve() not in places:
            msg = f"--forget must name a covered folder or dump, got {place} for the new {folder}"
            raise InputError(msg)
    if not places - {place.resolve() for place in forget}:
        msg = "a library must cover at least one folder of photos, got none; name one"
        raise InputError(msg)


def check_skipped(path: Path | None) -> None:
    """Check that what is skipped can be written down afterwards.

    Raises:
        InputError: It cannot.
    """
    if path is None:
        return
    if not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        msg = f"--skipped must be a file that can be written, in a folder that is there, got {path}"
        raise InputError(msg)
