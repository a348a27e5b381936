"""Scanning: which pictures lie under the folders of a library, known by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from searchlab.errors import InputError
from searchlab.files import as_spelled
from searchlab.library.cache import ContentCache
from searchlab.library.dumps import pictures_of_dumps
from searchlab.library.roots import Root
from searchlab.library.walk import walk_files
from searchlab.photos.images.decode import MAX_BYTES
from searchlab.photos.images.headers import sniff
from searchlab.photos.metadata import merge_records
from searchlab.photos.metadata.xmp import read_xmp_sidecar
from searchlab.photos.sidecar import NO_RECORD, SIDECAR_NAME, Record, Skipped, read_records
from searchlab.progress import Progress

_BATCH = 256
_WITHIN = "records, which are read where their folder is named itself, without --records"
_RECORDS = "put the file back, or name another one with --records, an empty one for none"


@dataclass(frozen=True)
class Picture:
    """A file under a root.

    Attributes:
        path: Absolute path.
        sha256: Hex digest of its bytes.
        record: Its line of a sidecar file or its record of a dump; an empty one if it has none.
        beside: What the `.xmp` files beside it say.
        first_sha256: The content that its photo was first indexed with; empty if it is the present
            one.
    """

    path: Path
    sha256: str
    record: Record
    beside: Record = NO_RECORD
    first_sha256: str = ""

    @property
    def source_photo_id(self) -> str:
        """What its source calls it: the id that a record gives, else its first content."""
        return self.record.source_photo_id or self.first_sha256 or self.sha256


@dataclass
class Scan:
    """Pictures under the roots, and what could not be read.

    Attributes:
        pictures: By path, in order.
        problems: Files and lines that were skipped.
        missing: Roots that are not there, or whose records are not.
    """

    pictures: list[Picture] = field(default_factory=list)
    problems: list[Skipped] = field(default_factory=list)
    missing: list[Root] = field(default_factory=list)

    def pictures_by_root(self, roots: Iterable[Root]) -> dict[Root, int]:
        """Count the pictures under each root that has any."""
        paths = [picture.path for picture in self.pictures]
        counts = {r: sum(path.is_relative_to(r.folder) for path in paths) for r in roots}
        return {root: count for root, count in counts.items() if count}


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
    reachable = [root for root in roots if root.is_there and root.has_records]
    scan.missing += [root for root in roots if root not in reachable]
    scan.problems += [
        Skipped(str(root.records), f"is not there: {root.folder} stays as it was; {_RECORDS}")
        for root in scan.missing
        if root.is_there and root.records
    ]
    _scan_dumps([root for root in reachable if root.is_dump], scan, seen, cache, progress)
    folders = [root for root in reachable if not root.is_dump]
    sidecars = {root.sidecar() for root in folders}
    records: dict[Path, Record] = {}
    for root in sorted(folders, key=lambda root: len(root.folder.parts)):
        records |= _read_sidecar(root, scan.problems)  # the innermost folder comes last and counts
    with progress.step("looking for photos", unit="files") as step:
        for root in folders:
            new_files: list[tuple[str, int, int, str]] = []
            away = [one.folder for one in scan.missing if one.folder.is_relative_to(root.folder)]
            for file in walk_files(root.folder, scan.problems):
                path = file.path
                if path in seen or path in sidecars or any(map(path.is_relative_to, away)):
                    continue
                seen.add(path)
                step.advance(1)
                if path.name == SIDECAR_NAME:
                    scan.problems.append(Skipped(str(path), _WITHIN))
                    continue
                beside = _read_xmp(file.xmp, scan.problems)
                _add_picture(path, records.get(path, NO_RECORD), beside, scan, cache, new_files)
            cache.keep_files(new_files)
    reason = "named in the records, not in the folder"
    scan.problems += [Skipped(str(path), reason) for path in records if path not in seen]
    scan.pictures.sort(key=lambda picture: picture.path)
    return scan


def _scan_dumps(
    dumps: Sequence[Root],
    scan: Scan,
    seen: set[Path],
    cache: ContentCache,
    progress: Progress,
) -> None:
    new_files: list[tuple[str, int, int, str]] = []
    for item in pictures_of_dumps(dumps, progress):
        if isinstance(item, Skipped):
            scan.problems.append(item)
            continue
        path, record = item
        seen.add(path)
        _add_picture(path, record, NO_RECORD, scan, cache, new_files)
    cache.keep_files(new_files)


def _add_picture(
    path: Path,
    record: Record,
    beside: Record,
    scan: Scan,
    cache: ContentCache,
    new_files: list[tuple[str, int, int, str]],
) -> None:
    try:
        scan.pictures.append(Picture(path, _digest(path, cache, new_files), record, beside))
    except OSError as error:
        scan.problems.append(Skipped(str(path), f"cannot be read: {error.strerror}"))
    except InputError as error:
        scan.problems.append(Skipped(str(path), str(error)))
    if len(new_files) >= _BATCH:
        cache.keep_files(new_files)
        new_files.clear()


def _read_xmp(paths: Sequence[Path], problems: list[Skipped]) -> Record:
    records = []
    for path in paths:
        try:
            records.append(read_xmp_sidecar(path))
        except OSError as error:
            problems.append(Skipped(str(path), f"cannot be read: {error.strerror}"))
        except InputError as error:
            problems.append(Skipped(str(path), str(error)))
    return merge_records(records)


def _read_sidecar(root: Root, problems: list[Skipped]) -> dict[Path, Record]:
    sidecar = root.sidecar()
    records: dict[Path, Record] = {}
    for item in read_records(sidecar) if sidecar is not None else ():
        if isinstance(item, Skipped):
            problems.append(item)
            continue
        path, record = as_spelled(item[0]), item[1]
        if not path.is_relative_to(root.folder):  # through a link; a file keeps its own name
            path = path.parent.resolve() / path.name
        if path in records:
            problems.append(Skipped(str(path), "named twice in the records; the first line counts"))
            continue
        records[path] = record
    return records


def _digest(path: Path, cache: ContentCache, new_files: list[tuple[str, int, int, str]]) -> str:
    stat = path.stat()
    changed = min(max(stat.st_mtime_ns, -(2**63)), 2**63 - 1)  # what SQLite holds: up to 2262
    if stat.st_size > MAX_BYTES:
        with path.open("rb") as file:
            is_picture = sniff(file.read(256)) is not None
        msg = f"too many bytes: {stat.st_size:,}, the most is {MAX_BYTES:,}"
        raise InputError(msg if is_picture else "not an image")
    known = cache.known_file(str(path), stat.st_size, changed)
    if known is not None:
        return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    new_files.append((str(path), stat.st_size, changed, digest))
    return digest
