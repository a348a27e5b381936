"""How a page looks in a notebook: a grid of photos with scores, colours, credit and the plan.

A library's own pages and those of the API's client are made of the same cards.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from pathlib import Path

from searchlab.photos.photo import Photo

STYLE = """
.searchlab-page{font:13px/1.4 system-ui,sans-serif;color:#222;background:#fff;padding:8px}
.searchlab-grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(180px,1fr));gap:14px}
.searchlab-card{margin:0;border:1px solid #ddd;border-radius:6px;overflow:hidden;background:#fff}
.searchlab-frame{height:140px;display:flex;align-items:center;justify-content:center;background:#f3f3f3}
.searchlab-frame img{max-width:100%;max-height:140px;display:block}
.searchlab-card figcaption{padding:6px 8px 8px}
.searchlab-track{height:6px;background:#e4e4e4;border-radius:3px;margin:2px 0 6px}
.searchlab-track div{height:6px;background:#0072b2;border-radius:3px}
.searchlab-chip{display:inline-block;width:12px;height:12px;border:1px solid #888;border-radius:2px;
 vertical-align:-2px;margin-right:4px}
.searchlab-small{font-size:11px;color:#555;overflow-wrap:anywhere}
.searchlab-small a{color:#0b5394}
.searchlab-plan{margin:0 0 10px;font-size:12px;color:#444;white-space:pre-line}
"""


def sheet_html(cards: Iterable[str], *, title: str = "", summary: str = "") -> str:
    """Lay out cards in a grid, as one self-contained piece of HTML.

    Args:
        cards: HTML of each card, in order.
        title: Heading above them, such as the query's words.
        summary: Text between heading and cards.
    """
    heading = f"<h4>{html.escape(title)}</h4>" if title else ""
    paragraph = f'<p class="searchlab-plan">{html.escape(summary)}</p>' if summary else ""
    return (
        f'<style>{STYLE}</style><div class="searchlab-page">{heading}{paragraph}'
        f'<div class="searchlab-grid">{"".join(cards)}</div></div>'
    )


def photo_card(
    photo: Photo, *, place: int, score: float | None = None, thumbnail: Path | None = None
) -> str:
    """Render a photo of a library with its credit.

    Args:
        photo: The record.
        place: Place in the results, from 1.
        score: From 0 to 1.
        thumbnail: File of the small picture, which is embedded in the HTML.
    """
    image = ""
    if thumbnail is not None and thumbnail.exists():
        data = base64.b64encode(thumbnail.read_bytes()).decode()
        image = f"data:image/webp;base64,{data}"
    size = f"{photo.width} × {photo.height}, {html.escape(photo.source)}"
    return card_html(
        image=image,
        alt=photo.alt_description,
        place=place,
        score=score,
        color_name=photo.color_name,
        color_hex=photo.color_hex,
        name=photo.source_description or photo.alt_description,
        lines=[size, photo.attribution["html"]],
    )


def card_html(
    *,
    image: str = "",
    alt: str = "",
    place: int | None = None,
    score: float | None = None,
    color_name: str = "",
    color_hex: str = "",
    name: str = "",
    lines: Iterable[str] = (),
) -> str:
    """Render a photo as HTML; what is empty or None is left out.

    Args:
        image: Address of the picture; where there is none, `alt` is shown instead.
        alt: Text for people who cannot see the picture.
        place: Place in the results, from 1.
        score: From 0 to 1.
        color_name: Family of the dominant colour.
        color_hex: `#` and six hex digits of the dominant colour.
        name: Title or description.
        lines: HTML of the last lines, in small letters; empty ones are left out.
    """
    picture = f'<span class="searchlab-small">{html.escape(alt)}</span>'
    if image:
        picture = f'<img src="{html.escape(image)}" alt="{html.escape(alt)}" loading="lazy">'
    number = "" if place is None else f"<b>{place}.</b> "
    small = "".join(f'<div class="searchlab-small">{line}</div>' for line in lines if line)
    return (
        f'<figure class="searchlab-card"><div class="searchlab-frame">{picture}</div>'
        f"<figcaption>{number}{_bar(score)}{_chip(color_name, color_hex)}"
        f"<div>{html.escape(name)}</div>{small}</figcaption></figure>"
    )


def _bar(score: float | None) -> str:
    if score is None:
        return ""
    bar = f'<div style="width:{100 * score:.1f}%"></div>'
    return f'{score:.3f}<div class="searchlab-track">{bar}</div>'


def _chip(color_name: str, color_hex: str) -> str:
    if not color_hex:
        return ""
    shade = html.escape(color_hex)
    chip = f'<span class="searchlab-chip" style="background:{shade}"></span>'
    return f"<div>{chip}{html.escape(color_name)} {shade}</div>"
