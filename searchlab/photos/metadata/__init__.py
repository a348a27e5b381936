"""What people and devices write into picture files and beside them, as a `Record`.

Several may speak of one photo. Field by field, the first of these that says anything counts:

1. the line of `photos.jsonl`, or of the records that were named;
2. `IMG_1.jpg.xmp` beside `IMG_1.jpg`, as darktable writes it;
3. `IMG_1.xmp` beside it, as Lightroom writes it;
4. XMP in the file;
5. IPTC in the file;
6. EXIF in the file.

Fields that are of one kind go together: licence and its address, what is known of the photographer,
latitude and longitude. What the photo libraries themselves say of their photos is not added to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

from searchlab.photos.metadata.exif import exif_record, iptc_in_tiff, xmp_in_tiff
from searchlab.photos.metadata.iptc import iptc_record
from searchlab.photos.metadata.xmp import xmp_record
from searchlab.photos.sidecar import Record

_TOGETHER = (
    ("license_type", "license_url"),
    ("photographer_username", "photographer_full_name", "photographer_url"),
    ("latitude", "longitude"),
)
_EMPTY = {field.name: field.default for field in fields(Record)}
_GROUPS = (*_TOGETHER, *((name,) for name in _EMPTY if not any(name in g for g in _TOGETHER)))


@dataclass(frozen=True, slots=True)
class MetadataBlocks:
    """The blocks of a picture file that speak of it, as they stand in it; empty where it has none.

    Attributes:
        exif: A TIFF structure, with or without `Exif` before it.
        iptc: IPTC-IIM.
        xmp: An XMP packet.
    """

    exif: bytes = b""
    iptc: bytes = b""
    xmp: bytes = b""

    @classmethod
    def of(cls, content: bytes, kind: str, info: dict[Any, Any]) -> MetadataBlocks:
        """Find the blocks of a decoded file.

        Args:
            content: The file.
            kind: Its format.
            info: What Pillow read besides the picture.
        """
        if kind == "TIFF":
            return cls(content, iptc_in_tiff(content), xmp_in_tiff(content))
        resources = info.get("photoshop")
        iptc = resources.get(0x0404) if isinstance(resources, dict) else b""
        return cls(_bytes(info.get("exif")), _bytes(iptc), _bytes(info.get("xmp")))

    def record(self) -> Record:
        """Say what they tell; damage leaves out what is damaged."""
        merged = merge_records(
            [
                *_read(partial(xmp_record, only_taken=True), self.xmp),
                *_read(iptc_record, self.iptc),
                *_read(partial(exif_record, only_taken=True), self.exif),
            ]
        )
        if merged.uploaded_on:
            return merged
        # When a scan was made counts where nothing says when the photo was taken.
        return merge_records([merged, *_read(xmp_record, self.xmp), *_read(exif_record, self.exif)])


NO_METADATA: Final = MetadataBlocks()


def merge_records(records: Iterable[Record]) -> Record:
    """Merge what several say of one photo; of each kind of field, the first that has it counts."""
    records = list(records)
    values: dict[str, Any] = {}
    for group in _GROUPS:
        for record in records:
            said = {name: getattr(record, name) for name in group}
            if any(value != _EMPTY[name] for name, value in said.items()):
                values |= said
                break
    return Record(**values)


def _read(read: Callable[[bytes], Record], block: bytes) -> list[Record]:
    if not block:
        return []
    try:
        return [read(block)]
    except ValueError:  # It is none: the photo is no worse for that.
        return []


def _bytes(block: object) -> bytes:
    if isinstance(block, str):
        return block.encode(errors="replace")
    return block if isinstance(block, bytes) else b""
