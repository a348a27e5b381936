"""Photos of the API as HTML for notebooks: the same cards as for a library, with linked images."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from searchlab.photos.cards import card_html, sheet_html
from searchlab.photos.photo import web_url

if TYPE_CHECKING:
    from searchlab.api.wire.schema import Photo


def grid_html(photos: Sequence[Photo], *, summary: str = "") -> str:
    """Render photos as cards; fields that were not requested are left out, and texts are escaped.

    Args:
        photos: The photos in order.
        summary: A line above them.
    """
    return sheet_html(map(_card, photos), summary=summary)


def _card(photo: Photo) -> str:
    score = photo.relevance_score
    size = f"{photo.width} × {photo.height}" if photo.width and photo.height else ""
    where = ", ".join(part for part in (size, html.escape(photo.source or "")) if part)
    return card_html(
        image=web_url(photo.urls.thumb if photo.urls else photo.image_url or ""),
        alt=photo.alt_description or "",
        score=score if isinstance(score, float) else None,
        color_name=photo.color_name or "",
        color_hex=photo.color_hex or "",
        name=photo.source_description or photo.alt_description or photo.photo_id or "",
        lines=[where, _credit(photo)],
    )


def _credit(photo: Photo) -> str:
    credit = html.escape(photo.attribution.plain) if photo.attribution else ""
    page = web_url(photo.source_image_url or "")
    if not (credit and page):
        return credit
    return f'<a href="{html.escape(page)}" rel="noopener">{credit}</a>'
