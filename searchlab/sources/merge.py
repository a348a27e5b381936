"""Merge the records of one photo from several libraries: the best credit, and every link."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from searchlab.photos.photo import credit_line
from searchlab.sources import SOURCES
from searchlab.sources.record import SourceRecord

_FILLED = (
    *("title", "source_description", "alt_description", "uploaded_on"),
    *("photographer_username", "photographer_full_name", "photographer_url"),
    *("color_hex", "blur_hash"),
)


def merge(records: Iterable[SourceRecord]) -> SourceRecord:
    """Merge records of one photo, in the order in which they came.

    The record of the library that published the photo is the basis, also for the licence; of two
    records of one library the later one counts. Its empty fields are filled from the others. The
    credit names and links every further library.

    Args:
        records: At least one; all of one `origin`.
    """
    latest = {record.source: record for record in records}
    ranked = sorted(latest.values(), key=lambda record: record.source != record.origin[0])
    best, others = ranked[0], ranked[1:]
    for other in others:
        best = _fill_gaps(best, other)
    return best


def _fill_gaps(best: SourceRecord, other: SourceRecord) -> SourceRecord:
    gaps = {name: getattr(other, name) for name in _FILLED if not getattr(best, name)}
    if not (best.width and best.height):
        gaps |= {"width": other.width, "height": other.height}
    known = {library for library, _ in best.links}
    further = tuple(link for link in other.links if link[0] not in known)
    attribution = dict(best.attribution)
    for library, page in further:
        title = SOURCES[library].title if library in SOURCES else library
        also = credit_line("; also at ", (title, page))
        attribution = {form: attribution[form] + also[form] for form in ("html", "plain")}
    return replace(best, **gaps, links=best.links + further, attribution=attribution)
