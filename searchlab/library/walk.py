"""Walking a folder: its files with the `.xmp` files beside them, and what cannot be read."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from searchlab.library.roots import is_library, is_named_picture
from searchlab.photos.sidecar import Skipped

XMP_SUFFIX = ".xmp"
# Links that lead nowhere or in circles are left alone, as pipes and sockets are; but what is named
# as a picture may lie on a disk that is not there at the moment.
_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@dataclass(frozen=True)
class FoundFile:
    """A file in a folder.

    Attributes:
        path: Absolute path.
        xmp: The files beside it that describe it, `IMG_1.jpg.xmp` before `IMG_1.xmp`.
    """

    path: Path
    xmp: tuple[Path, ...] = ()


_ALONE = "no picture beside it has its name"
_SECOND = "another description of the same picture is read; remove one"

HIDDEN_FILE, HIDDEN_FOLDER = "a hidden file", "a hidden folder"
"""Why files and folders are skipped whose names begin with a dot."""


def walk_files(folder: Path, problems: list[Skipped]) -> Iterator[FoundFile]:
    """Find the files in a folder and in all folders below it, by name.

    Hidden files and folders, links to folders and folders that hold a library are passed over.

    Args:
        folder: Absolute path.
        problems: Takes in what cannot be read, folders too, what is hidden, and descriptions of no
            file.
    """

    def refuse(error: OSError) -> None:
        problems.append(_unreadable(error.filename, error))

    try:
        for parent, folders, names in os.walk(folder, onerror=refuse):
            inside = sorted(name for name in folders if not is_library(Path(parent, name)))
            folders[:] = [name for name in inside if not _is_hidden(name)]
            hidden = [Path(parent, name) for name in inside if _is_hidden(name)]
            problems += [Skipped(_shown(path), HIDDEN_FOLDER) for path in hidden]
            yield from _files_of(Path(parent), sorted(names), problems)
    except RecursionError:
        problems.append(Skipped(str(folder), "folders are nested too deeply to be walked"))


def _files_of(parent: Path, names: Sequence[str], problems: list[Skipped]) -> Iterator[FoundFile]:
    files = [name for name in names if _is_usable(parent / name, problems)]
    described = [name for name in files if name.lower().endswith(XMP_SUFFIX)]
    starts = {
        name: dict.fromkeys((name, name.rpartition(".")[0] or name))
        for name in files
        if not name.lower().endswith(XMP_SUFFIX)
    }
    # By the very name first: IMG_1.JPG and IMG_1.jpg may be two photos.
    by_start = {name[: -len(XMP_SUFFIX)]: name for name in reversed(described)}
    taken = {start for asked in starts.values() for start in asked if start in by_start}
    others = {_plain(start): name for start, name in by_start.items() if start not in taken}
    matched: set[str] = set()
    for name, asked in starts.items():
        found = [by_start.get(start) or others.get(_plain(start)) for start in asked]
        beside = [one for one in found if one is not None]
        matched.update(beside)
        yield FoundFile(parent / name, tuple(parent / one for one in beside))
    for name in described:
        if name not in matched:
            is_second = by_start[name[: -len(XMP_SUFFIX)]] in matched
            problems.append(Skipped(str(parent / name), _SECOND if is_second else _ALONE))


def xmp_beside(picture: Path) -> tuple[Path, ...]:
    """Return the `.xmp` files beside a picture that describe it, as `walk_files` finds them."""
    try:
        beside = _xmp_in(picture.parent, picture.parent.stat().st_mtime_ns)
    except OSError:  # nothing is there
        return ()
    return beside.get(picture.name, ())


@lru_cache(maxsize=32)
def _xmp_in(folder: Path, _modified_ns: int) -> dict[str, tuple[Path, ...]]:
    names = sorted(os.listdir(folder))  # noqa: PTH208 - no Path each
    if not any(name.lower().endswith(XMP_SUFFIX) for name in names):
        return {}
    return {file.path.name: file.xmp for file in _files_of(folder, names, []) if file.xmp}


def _plain(start: str) -> str:
    # Accents in one character, as most systems write them, or in two, as those of Apple do.
    return unicodedata.normalize("NFC", start).lower()


def _is_usable(path: Path, problems: list[Skipped]) -> bool:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
    except OSError as error:
        if error.errno not in _NOWHERE or _is_of_picture(path):
            problems.append(_unreadable(str(path), error))
        return False
    if _is_hidden(path.name):
        problems.append(Skipped(_shown(path), HIDDEN_FILE))
        return False
    if _shown(path) != str(path):
        problems.append(Skipped(_shown(path), "its name is not Unicode; rename it"))
        return False
    return True


def _is_of_picture(link: Path) -> bool:
    return is_named_picture(link) and not _is_hidden(link.name) and link.is_symlink()


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _shown(path: Path) -> str:
    """Return a path as a text that every file and terminal takes."""
    is_unicode = not any("\ud800" <= c <= "\udfff" for c in str(path))
    return str(path) if is_unicode else ascii(str(path))


def _unreadable(path: str, error: OSError) -> Skipped:
    return Skipped(str(path), f"cannot be read: {error.strerror}")
