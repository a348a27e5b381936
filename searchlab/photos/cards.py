"""How a page looks in a notebook or a browser: a grid of photos with scores, colours and credit.

A library's own pages and those of the API's client are made of the same cards.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.photos.photo import Photo

if TYPE_CHECKING:
    from PIL import Image

_QUERY_SIDE = 240

STYLE = """
.searchlab-page{font:14px/1.4 system-ui,sans-serif;color:#222;background:#fff;padding:8px}
.searchlab-head{display:flex;align-items:center;gap:14px;margin:0 0 12px}
.searchlab-head img{max-width:120px;max-height:90px;border-radius:4px;display:block}
.searchlab-head h1,.searchlab-head h4{margin:0;font-size:20px;line-height:1.25}
.searchlab-head p{margin:2px 0 0;color:#444}
.searchlab-grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(180px,1fr));gap:14px}
@media(max-width:480px){.searchlab-grid{grid-template-columns:repeat(auto-fill,minmax(140px,1fr))}}
.searchlab-card{margin:0;border:1px solid #ddd;border-radius:6px;overflow:hidden;background:#fff}
.searchlab-frame{height:140px;display:flex;align-items:center;justify-content:center;background:#f3f3f3}
.searchlab-frame img{max-width:100%;max-height:140px;display:block}
.searchlab-card figcaption{padding:6px 8px 8px}
.searchlab-track{height:6px;background:#e4e4e4;border-radius:3px;margin:2px 0 6px}
.searchlab-track div{height:6px;background:#0072b2;border-radius:3px}
.searchlab-chip{display:inline-block;width:12px;height:12px;border:1px solid #888;border-radius:2px;
 vertical-align:-2px;margin-right:4px}
.searchlab-name{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;
 overflow:hidden;overflow-wrap:anywhere}
.searchlab-small{font-size:12px;color:#555;overflow-wrap:anywhere}
.searchlab-small a{color:#0b5394}
.searchlab-plan{margin:14px 0 0;font-size:12px;color:#444}
.searchlab-plan p{margin:4px 0 0;white-space:pre-line}
"""


def sheet_html(
    cards: Iterable[str],
    *,
    title: str = "",
    picture: str = "",
    summary: str = "",
    details: str = "",
    level: int = 4,
) -> str:
    """Lay out cards in a grid, as one self-contained piece of HTML.

    Args:
        cards: HTML of each card, in order.
        title: Heading above them, such as the query's words.
        picture: Address of a picture beside the heading, such as the query's.
        summary: Text between heading and cards.
        details: Text below the cards, folded away.
        level: Of the heading, 1 where nothing else is on the page.
    """
    heading = f'<h{level} dir="auto">{html.escape(title)}</h{level}>' if title else ""
    paragraph = f"<p>{html.escape(summary)}</p>" if summary else ""
    shown = f'<img src="{html.escape(picture)}" alt="the query\'s picture">' if picture else ""
    head = f'<header class="searchlab-head">{shown}<div>{heading}{paragraph}</div></header>'
    below = (
        '<details class="searchlab-plan"><summary>How this was answered</summary>'
        f"<p>{html.escape(details)}</p></details>"
    )
    return (
        f'<style>{STYLE}</style><div class="searchlab-page">{head}'
        f'<div class="searchlab-grid">{"".join(cards)}</div>{below if details else ""}</div>'
    )


def document_html(body: str, *, title: str, style: str = "", classes: str = "") -> str:
    """Make a whole document of some HTML, for a browser on a screen of any width.

    Args:
        body: The HTML.
        title: Of the browser's tab.
        style: CSS of the document.
        classes: Of its body.
    """
    named = f' class="{html.escape(classes)}"' if classes else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body{named}>\n{body}\n</body>\n</html>\n"
    )


def script_of(path: Path) -> str:
    """Return the browser side of a widget: its script, after what all widgets share."""
    shared = Path(__file__).with_name("dom.js").read_text(encoding="utf-8")
    return f"{shared}\n{path.read_text(encoding='utf-8')}"


def embed_picture(picture: Image.Image | bytes | Path | str) -> str:
    """Return a picture in small as a `data:` address, empty where its file has gone."""
    from searchlab.photos.images.decode import as_rgb, thumbnail

    if isinstance(picture, Path | str) and not Path(picture).exists():
        return ""
    small = thumbnail(as_rgb(picture, min_side=_QUERY_SIDE), _QUERY_SIDE)
    return f"data:image/webp;base64,{base64.b64encode(small).decode()}"


def photo_card(
    photo: Photo,
    *,
    place: int,
    score: float | None = None,
    thumbnail: Path | None = None,
    file: Path | None = None,
) -> str:
    """Render a photo of a library with its credit.

    Args:
        photo: The record.
        place: Place in the results, from 1.
        score: From 0 to 1.
        thumbnail: File of the small picture, which is embedded in the HTML.
        file: The original, which the picture and its name are linked to; None to say nothing of it.
    """
    image = ""
    if thumbnail is not None and thumbnail.exists():
        data = base64.b64encode(thumbnail.read_bytes()).decode()
        image = f"data:image/webp;base64,{data}"
    size = f"{photo.width} × {photo.height}, {html.escape(photo.source)}"
    address = "" if file is None else file.as_uri()
    name = "" if file is None else html.escape(file.name)
    named = f'<a href="{html.escape(address)}" dir="auto">{name}</a>' if name else ""
    return card_html(
        image=image,
        link=address,
        alt=photo.alt_description,
        place=place,
        score=score,
        color_name=photo.color_name,
        color_hex=photo.color_hex,
        name=photo.title or photo.source_description or photo.alt_description,
        lines=[named, size, photo.attribution["html"]],
    )


def card_html(
    *,
    image: str = "",
    link: str = "",
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
        link: Address that the picture leads to.
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
    if link:
        picture = f'<a href="{html.escape(link)}">{picture}</a>'
    number = "" if place is None else f"<b>{place}.</b> "
    small = "".join(f'<div class="searchlab-small">{line}</div>' for line in lines if line)
    return (
        f'<figure class="searchlab-card"><div class="searchlab-frame">{picture}</div>'
        f'<figcaption><div class="searchlab-name" dir="auto">{number}{html.escape(name)}</div>'
        f"{_bar(score)}{small}{_chip(color_name, color_hex)}</figcaption></figure>"
    )


def _bar(score: float | None) -> str:
    if score is None:
        return ""
    bar = f'<div style="width:{100 * score:.1f}%"></div>'
    return f'<div class="searchlab-small">{score:.2f}</div><div class="searchlab-track">{bar}</div>'


def _chip(color_name: str, color_hex: str) -> str:
    if not color_hex:
        return ""
    shade = html.escape(color_hex)
    chip = f'<span class="searchlab-chip" style="background:{shade}"></span>'
    return f'<div class="searchlab-small">{chip}{html.escape(color_name)} {shade}</div>'
