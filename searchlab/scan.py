"""Scanning: which pictures lie under the folders of a library, known by their content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from searchlab.cache import ContentCache
from searchlab.errors import InputError
from searchlab.images import MAX_BYTES
from searchlab.progress import Progress
from searchlab.records import SIDECAR_NAME, Problem, Record, read_records

LIBRARY_FILE = "library.json"
KEY_FILE = "secret.key"
_BATCH = 256


@dataclass(frozen=True)
class Root:
    """A folder that a library covers.

    Attributes:
        folder: Absolute path.
        records: Sidecar file, if one was named; `photos.jsonl` in the folder is found by itself.
        source: Name of the library for pictures whose record names none; empty for what it was
            before, `local` at first.
    """

    folder: Path
    records: Path | None = None
    source: str = ""

    def sidecar(self) -> Path | None:
        """Return the sidecar file of this folder, or None."""
        if self.records is not None:
            return self.records
        found = self.folder / SIDECAR_NAME
        return found if found.is_file() else None


@dataclass(frozen=True)
class Picture:
    """A file under a root.

    Attributes:
        path: Absolute path.
        sha256: Hex digest of its bytes.
        record: What its sidecar line says.
    """

    path: Path
    sha256: str
    record: Record


@dataclass
class Scan:
    """What was found.

    Attributes:
        pictures: By path, in order.
        problems: Files and lines that were skipped.
        missing: Roots that are not there.
    """

    pictures: list[Picture] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    missing: list[Root] = field(default_factory=list)

    def pictures_by_root(self, roots: Iterable[Root]) -> dict[Root, int]:
        """Count the pictures under each root that has any."""
        paths = [picture.path for picture in self.pictures]
        counts = {r: sum(path.is_relative_to(r.folder) for path in paths) for r in roots}
        return {root: count for root, count in counts.items() if count}


def is_library(folder: Path) -> bool:
    """Whether a folder holds a searchlab library."""
    return (folder / LIBRARY_FILE).is_file() and (folder / KEY_FILE).is_file()


def check_root(folder: Path, *, records: Path | None = None, source: str = "") -> Root:
    """Check a folder that a user names.

    Raises:
        InputError: It is no folder, or the records are no file.
    """
    if not folder.is_dir():
        msg = f"a source must be a folder of photos, got {folder}, which is none"
        raise InputError(msg)
    if records is not None and not records.is_file():
        msg = f"records must be a JSONL file, got {records}, which is none"
        raise InputError(msg)
    if source and not source.strip():
        msg = f"a source name must be a word, got {source!r}"
        raise InputError(msg)
    return Root(folder.resolve(), None if records is None else records.resolve(), source.strip())


def scan_roots(roots: Iterable[Root], cache: ContentCache, progress: Progress) -> Scan:
    """Walk the folders and identify every file by its content.

    Files whose size and time of change are as before are not read again. Hidden files and folders
    that hold a library are passed over.

    Args:
        roots: Folders to walk; one inside another is walked once.
        cache: Remembers files that were read.
        progress: Told about every file.
    """
    scan = Scan()
    seen: set[Path] = set()
    there = [root for root in roots if root.folder.is_dir()]
    scan.missing += [root for root in roots if root not in there]
    sidecars = {root.sidecar() for root in there}
    records: dict[Path, Record] = {}
    for root in sorted(there, key=lambda root: len(root.folder.parts)):
        records |= _records(root, scan.problems)  # what the innermost folder says counts
    with progress.step("looking for photos", unit="files") as step:
        for root in there:
            fresh: list[tuple[str, int, int, str]] = []
            for path in _files(root.folder, scan.problems):
                if path in seen or path in sidecars:
                    continue
                seen.add(path)
                step.advance(1)
                try:
                    digest = _digest(path, cache, fresh)
                except OSError as error:
                    scan.problems.append(Problem(str(path), f"cannot be read: {error.strerror}"))
                    continue
                except InputError as error:
                    scan.problems.append(Problem(str(path), str(error)))
                    continue
                scan.pictures.append(Picture(path, digest, records.get(path, Record())))
                if len(fresh) >= _BATCH:
                    cache.keep_files(fresh)
                    fresh.clear()
            cache.keep_files(fresh)
    reason = "named in the records, not in the folder"
    scan.problems += [Problem(str(path), reason) for path in records if path not in seen]
    scan.pictures.sort(key=lambda picture: picture.path)
    return scan


def _records(root: Root, problems: list[Problem]) -> dict[Path, Record]:
    sidecar = root.sidecar()
    found: dict[Path, Record] = {}
    for item in read_records(sidecar) if sidecar is not None else ():
        if isinstance(item, Problem):
            problems.append(item)
            continue
        path, record = item
        if path in found:
            problems.append(Problem(str(path), "named twice in the records; the first line counts"))
            continue
        found[path] = record
    return found


def _files(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    def refused(error: OSError) -> None:
        problems.append(Problem(str(error.filename), f"cannot be read: {error.strerror}"))

    try:
        yield from _walk(folder, problems, refused)
    except RecursionError:
        problems.append(Problem(str(folder), "folders are nested too deeply to be walked"))


def _walk(
    folder: Path, problems: list[Problem], refused: Callable[[OSError], None]
) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=refused):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not is_library(Path(parent, name))
        )
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith(".") or not path.is_file():
                continue
            if any("\ud800" <= c <= "\udfff" for c in str(path)):
                problems.append(Problem(ascii(str(path)), "its name is not Unicode; rename it"))
                continue
            yield path


def _digest(path: Path, cache: ContentCache, fresh: list[tuple[str, int, int, str]]) -> str:
    stat = path.stat()
    changed = min(max(stat.st_mtime_ns, -(2**63)), 2**63 - 1)  # what SQLite holds: up to 2262
    if stat.st_size > MAX_BYTES:
        msg = f"too many bytes: {stat.st_size:,}, the most is {MAX_BYTES:,}"
        raise InputError(msg)
    known = cache.known_file(str(path), stat.st_size, changed)
    if known is not None:
        return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    fresh.append((str(path), stat.st_size, changed, digest))
    return digest
