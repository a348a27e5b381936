"""Markup: the elements of every page, and one style for notebooks and files.

Dark on white, readable on a phone and in print, with a keyboard and with a screen reader. No
information is given by colour alone, and nothing is loaded from other servers.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence

from searchlab.photos.cards import document_html

# Okabe and Ito's blue, orange and vermilion, which all kinds of colour vision tell apart.
BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"
STYLE = f"""
.sl{{font:15px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;text-align:left}}
.sl h1{{font-size:1.7rem;line-height:1.2;margin:0 0 .3em}}
.sl h2{{font-size:1.3rem;margin:2.2em 0 .5em;padding-top:.6em;border-top:1px solid #ccc}}
.sl h3{{font-size:1.05rem;margin:1.4em 0 .4em}}
.sl p{{max-width:80ch}}
.sl a{{color:#0b5394}}
.sl .wide{{overflow-x:auto;margin:.6em 0}}
.sl table{{border-collapse:collapse;font-size:.83rem;font-variant-numeric:tabular-nums}}
.sl caption{{text-align:left;font-weight:600;padding:.2em 0 .4em}}
.sl th,.sl td{{padding:.28em .5em;text-align:right;white-space:nowrap;vertical-align:baseline;
 background:none;border:0}}
.sl thead th{{border-bottom:1px solid #666;vertical-align:bottom;white-space:normal;
 overflow-wrap:break-word;max-width:12em}}
.sl tbody tr{{border-bottom:1px solid #eee;background:none}}
.sl tbody th{{font-weight:inherit}}
.sl .left{{text-align:left;white-space:normal;min-width:11em;overflow-wrap:break-word}}
.sl tr.chosen{{font-weight:600;box-shadow:inset 3px 0 {ORANGE}}}
.sl tr.first th,.sl tr.first td{{border-top:1px solid #999}}
.sl .track{{position:relative;height:10px;width:96px;background:#ececec;border-radius:5px}}
.sl .track i{{position:absolute;height:10px;background:#8fc1e0;border-radius:5px}}
.sl .track b{{position:absolute;height:14px;top:-2px;width:3px;background:{BLUE}}}
.sl .note{{font-size:.85rem;color:#444;max-width:95ch}}
.sl .says{{background:#f4f7fa;border-left:4px solid {BLUE};padding:.6em 1em;margin:.8em 0}}
.sl .says li{{margin:.25em 0}}
.sl figure{{margin:1em 0;overflow-x:auto}}
.sl figure svg,.sl figure img{{max-width:100%;min-width:38rem;height:auto}}
.sl figcaption{{font-size:.85rem;color:#444;max-width:95ch}}
.sl ol.strip{{display:flex;gap:6px;overflow-x:auto;list-style:none;margin:.2em 0 .7em;padding:2px}}
.sl ol.strip li{{flex:0 0 auto;width:96px;border:2px solid #ddd;border-radius:4px;overflow:hidden;
 background:#fafafa;font-size:.75rem}}
.sl ol.strip li.good{{border-color:{BLUE};background:#eaf4fb}}
.sl ol.strip img,.sl ol.strip .none{{display:flex;width:92px;height:72px;object-fit:contain;
 margin:0;overflow:hidden;align-items:center;padding:0}}
.sl ol.strip .none{{font-size:.65rem;color:#444;padding:2px;box-sizing:border-box}}
.sl ol.strip small{{display:block;padding:1px 4px;white-space:nowrap}}
.sl .case{{border:1px solid #ddd;border-radius:6px;padding:.5em .8em;margin:.7em 0}}
.sl .case h4{{margin:.1em 0 .3em;font-size:.98rem}}
.sl .bar{{display:flex;height:1.7em;max-width:44em;border:1px solid #999;font-size:.8rem;
 overflow:hidden}}
.sl .bar span{{overflow:hidden;white-space:nowrap;padding:.15em .4em;box-sizing:border-box}}
.sl .won{{background:#cfe5f3}} .sl .tied{{background:#fff}} .sl .lost{{background:#f8d9bf}}
.sl details{{margin:.6em 0}} .sl summary{{cursor:pointer;padding:.2em 0}}
.sl pre{{font-size:.78rem;overflow-x:auto;background:#f6f6f6;padding:.7em;white-space:pre-wrap;
 overflow-wrap:anywhere}}
.sl nav ul{{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2em 1.2em}}
@media print{{.sl h2{{break-after:avoid}} .sl .case,.sl figure,.sl tr{{break-inside:avoid}}
 .sl table{{font-size:.66rem}} .sl figure svg,.sl figure img{{min-width:0}}
 .sl .wide,.sl ol.strip{{overflow:visible}} .sl ol.strip{{flex-wrap:wrap}} .sl nav{{display:none}}}}
"""
_PAGE = """
body{margin:0;background:#fff}
main{max-width:74rem;margin:0 auto;padding:1.2rem 1rem 4rem}
:focus-visible{outline:3px solid #0072b2;outline-offset:2px}
"""


def piece(body: str) -> str:
    """Wrap markup with its style, for a notebook."""
    return f'<style>{STYLE}</style><div class="sl">{body}</div>'


def page(title: str, body: str) -> str:
    """Return a complete HTML file that needs no other file.

    Args:
        title: Title, as text.
        body: Contents, as markup.
    """
    body = f"<main>\n{body}\n</main>"
    return document_html(body, title=title, style=f"{STYLE}{_PAGE}", classes="sl")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    left: Collection[str] = (),
    classes: Sequence[str] = (),
    raw: Collection[str] = (),
) -> str:
    """Render a table that scrolls sideways if it is wider than the screen.

    Args:
        columns: Headings.
        rows: Cells, as text.
        caption: What it shows.
        left: Headings of columns of words; the first of them names the row.
        classes: CSS class of each row; empty for none.
        raw: Headings of columns whose cells are markup.
    """
    head = "".join(
        f'<th scope="col"{_kind(name in left)}>{html.escape(name)}</th>' for name in columns
    )
    lines = []
    naming = next((name for name in columns if name in left), None)
    for place, cells in enumerate(rows):
        parts = []
        for name, cell in zip(columns, cells, strict=True):
            inner = cell if name in raw else html.escape(cell)
            tag, scope = ("th", ' scope="row"') if name == naming else ("td", "")
            parts.append(f"<{tag}{scope}{_kind(name in left)}>{inner}</{tag}>")
        kind = f' class="{classes[place]}"' if classes and classes[place] else ""
        lines.append(f"<tr{kind}>{''.join(parts)}</tr>")
    label = html.escape(caption or "table")
    heading = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{label}">'
        f"<table>{heading}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def figure(picture: str, caption: str, *, words: str) -> str:
    """Render a chart with its caption.

    Args:
        picture: Markup, such as inline SVG.
        caption: Text below it.
        words: What it shows, for screen readers.
    """
    inner = picture.replace("<svg ", f'<svg role="img" aria-label="{html.escape(words)}" ', 1)
    return f"<figure>{inner}<figcaption>{html.escape(caption)}</figcaption></figure>"


def note(text: str) -> str:
    """Render a remark in small letters."""
    return f'<p class="note">{html.escape(text)}</p>'


def _kind(is_left: bool) -> str:
    return ' class="left"' if is_left else ""
