"""Backups: a library copied whole while it is read and written, checked, and put back.

A backup is a folder, and a library itself: the snapshot in force, the cache, thumbnails, models and
what else lies in the library's folder, with `backup.json`, which has a checksum of every file.
Larger pictures that a server makes on demand are left out, and so are the photos themselves.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.files import sha256_of, sync_folder, write_atomically
from searchlab.library.databases import copy_database
from searchlab.library.library import Library, create_library
from searchlab.library.retention import read_retention, write_retention
from searchlab.library.roots import BACKUP_FILE, KEY_FILE, LIBRARY_FILE
from searchlab.library.snapshots import adopt_snapshot, check_snapshot, current_id

FORMAT = 1
API_DATABASE = "api.db"
_CACHE = "cache.db"
_LEFT_OUT = ("cluster", "renditions", "snapshots", "search.html", "CURRENT", BACKUP_FILE)
_TRIES = 5


@dataclass(frozen=True, kw_only=True)
class Backup:
    """Metadata of a backup.

    Attributes:
        folder: Where it lies.
        created_at: When it was begun, ISO 8601 in UTC; nothing later is in it.
        snapshot_id: The snapshot that was in force.
        files: Path within the folder -> `bytes` and `sha256`.
    """

    folder: Path
    created_at: str
    snapshot_id: str
    files: dict[str, dict[str, Any]] = field(repr=False)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(int(sealed["bytes"]) for sealed in self.files.values())


def back_up(
    library: Library, target: Path, *, copy_accounts: Callable[[Path], None] | None = None
) -> Backup:
    """Copy a library while it is served and indexed; nothing waits for it.

    Args:
        library: What to copy.
        target: A folder that does not exist yet; it appears when it is whole.
        copy_accounts: Writes the server's database to a path; None to leave it out.

    Raises:
        InputError: The target exists, lies in the library, or cannot be written.
        NotFoundError: Nothing was indexed yet.
        DataError: A file of the library is damaged.
    """
    target = target.expanduser().resolve()
    if target.exists():
        msg = f"a backup must go into a folder of its own, got {target}, which exists"
        raise InputError(msg)
    if library.folder in [target, *target.parents]:
        msg = f"a backup must lie outside of the library, got {target}"
        raise InputError(msg)
    partial = target.with_name(f".{target.name}.unfinished-{os.getpid()}")
    created_at = datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")
    try:
        partial.mkdir(parents=True)
        if copy_accounts is not None:
            copy_accounts(partial / API_DATABASE)
        snapshot_id = _copy_snapshot(library.folder, partial)
        for path in _list_files(library.folder):
            _copy(library.folder / path, partial / path)
        if (library.folder / _CACHE).exists():
            copy_database(library.folder / _CACHE, partial / _CACHE)
        files = {str(path): _seal(partial / path) for path in _walk(partial)}
        backup = Backup(folder=target, created_at=created_at, snapshot_id=snapshot_id, files=files)
        os.sync()
        stored = {"format": FORMAT} | asdict(backup)
        del stored["folder"]
        write_atomically(partial / BACKUP_FILE, json.dumps(stored, indent=1).encode())
        partial.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        msg = f"{target} must be a place that can be written, got: {error.strerror or error}"
        raise InputError(msg) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return backup


def read_backup(folder: Path) -> Backup:
    """Read what a backup says of itself, and compare every file with its checksum.

    Raises:
        NotFoundError: The folder holds no backup.
        DataError: A file is missing or was changed.
    """
    folder = folder.expanduser().absolute()
    try:
        stored = json.loads((folder / BACKUP_FILE).read_bytes())
        if stored.pop("format") != FORMAT:
            msg = f"another format than {FORMAT}"
            raise ValueError(msg)
        backup = Backup(folder=folder, **stored)
        for name, sealed in backup.files.items():
            place = PurePosixPath(name)
            if place.is_absolute() or ".." in place.parts:
                msg = f"the file {name!r}, which lies elsewhere"
                raise ValueError(msg)
            if _seal(folder / place) != sealed:
                msg = f"{name}, which is not as it was written"
                raise ValueError(msg)
    except FileNotFoundError as error:
        if Path(error.filename) == folder / BACKUP_FILE:
            msg = f"a backup must hold {BACKUP_FILE}, got {folder} without; make one with `backup`"
            raise NotFoundError(msg) from error
        msg = f"{folder} must be a whole backup, got none of {error.filename}; use another"
        raise DataError(msg) from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = f"{folder} must be a backup as it was written, got: {error}; use another"
        raise DataError(msg) from error
    return backup


def restore(backup: Backup, folder: Path, *, replace: bool = False) -> Library:
    """Put a library back, also into one that is served: its server takes it over by itself.

    Photos, cache, models and settings become those of the backup. Snapshots that are there stay for
    cursors until they are too old, and cursors of the backup hold if the library is a new one.

    Args:
        backup: From `read_backup`.
        folder: A library, or a folder that is empty or does not exist.
        replace: Whether a library that is there may be replaced.

    Raises:
        InputError: The folder holds a library and `replace` is false, or holds something else.
        ConflictError: Somebody else is writing.
        DataError: A database of the library is damaged.
    """
    folder = folder.expanduser().absolute()
    is_library = (folder / LIBRARY_FILE).exists()
    if is_library and not replace:
        msg = (
            f"{folder} must be a new folder, got a library; --replace puts the backup in its place"
        )
        raise InputError(msg)
    if not is_library and folder.exists() and any(folder.iterdir()):
        msg = f"{folder} must be a library or an empty folder, got other files; name another"
        raise InputError(msg)
    if not is_library:
        folder.mkdir(parents=True, exist_ok=True)
        _copy(backup.folder / KEY_FILE, folder / KEY_FILE)
    library = create_library(folder)
    with library.writing():
        for name in backup.files:
            head = PurePosixPath(name).parts[0]
            if head not in (*_LEFT_OUT, _CACHE, API_DATABASE, KEY_FILE, LIBRARY_FILE):
                _copy(backup.folder / name, folder / name)
        if _CACHE in backup.files:
            with library.cache():  # so that it is there, with its journal
                pass
            copy_database(backup.folder / _CACHE, folder / _CACHE)
        write_retention(folder, read_retention(backup.folder))
        os.sync()
        adopt_snapshot(folder, backup.folder / "snapshots" / backup.snapshot_id)
    return library


def _copy_snapshot(folder: Path, partial: Path) -> str:
    for _ in range(_TRIES):
        snapshot_id = current_id(folder)
        if snapshot_id is None:
            msg = f"a library must hold photos to be backed up, got an empty one: {folder}"
            raise NotFoundError(msg)
        target = partial / "snapshots" / snapshot_id
        try:
            shutil.copytree(folder / "snapshots" / snapshot_id, target)
        except (OSError, shutil.Error):
            if (folder / "snapshots" / snapshot_id).is_dir():
                raise
            shutil.rmtree(target, ignore_errors=True)  # dropped while it was copied
            continue
        check_snapshot(partial, snapshot_id)
        write_atomically(partial / "CURRENT", f"{snapshot_id}\n".encode())
        return snapshot_id
    msg = f"{folder} must keep a snapshot for as long as it is copied, got {_TRIES} that went"
    raise DataError(msg)


def _list_files(folder: Path) -> Iterator[Path]:
    for path in _walk(folder):
        head = path.parts[0]
        is_database = head.startswith((f"{_CACHE}", f"{API_DATABASE}"))
        if head not in _LEFT_OUT and not is_database and path.suffix not in (".lock", ".part"):
            yield path


def _walk(folder: Path) -> Iterator[Path]:
    # A folder may lie elsewhere, on a larger disk; a link that leads back up is not followed.
    for place, folders, names in os.walk(folder, followlinks=True):
        here = Path(place)
        above = {
            os.path.realpath(one) for one in (here, *here.parents) if one.is_relative_to(folder)
        }
        folders[:] = [
            name for name in sorted(folders) if os.path.realpath(here / name) not in above
        ]
        for name in sorted(names):
            yield (Path(place) / name).relative_to(folder)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.part")
    try:
        shutil.copy2(source, partial)
    except FileNotFoundError:
        if not source.exists():
            return  # deleted meanwhile, such as a thumbnail of a photo that left
        raise
    partial.replace(target)


def _seal(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
