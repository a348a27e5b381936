"""How photos of the API look in a notebook: the grid of a library's own pages, linked images."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from searchlab.display import STYLE
from searchlab.photos import web_url

if TYPE_CHECKING:
    from searchlab.client.records import Photo


def grid_html(photos: Sequence[Photo], *, summary: str = "") -> str:
    """Render photos as cards; what `fields` left out is left out, and no markup is taken over.

    Args:
        photos: In order.
        summary: A line above them.
    """
    head = f'<p class="searchlab-plan">{html.escape(summary)}</p>' if summary else ""
    cards = "".join(map(_card, photos))
    return (
        f'<style>{STYLE}</style><div class="searchlab-page">{head}'
        f'<div class="searchlab-grid">{cards}</div></div>'
    )


def _card(photo: Photo) -> str:
    name = photo.source_description or photo.alt_description or photo.photo_id or ""
    lines = [_score(photo), _color(photo), f"<div>{html.escape(name)}</div>", *_small(photo)]
    return (
        f'<figure class="searchlab-card"><div class="searchlab-frame">{_image(photo)}</div>'
        f"<figcaption>{''.join(lines)}</figcaption></figure>"
    )


def _image(photo: Photo) -> str:
    alt = html.escape(photo.alt_description or "")
    source = web_url(photo.urls.thumb if photo.urls else photo.image_url or "")
    if not source:
        return f'<span class="searchlab-small">{alt}</span>'
    return f'<img src="{html.escape(source)}" alt="{alt}" loading="lazy">'


def _score(photo: Photo) -> str:
    if not photo.relevance_score:
        return ""
    score = photo.relevance_score
    bar = f'<div style="width:{100 * score:.1f}%"></div>'
    return f'{score:.3f}<div class="searchlab-track">{bar}</div>'


def _color(photo: Photo) -> str:
    if not photo.color_hex:
        return ""
    shade = html.escape(photo.color_hex)
    chip = f'<span class="searchlab-chip" style="background:{shade}"></span>'
    return f"<div>{chip}{html.escape(photo.color_name or '')} {shade}</div>"


def _small(photo: Photo) -> list[str]:
    size = f"{photo.width} × {photo.height}" if photo.width and photo.height else ""
    credit = html.escape(photo.attribution.plain) if photo.attribution else ""
    page = web_url(photo.source_image_url or "")
    if credit and page:
        credit = f'<a href="{html.escape(page)}" rel="noopener">{credit}</a>'
    where = ", ".join(part for part in (size, html.escape(photo.source or "")) if part)
    return [f'<div class="searchlab-small">{line}</div>' for line in (where, credit) if line]
