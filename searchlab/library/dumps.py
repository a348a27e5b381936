"""Photos of dumps: records of one photo merged, licences checked, pictures found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from searchlab.errors import InputError
from searchlab.library.roots import Root
from searchlab.photos.licenses import refusal
from searchlab.photos.photo import Photo, photo_id_of
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress
from searchlab.sources import find_source
from searchlab.sources.dump import DumpRecord, read_dump
from searchlab.sources.merge import merge
from searchlab.sources.picture_store import PictureStore
from searchlab.sources.record import SourceRecord

# A record, and the dump that it was read from.
_Reading = tuple[Root, DumpRecord]


def pictures_of_dumps(
    dumps: Sequence[Root], progress: Progress
) -> Iterator[tuple[Path, SourceRecord] | Skipped]:
    """Find the photos of some dumps that a library takes in.

    Several records of one photo become one. Then its licence is checked, as given by the library
    that published the photo.

    Args:
        dumps: Dumps whose files can be reached.
        progress: Told about every record.

    Yields:
        The path of a picture and its record, or why a record is left out.
    """
    photos: dict[tuple[str, str], list[_Reading]] = {}
    for root in dumps:
        with progress.step(f"reading {root.place.name}", unit="records") as step:
            for item in read_dump(root.place, find_source(root.source)):
                step.advance(1)
                if isinstance(item, Skipped):
                    yield item
                else:
                    _add_reading(photos.setdefault(item.record.origin, []), (root, item))
    stores = {root.folder: PictureStore(root.folder) for root in dumps}
    for readings in photos.values():
        yield _find_picture(readings, stores)


def origins_of(photos: Iterable[Photo], roots: Iterable[Root]) -> dict[str, tuple[str, str]]:
    """Find the library that published each photo, and its id there, which its `photo_id` is of.

    What an aggregator passes on has this from its origin, and its record from the aggregator.

    Args:
        photos: Photos of a library.
        roots: What the library covers.

    Returns:
        `photo_id` -> what `photo_id_of` makes it of.

    Raises:
        InputError: A photo's dump cannot be reached.
    """
    origins = {photo.photo_id: (photo.source, photo.source_photo_id) for photo in photos}
    passed_on = {photo for photo, origin in origins.items() if photo_id_of(*origin) != photo}
    for root in roots if passed_on else ():
        if root.is_dump and root.is_there:
            for item in read_dump(root.place, find_source(root.source)):
                if not isinstance(item, Skipped):
                    photo_id = photo_id_of(*item.record.origin)
                    if photo_id in passed_on:
                        origins[photo_id] = item.record.origin
                        passed_on.remove(photo_id)
    if passed_on:
        msg = (
            f"the dumps of all photos must be there, got none with {min(passed_on)}, which "
            f"{origins[min(passed_on)][0]} passed on; bring back its dump"
        )
        raise InputError(msg)
    return origins


def _add_reading(readings: list[_Reading], new: _Reading) -> None:
    # A growing dump repeats a photo that has changed: the last line counts. What other folders
    # have of it stays, for its picture may be there.
    place = new[1].record.source, new[0].folder
    readings[:] = [read for read in readings if (read[1].record.source, read[0].folder) != place]
    readings.append(new)


def _find_picture(
    readings: list[_Reading], stores: dict[Path, PictureStore]
) -> tuple[Path, SourceRecord] | Skipped:
    record = merge(read.record for _, read in readings)
    # The library that published the photo comes first, and what was read last: their picture is
    # preferred.
    readings = readings[::-1]
    readings.sort(key=lambda reading: reading[1].record.source != record.source)
    root, best = readings[0]
    if why := refusal(record.license_type, root.allowed):
        return Skipped(best.where, why)
    for dump, read in readings:
        path = stores[dump.folder].find(read.record)
        if path is not None:
            return path, record
    reason = f"no picture of {record.source} {record.source_photo_id} in {root.folder}"
    return Skipped(best.where, f"{reason}; `searchlab fetch --dump` downloads it")
