"""Dumps of upstream libraries as a whole: merged, licences checked, each photo with its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from searchlab.library.roots import Root
from searchlab.photos.licenses import refusal
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress
from searchlab.sources import find_source
from searchlab.sources.dump import DumpRecord, read_dump
from searchlab.sources.merge import merge
from searchlab.sources.picture_store import PictureStore
from searchlab.sources.record import SourceRecord

_Way = tuple[Root, DumpRecord]


def pictures_of_dumps(
    dumps: Sequence[Root], progress: Progress
) -> Iterator[tuple[Path, SourceRecord] | Skipped]:
    """Find the photos of some dumps that a library takes in.

    What several records say of one photo becomes one record. Its licence is checked then, by what
    the library that published it says.

    Args:
        dumps: That can be reached.
        progress: Told about every record.

    Yields:
        A picture's path and what is said of it, or why a record is left out.
    """
    photos: dict[tuple[str, str], list[_Way]] = {}
    for root in dumps:
        with progress.step(f"reading {root.place.name}", unit="records") as step:
            for item in read_dump(root.place, find_source(root.source)):
                step.advance(1)
                if isinstance(item, Skipped):
                    yield item
                else:
                    _note(photos.setdefault(item.record.origin, []), (root, item))
    stores = {root.folder: PictureStore(root.folder) for root in dumps}
    for ways in photos.values():
        yield _picture(ways, stores)


def _note(ways: list[_Way], way: _Way) -> None:
    # A growing dump repeats a photo that has changed: the last line counts.
    source = way[1].record.source
    ways[:] = [other for other in ways if other[1].record.source != source]
    ways.append(way)


def _picture(
    ways: list[_Way], stores: dict[Path, PictureStore]
) -> tuple[Path, SourceRecord] | Skipped:
    record = merge(read.record for _, read in ways)
    # The record that speaks for the photo comes first, and its picture before those of others.
    ways = sorted(ways, key=lambda way: way[1].record.source != record.source)
    root, read = ways[0]
    if why := refusal(record.license_type, root.allowed):
        return Skipped(read.where, why)
    for other, said in ways:
        path = stores[other.folder].find(said.record)
        if path is not None:
            return path, record
    reason = f"no picture of {record.source} {record.source_photo_id} in {root.folder}"
    return Skipped(read.where, f"{reason}; `searchlab fetch --dump` brings it")
