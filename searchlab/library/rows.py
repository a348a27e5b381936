"""A row of the photo table: what the record says of a photo, and what its picture shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchlab.library.cache import Facts
from searchlab.library.scan import Picture
from searchlab.photos.colors import color_name
from searchlab.photos.descriptions import Sight, describe
from searchlab.photos.metadata import merge_records
from searchlab.photos.photo import URL_SIZES, Photo, attribution_of, orientation_of, web_url
from searchlab.photos.sidecar import Record
from searchlab.photos.table import row_of_photo
from searchlab.sources.record import SourceRecord

UNKNOWN_LICENSE = "unknown"


def row_of_picture(
    photo_id: str,
    picture: Picture,
    facts: Facts,
    *,
    source: str,
    sight: Sight,
    day: str,
    families_of: Mapping[str, str],
    folder: str = "",
) -> dict[str, Any]:
    """Build a photo's row; what its record does not say is taken from the picture.

    Args:
        photo_id: Its id.
        picture: File and record.
        facts: What was computed from the picture's bytes.
        source: Name of its library.
        sight: What a model sees in it, for the descriptions.
        day: `YYYY-MM-DD` to use where the record has no day.
        families_of: Names of the colours of `facts.shades`.
        folder: Where the file lies, from the indexed folder on.

    Returns:
        The values of the row by column, as `PhotoTable.from_rows` takes them.
    """
    record = picture.record
    upstream = record if isinstance(record, SourceRecord) else None
    if upstream is None:
        record = merge_records([record, picture.beside, facts.record])
    width, height = _size(upstream, facts)
    color_hex = (upstream and upstream.color_hex) or f"#{facts.shade:06x}"
    families = [families_of[shade] for shade, share in facts.palette if share >= 0.1]
    orientation = orientation_of(width, height)
    long, short = describe(sight, colors=families, orientation=orientation)
    license_type = record.license_type.lower() or UNKNOWN_LICENSE
    photographer = record.photographer_full_name or record.photographer_username
    linked = upstream is not None and not upstream.shown_from_copy
    photo = Photo(
        photo_id=photo_id,
        source_photo_id=record.source_photo_id or picture.source_photo_id,
        image_url=upstream.image_url if upstream and linked else f"/media/{photo_id}/full",
        urls=upstream.urls
        if upstream and linked
        else {size: f"/media/{photo_id}/{size}" for size in URL_SIZES},
        source_image_url=web_url(record.source_image_url),
        width=width,
        height=height,
        orientation=orientation,
        blur_hash=(upstream and upstream.blur_hash) or facts.blur_hash,
        color_name=families_of.get(color_hex) or color_name(color_hex),
        color_hex=color_hex,
        source=source,
        license_type=license_type,
        photographer_username=record.photographer_username,
        photographer_full_name=photographer,
        photographer_url=web_url(record.photographer_url),
        source_description=record.source_description,
        description=long,
        alt_description=record.alt_description or short,
        uploaded_on=record.uploaded_on or day,
        attribution=upstream.attribution
        if upstream
        else _credit(record, license_type, photographer),
        file=str(picture.path),
        sha256=picture.sha256,
        folder=folder,
        title=record.title,
        tags=record.tags,
        place=record.place,
        latitude=record.latitude,
        longitude=record.longitude,
        rating=record.rating,
        palette=tuple((shade, max(1, round(100 * share))) for shade, share in facts.palette),
    )
    return row_of_photo(photo) | {"label": 0}


def _size(upstream: SourceRecord | None, facts: Facts) -> tuple[int, int]:
    if upstream is None or not (upstream.width and upstream.height):
        return facts.width, facts.height
    # Some libraries give the sides as the camera stored them, before the picture was turned.
    turned = (upstream.width - upstream.height) * (facts.width - facts.height) < 0
    return (upstream.height, upstream.width) if turned else (upstream.width, upstream.height)


def _credit(record: Record, license_type: str, photographer: str) -> dict[str, str]:
    return attribution_of(
        title=record.title,
        photographer=photographer,
        license_type="" if license_type == UNKNOWN_LICENSE else license_type,
        page=record.source_image_url,
        profile=record.photographer_url,
        license_url=record.license_url,
        copyright_notice=record.copyright,
    )
