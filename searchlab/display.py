"""How a page looks in a notebook: a grid of photos with scores, colours, credit and the plan."""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchlab.queries import Hit, Page

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


def page_html(page: Page, *, title: str = "") -> str:
    """Render a page of results as one self-contained piece of HTML.

    Args:
        page: The results.
        title: A heading, such as the query's words.
    """
    heading = f"<h4>{html.escape(title)}</h4>" if title else ""
    more = "More pages follow." if page.has_more else "This is the last page."
    summary = f"{len(page)} of up to {page.per_page} results. {more}"
    plan = f'<p class="searchlab-plan">{html.escape(page.plan.explain())}\n{summary}</p>'
    cards = "".join(_card(place, hit) for place, hit in enumerate(page, start=page.start))
    return (
        f'<style>{STYLE}</style><div class="searchlab-page">{heading}{plan}'
        f'<div class="searchlab-grid">{cards}</div></div>'
    )


def _card(place: int, hit: Hit) -> str:
    photo, score = hit.photo, hit.relevance_score
    name = html.escape(photo.source_description or photo.alt_description)
    size = f"{photo.width} × {photo.height}, {html.escape(photo.source)}"
    return (
        f'<figure class="searchlab-card"><div class="searchlab-frame">{_image(hit)}</div>'
        f"<figcaption><b>{place}.</b> {score:.3f}"
        f'<div class="searchlab-track"><div style="width:{100 * score:.1f}%"></div></div>'
        f'<div><span class="searchlab-chip" style="background:{photo.color_hex}"></span>'
        f"{html.escape(photo.color_name)} {photo.color_hex}</div>"
        f'<div>{name}</div><div class="searchlab-small">{size}</div>'
        f'<div class="searchlab-small">{photo.attribution["html"]}</div></figcaption></figure>'
    )


def _image(hit: Hit) -> str:
    alt = html.escape(hit.photo.alt_description)
    if hit.thumbnail is None or not hit.thumbnail.exists():
        return f'<span class="searchlab-small">{alt}</span>'
    data = base64.b64encode(hit.thumbnail.read_bytes()).decode()
    return f'<img src="data:image/webp;base64,{data}" alt="{alt}" loading="lazy">'
