"""Files written whole or not at all; checksums of files and of JSON values; ids; tables."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO
from unicodedata import normalize

from searchlab.errors import InputError, MissingExtraError

PARTIAL = ".part"
"""How names of files end that are not whole yet."""
_ABANDONED_S = 3_600


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(values: Mapping[str, Any]) -> str:
    """Return 16 hex digits of the hash over all values but `digest`, in canonical JSON.

    Raises:
        ValueError: A number is not finite.
    """
    rest = {name: value for name, value in values.items() if name != "digest"}
    text = json.dumps(
        rest, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def as_spelled(path: Path) -> Path:
    """Return a path as it stands on the disk, where accents are a character of their own or not.

    Apple's systems write them apart from their letters (NFD), most others together (NFC).

    Args:
        path: The path; its last names stay as they are where nothing has them in either form.
    """
    if str(path).isascii():
        return path
    parent = as_spelled(path.parent)
    if path.name.isascii():
        return parent / path.name
    with suppress(OSError):
        names = _names_in(parent, parent.stat().st_mtime_ns)
        return parent / names.get(path.name, names.get(normalize("NFC", path.name), path.name))
    return path


@lru_cache(maxsize=32)
def _names_in(folder: Path, _modified_ns: int) -> dict[str, str]:
    """Map a folder's names to themselves, and composed forms to their only name."""
    names = [name for name in os.listdir(folder) if not name.isascii()]  # noqa: PTH208 - no Path each
    composed = {normalize("NFC", name): name for name in names}
    several = Counter(normalize("NFC", name) for name in names)
    alone = {form: name for form, name in composed.items() if several[form] == 1}
    return alone | {name: name for name in names}


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file so that a reader sees the old bytes or the new ones, never a part."""
    partial = path.with_name(f"{path.name}{PARTIAL}")
    with _open_alone(partial, mode) as file:
        file.truncate()  # leftover of a killed writer
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        partial.replace(path)
    sync_folder(path.parent)


def write_once(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Write a file that others may be writing too, with the same bytes.

    Args:
        path: The file; its folder is made.
        data: What it holds.
        sync: Whether to wait for the disk; if not, a power cut may leave an empty file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}{PARTIAL}")
    try:
        with partial.open("xb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def is_abandoned(path: Path) -> bool:
    """Tell whether a file of `write_once` was left by a writer that died, an hour ago or more."""
    return path.suffix == PARTIAL and time.time() - path.stat().st_mtime > _ABANDONED_S


def _open_alone(path: Path, mode: int) -> BinaryIO:
    """Open a file for writing once nobody else writes to it."""
    while True:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, mode), "wb")
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            found = os.fstat(file.fileno())
            with suppress(PermissionError):  # one without permissions
                os.fchmod(file.fileno(), found.st_mode & mode)  # of a leftover that more may read
            with suppress(FileNotFoundError):
                if path.stat().st_ino == found.st_ino:
                    return file
        except BaseException:
            file.close()
            raise
        file.close()  # another writer has renamed it meanwhile


def link_or_copy(source: Path, target: Path) -> bool:
    """Give a file that never changes a second name, or copy it; returns whether it was linked."""
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(source, target)
        return False
    return True


def sync_file(path: Path) -> None:
    """Wait until what a file holds is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def id_of_folder(folder: Path, name: str) -> str:
    """Return the random id of a library's folder, 32 hex digits, which is kept in it.

    It stays when the folder is moved, or reached by another name. A copy gets its own: it is
    another folder on the disk.

    Args:
        folder: The folder.
        name: Of the file in it that keeps the id.
    """
    path, inode = folder / name, folder.stat().st_ino
    # Damaged, missing, or not written by us: a new one.
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        kept = json.loads(path.read_bytes())
        if kept["inode"] == inode and re.fullmatch("[0-9a-f]{32}", kept["library"]):
            return str(kept["library"])
    made = uuid.uuid4().hex
    write_atomically(path, json.dumps({"library": made, "inode": inode}).encode())
    return made


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows of plain values as Parquet, which pandas, Polars and DuckDB read.

    Args:
        path: The file.
        rows: One or more, with the same names.

    Raises:
        MissingExtraError: pyarrow is not installed.
        InputError: There are no rows, or the file cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        msg = "Parquet must be written by pyarrow, got none; pip install 'searchlab[tables]'"
        raise MissingExtraError(msg) from error
    if not rows:
        msg = f"{path} must get one row or more, got none; there is nothing to write"
        raise InputError(msg)
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows]), sink)
    try:
        write_atomically(path, sink.getvalue().to_pybytes())
    except OSError as error:
        msg = f"{path} must be a file that can be written, got: {error.strerror}"
        raise InputError(msg) from error
    return path


def require_pandas() -> None:
    """Check that pandas is there, which only data frames need.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        msg = "a data frame must be made by pandas, got none; pip install 'searchlab[tables]'"
        raise MissingExtraError(msg) from error
