"""Roots: the folders and dumps that a library covers; checks of those that a user names."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from searchlab.errors import DataError, InputError, quote
from searchlab.photos.licenses import RESTRICTIONS
from searchlab.photos.sidecar import SIDECAR_NAME
from searchlab.sources import find_source

LIBRARY_FILE = "library.json"
BACKUP_FILE = "backup.json"
"""In a backup, and in no library that is in use."""
KEY_FILE = "secret.key"


@dataclass(frozen=True)
class Root:
    """A folder that a library covers, or a dump of an upstream library and where its pictures lie.

    Attributes:
        folder: Absolute path.
        records: Sidecar file, if one was named; a `photos.jsonl` in the folder is used without.
            For a dump, the file of the dump.
        source: Name of the library for pictures whose record names none; empty to leave it as it
            was, at first `local`. For a dump, the library whose records it holds.
        is_dump: Whether it is a dump, of which only pictures that belong to a record are indexed.
        allowed: Words of `licenses.RESTRICTIONS` that keep no photo of the dump out.
    """

    folder: Path
    records: Path | None = None
    source: str = ""
    is_dump: bool = False
    allowed: tuple[str, ...] = ()

    @property
    def place(self) -> Path:
        """The path that identifies the root: a dump's file, else the folder."""
        return self.records if self.is_dump and self.records is not None else self.folder

    @property
    def is_there(self) -> bool:
        """Whether it can be reached."""
        if not self.is_dump:
            return _is_folder(self.folder)
        return os.access(self.folder, os.R_OK | os.X_OK) and _is_file(self.place)

    @property
    def is_empty(self) -> bool:
        """Whether a dump has no byte, or its folder no file."""
        return not self.place.stat().st_size or not any(self.folder.iterdir())

    @property
    def has_records(self) -> bool:
        """Whether the sidecar file that was named for it is there, if one was."""
        return self.records is None or _is_file(self.records)

    def sidecar(self) -> Path | None:
        """Return the sidecar file of this folder, or None."""
        if self.is_dump:
            return None
        if self.records is not None:
            return self.records
        sidecar = self.folder / SIDECAR_NAME
        return sidecar if _is_file(sidecar) else None


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - pathlib raises where looking is forbidden


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def is_library(folder: Path) -> bool:
    """Whether a folder holds a searchlab library; not one that cannot be looked into."""
    return all(_is_file(folder / name) for name in (LIBRARY_FILE, KEY_FILE))


def check_root(folder: Path, *, records: Path | None = None, source: str = "") -> Root:
    """Check a folder that a user names.

    Raises:
        InputError: It is no folder, or the records are no file.
    """
    if not _is_folder(folder):
        msg = f"a source must be a folder of photos or a file of records, got {folder}, not found"
        raise InputError(msg)
    if records is not None and not records.is_file():
        msg = f"records must be a JSONL file, got {records}, which is no file"
        raise InputError(msg)
    if source and not source.strip():
        msg = f"a source name must be a word, got {source!r}"
        raise InputError(msg)
    return Root(folder.resolve(), None if records is None else records.resolve(), source.strip())


def check_dump(
    file: Path, *, source: str, pictures: Path | None = None, allowed: Collection[str] = ()
) -> Root:
    """Check a dump of an upstream library that a user names.

    Args:
        file: JSONL, JSON or CSV of the library's own records.
        source: Name of the library.
        pictures: Folder of the pictures, as `PictureStore` reads it; the file's own if left out.
        allowed: Words of `licenses.RESTRICTIONS` that keep no photo out.

    Raises:
        InputError: There is no such file, folder, library or word.
    """
    if not file.is_file():
        msg = f"a dump must be a file, got {file}, which is no file"
        raise InputError(msg)
    if is_named_picture(file):
        msg = f"a place must be a folder or a dump, got the picture {file}; name its folder"
        raise InputError(msg)
    if not source:
        msg = f"the dump {file} must come with its library's name, got none; add --source NAME"
        raise InputError(msg)
    folder = file.parent if pictures is None else pictures
    if not folder.is_dir():
        msg = f"pictures must be a folder, got {folder}, which is no folder"
        raise InputError(msg)
    check_allowed(allowed)
    return Root(
        folder.resolve(),
        file.resolve(),
        find_source(source).name,
        is_dump=True,
        allowed=tuple(sorted(set(allowed))),
    )


def check_allowed(words: Collection[str]) -> None:
    """Check words that let in photos in spite of their licences.

    Raises:
        InputError: One of them is none of `licenses.RESTRICTIONS`.
    """
    if unknown := sorted(set(words) - set(RESTRICTIONS)):
        msg = f"allow must be among {', '.join(RESTRICTIONS)}, got {', '.join(unknown)}"
        raise InputError(msg)


def read_description(folder: Path) -> dict[str, Any]:
    """Read what a library says of itself in its folder.

    Raises:
        FileNotFoundError: It says nothing.
        DataError: What it says is damaged.
    """
    path = folder / LIBRARY_FILE
    try:
        stored = json.loads(path.read_bytes())
        if not isinstance(stored, dict):
            raise ValueError(quote(stored))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        msg = f"{path} must describe a library, got: {error}; index into a new folder"
        raise DataError(msg) from error
    return stored


def refuse_backup(folder: Path) -> None:
    """Refuse to write into a backup, which could not be restored any more.

    Raises:
        InputError: The folder is one.
    """
    if (folder / BACKUP_FILE).exists():
        msg = (
            f"a backup must stay as it was written, got {folder}; restore it into another folder "
            "with `searchlab restore`, and use that"
        )
        raise InputError(msg)


def is_named_picture(path: Path) -> bool:
    """Whether a file has the name of a picture."""
    return (guess_type(path.name)[0] or "").startswith("image/")


def refuse_pictures(folder: Path) -> None:
    """Refuse a folder that pictures lie in as a place for a new library.

    Raises:
        InputError: One does.
    """
    for path in folder.iterdir():
        if is_named_picture(path):
            msg = (
                "a library must have a folder of its own, for what it keeps, got "
                f"{folder}, which holds {path.name}; name another, or a new one"
            )
            raise InputError(msg)
