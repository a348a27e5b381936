"""What a library holds: photos, where they come from, what is written about them, sizes, problems.

Read from the snapshot in force and from the report of the last indexing, without a model.
"""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from searchlab.errors import NotFoundError, shell_word
from searchlab.files import write_atomically
from searchlab.library.library import Library
from searchlab.library.manifests import read_manifest, read_roots
from searchlab.library.roots import Root, read_description
from searchlab.library.snapshots import current_id
from searchlab.photos.photo import iso_day
from searchlab.photos.sidecar import Skipped
from searchlab.photos.table import PhotoTable
from searchlab.search.words.languages import LANGUAGES, language_of
from searchlab.search.words.terms import words_of

_LAST_RUN = "indexed.json"
_WRITTEN = {
    "title": "title",
    "description": "source_description",
    "tags": "tags",
    "photographer": "photographer_full_name",
    "place": "place",
    "page": "source_image_url",
}
_MOST_PROBLEMS = 10_000
_SAMPLE = 2_000
_PARTS = ("api", "cache", "models", "renditions", "results", "thumbnails")


@dataclass(frozen=True)
class RootInfo:
    """A folder or a dump that a library covers.

    Attributes:
        place: The folder, or the dump's file.
        source: Library of its photos.
        n_photos: Photos in it; one in two folders counts for the inner one.
        is_there: Whether it can be reached now.
    """

    place: str
    source: str
    n_photos: int
    is_there: bool


@dataclass(frozen=True)
class LibraryInfo:
    """What a library holds.

    Attributes:
        folder: Where it lies.
        n_photos: Photos in the snapshot in force.
        roots: Folders and dumps that it covers.
        sources: Photos of each source.
        licenses: Photos of each licence.
        photographers: Photographers with a username.
        first_day: Earliest upload date, `YYYY-MM-DD`.
        last_day: Latest upload date.
        written: Photos that have a title, description, tags, photographer, place or page; what a
            model wrote does not count.
        languages: Share of each language among the titles and descriptions of up to 2,000 photos,
            0 to 1; `not told` where no word tells the language.
        model: Spec of the model.
        model_id: Model and weights that embedded the photos.
        index: Kind of index.
        config_id: Configuration in force.
        snapshot_id: Snapshot in force.
        snapshots: Snapshots on disk.
        created_at: When the library was made, ISO 8601.
        indexed_at: When it was indexed last; empty where that is not known.
        sizes: Bytes on disk by part; `total` is their sum.
        problems: What the last indexing skipped.
        missing: Folders that the last indexing could not reach.
    """

    folder: str
    n_photos: int
    roots: tuple[RootInfo, ...]
    sources: dict[str, int]
    licenses: dict[str, int]
    photographers: int
    first_day: str
    last_day: str
    written: dict[str, int]
    languages: dict[str, float]
    model: str
    model_id: str
    index: str
    config_id: str
    snapshot_id: str
    snapshots: int
    created_at: str
    indexed_at: str
    sizes: dict[str, int]
    problems: tuple[Skipped, ...]
    missing: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return asdict(self)


def describe_library(library: Library) -> LibraryInfo:
    """Say what a library holds.

    Raises:
        NotFoundError: Nothing was indexed yet.
        DataError: The snapshot in force is damaged or of another version.
    """
    name = current_id(library.folder)
    if name is None:
        msg = (
            f"a library must hold photos to say something of them, got {library.folder} without; "
            f"run `searchlab index --data {shell_word(library.folder)} PHOTOS`"
        )
        raise NotFoundError(msg)
    place = library.folder / "snapshots" / name
    manifest = read_manifest(place)
    table = PhotoTable.open(place / "photos.columns")
    days = table.uploaded_days
    return LibraryInfo(
        folder=str(library.folder),
        n_photos=len(table),
        roots=_describe_roots(table, read_roots(place)),
        sources=_count_values(table, "source"),
        licenses=_count_values(table, "license_type"),
        photographers=len(set(table.codes("photographer_username").values) - {""}),
        first_day=iso_day(int(days.min())),
        last_day=iso_day(int(days.max())),
        written={
            field: int(np.count_nonzero(np.diff(table.column(column).starts)))
            for field, column in _WRITTEN.items()
        },
        languages=_share_languages(table),
        model=manifest["config"]["model"],
        model_id=manifest["config"]["model_id"],
        index=manifest["config"]["index"],
        config_id=manifest["config_id"],
        snapshot_id=name,
        snapshots=len(list((library.folder / "snapshots").glob("[0-9]*"))),
        created_at=str(read_description(library.folder).get("created_at", "")),
        sizes=_measure(library.folder, name),
        **_read_last_run(library.folder),
    )


def record_run(folder: Path, problems: Sequence[Skipped], missing: Sequence[Path]) -> None:
    """Write down when a library was indexed, and what was skipped.

    Args:
        folder: The library.
        problems: Files and lines that were skipped; of very many, the first.
        missing: Folders that could not be reached.
    """
    record = {
        "indexed_at": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
        "problems": [asdict(problem) for problem in problems[:_MOST_PROBLEMS]],
        "missing": [str(root) for root in missing],
    }
    write_atomically(folder / _LAST_RUN, json.dumps(record).encode(), mode=0o600)


def _read_last_run(folder: Path) -> dict[str, Any]:
    # It is no part of the snapshot: without it, or if it is damaged, the rest can still be said.
    try:
        record = json.loads((folder / _LAST_RUN).read_bytes())
        return {
            "indexed_at": str(record["indexed_at"]),
            "problems": tuple(Skipped(**problem) for problem in record["problems"]),
            "missing": tuple(map(str, record["missing"])),
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {"indexed_at": "", "problems": (), "missing": ()}


def _describe_roots(table: PhotoTable, roots: Sequence[Root]) -> tuple[RootInfo, ...]:
    # The innermost first: its path is the longest that a file's path can begin with.
    order = sorted(roots, key=lambda root: len(str(root.folder)), reverse=True)
    heads = [f"{root.folder}{os.sep}" for root in order]
    counts = dict.fromkeys(order, 0)
    sources = table.codes("source")
    for file, code in zip(table.texts("file"), sources.rows.tolist(), strict=True):
        around = [root for head, root in zip(heads, order, strict=True) if file.startswith(head)]
        # Of several in one folder, such as two dumps, the one of the photo's source.
        same = [root for root in around if root.folder == around[0].folder]
        own = [root for root in same if root.source == sources.values[code]]
        for root in (own or same)[:1]:
            counts[root] += 1
    return tuple(
        RootInfo(str(root.place), root.source, counts[root], root.is_there) for root in roots
    )


def _count_values(table: PhotoTable, name: str) -> dict[str, int]:
    codes = table.codes(name)
    counts = np.bincount(codes.rows, minlength=len(codes.values)).tolist()
    pairs = sorted(zip(codes.values, counts, strict=True), key=lambda pair: (-pair[1], pair[0]))
    return {value: count for value, count in pairs if count}


def _share_languages(table: PhotoTable) -> dict[str, float]:
    rows = np.unique(np.linspace(0, len(table) - 1, min(len(table), _SAMPLE)).astype(np.int64))
    titles, descriptions = (table.column(name).at(rows) for name in ("title", "source_description"))
    counts = Counter(
        language_of(words_of(f"{title} {description}"))
        for title, description in zip(titles, descriptions, strict=True)
    )
    return {
        "not told" if language is None else LANGUAGES[language]: round(times / len(rows), 3)
        for language, times in counts.most_common()
    }


def _measure(folder: Path, snapshot_id: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()
    current = folder / "snapshots" / snapshot_id
    # The snapshot in force comes first: others share files with it, as links.
    for path in [*_files(current), *_files(folder)]:
        try:
            stat = path.lstat()
        except FileNotFoundError:  # somebody is writing
            continue
        if (stat.st_dev, stat.st_ino) in seen:
            continue
        seen.add((stat.st_dev, stat.st_ino))
        part = _part(path, folder, current)
        sizes[part] = sizes.get(part, 0) + stat.st_size
    ordered = dict(sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0])))
    return {**ordered, "total": sum(ordered.values())}


def _files(folder: Path) -> list[Path]:
    return [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]


def _part(path: Path, folder: Path, current: Path) -> str:
    if path.is_relative_to(current):
        return path.relative_to(current).parts[0].partition(".")[0].partition("-")[0]
    first = path.relative_to(folder).parts[0]
    if first == "snapshots":
        return "earlier snapshots"
    first = first.partition(".")[0]
    return first if first in _PARTS else "other"
