"""Retention: which snapshots stay on disk, so that earlier cursors still work."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from searchlab.errors import DataError, InputError, quote
from searchlab.files import write_atomically
from searchlab.library.roots import LIBRARY_FILE, read_description

KEPT = 3
"""Snapshots that stay in any case, the one in force included."""
KEPT_S = 3_600.0
KEPT_BYTES = 10 * 10**9
DROPPED = ".unfinished-"
"""Prefix of the names of folders that are not yet, or no longer, snapshots."""
LONGEST_S = 366 * 86_400.0
MOST_BYTES = 2**60


@dataclass(frozen=True)
class Retention:
    """How long a snapshot stays after another one took its place, and how much room all may take.

    Attributes:
        kept_s: Seconds, from 0 to a year.
        kept_bytes: Bytes of all snapshots but the one in force; files that they share count once.

    Raises:
        InputError: A value is out of range.
    """

    kept_s: float = KEPT_S
    kept_bytes: int = KEPT_BYTES

    def __post_init__(self) -> None:
        for name, most in (("kept_s", LONGEST_S), ("kept_bytes", MOST_BYTES)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                msg = f"{name} must be a number, got {quote(value)}"
                raise InputError(msg)
            if not 0 <= value <= most:
                msg = f"{name} must be from 0 to {most:,}, got {quote(value)}"
                raise InputError(msg)


def read_retention(folder: Path) -> Retention:
    """Read a library's retention settings; the defaults where it has none.

    Raises:
        DataError: They are out of range.
    """
    try:
        stored = read_description(folder)
    except FileNotFoundError:
        return Retention(KEPT_S, KEPT_BYTES)
    try:
        return Retention(stored.get("kept_s", KEPT_S), stored.get("kept_bytes", KEPT_BYTES))
    except InputError as error:
        msg = f"{folder / LIBRARY_FILE} must describe a library, got: {error}"
        raise DataError(msg) from error


def write_retention(folder: Path, retention: Retention) -> None:
    """Set how long a library's snapshots stay, from its next snapshot on."""
    path = folder / LIBRARY_FILE
    stored = read_description(folder) | asdict(retention)
    write_atomically(path, json.dumps(stored).encode())


def note_end(snapshot: Path) -> None:
    """Note that another snapshot takes the place of this one now."""
    os.utime(snapshot)


def drop_old(snapshots: Path, current: str, retention: Retention) -> None:
    """Delete the snapshots that need not stay, the oldest first.

    Args:
        snapshots: Their folder.
        current: Name of the one in force.
        retention: How long the others stay, and within how many bytes.
    """
    # A writer that died before it wrote CURRENT leaves newer ones that were never in force.
    others = [place for place in snapshots.glob("[0-9]*") if place.name != current]
    others.sort(key=number_of, reverse=True)
    known = set(_sizes(snapshots / current))
    n_bytes = n_kept = 0
    for place in others:
        sizes = {node: size for node, size in _sizes(place).items() if node not in known}
        age_s = time.time() - place.stat().st_mtime
        n_bytes += sum(sizes.values())
        if n_kept >= KEPT - 1 and (age_s > retention.kept_s or n_bytes > retention.kept_bytes):
            break
        known.update(sizes)
        n_kept += 1
    for old in reversed(others[n_kept:]):
        # Renamed first: a snapshot is there as a whole or not at all.
        shutil.rmtree(old.rename(snapshots / f"{DROPPED}{old.name}"), ignore_errors=True)


def number_of(snapshot: Path) -> int:
    """Return the number that a snapshot's name begins with."""
    head = snapshot.name.split("-")[0]
    return int(head) if head.isdigit() else 0


def _sizes(snapshot: Path) -> dict[tuple[int, int], int]:
    entries = [entry.stat() for entry in os.scandir(snapshot)] if snapshot.is_dir() else []
    return {(status.st_dev, status.st_ino): status.st_size for status in entries}
