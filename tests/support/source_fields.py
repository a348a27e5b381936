"""The table of datasets/SOURCES.md: for each library and field of a photo, where it comes from."""

from __future__ import annotations

from collections.abc import Iterable

from searchlab.photos.photo import PHOTO_FIELDS
from searchlab.sources import SOURCES
from searchlab.sources.source import Source

_ALWAYS = {"source_photo_id", "image_url", "urls", "source_image_url", "attribution"}
_COMPUTED = {
    *("photo_id", "width", "height", "orientation", "blur_hash", "color_name", "color_hex"),
    *("description", "alt_description", "relevance_score"),
}
_MARKS = {"record": "●", "library": "◆", "computed": "○", "not available": "–"}
_LEGEND = (
    "● from the record, ◆ the same for the whole library, ○ computed from the picture "
    "(and `photo_id`, `relevance_score`), – not available and left empty "
    "(`uploaded_on`: the day of indexing)"
)


def origin_of(source: Source, field: str) -> str:
    """Say where a photo's field comes from: record, library, computed or not available.

    Args:
        source: The library.
        field: One of `PHOTO_FIELDS`.
    """
    recorded_fields = {*_ALWAYS, *source.record_fields}
    if "width" in recorded_fields:
        recorded_fields.add("orientation")
    if "color_hex" in recorded_fields:
        recorded_fields.add("color_name")
    if field == "source" or (field == "license_type" and source.one_license):
        return "library"
    if field in recorded_fields:
        return "record"
    return "computed" if field in _COMPUTED else "not available"


def fields_table(sources: Iterable[Source] = SOURCES.values()) -> str:
    """Return the table in Markdown, one line a field and one column a library."""
    listed = list(sources)
    lines = [
        f"| field | {' | '.join(source.title for source in listed)} |",
        f"| --- |{' :-: |' * len(listed)}",
    ]
    for field in PHOTO_FIELDS:
        marks = [_MARKS[origin_of(source, field)] for source in listed]
        lines.append(f"| `{field}` | {' | '.join(marks)} |")
    return "\n".join([*lines, "", _LEGEND])
