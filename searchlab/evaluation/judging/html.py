"""A judging session and agreement as static HTML, for saved notebooks and the web."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence

from searchlab.evaluation.judging.coefficients import PairAgreement
from searchlab.evaluation.judging.journal import Item
from searchlab.evaluation.judging.session import JudgingSession, Picture
from searchlab.evaluation.significance import Interval
from searchlab.photos.cards import STYLE
from searchlab.photos.images.decode import as_rgb, thumbnail

_QUERIES = 4
_PHOTOS = 8
_SIDE = 96
_STYLE = f"""{STYLE}
.searchlab-sheet table{{border-collapse:collapse}}
.searchlab-sheet td,.searchlab-sheet th{{padding:4px 10px;text-align:left;
 border-bottom:1px solid #ddd;vertical-align:middle}}
.searchlab-sheet img{{max-height:64px;max-width:84px;display:block}}
.searchlab-sheet .strip{{display:flex;flex-wrap:wrap;gap:6px 10px;margin:4px 0 12px;
 align-items:end}}
.searchlab-sheet .two{{align-items:stretch}}
.searchlab-sheet .half{{flex:1;align-content:start;margin:0;padding:6px;background:#f3f3f3;
 border-radius:4px}}
.searchlab-sheet figure{{margin:0;width:84px;font-size:11px;color:#444}}
.searchlab-sheet .number{{text-align:right}}
"""


def session_html(session: JudgingSession) -> str:
    """Render the progress of a judge: a bar, and the first queries with photos and choices."""
    by_query: dict[str, list[Item]] = {}
    for item in session.items:
        by_query.setdefault(item[0], []).append(item)
    blocks = [_block(session, items) for items in list(by_query.values())[:_QUERIES]]
    share = 100 * session.n_done / max(1, len(session.items))
    rest = len(by_query) - len(blocks)
    more = f"<p>and {rest:,} more queries</p>" if rest > 0 else ""
    return _sheet(
        f"<b>{html.escape(str(session))}</b>"
        f'<div class="searchlab-track"><div style="width:{share:.1f}%"></div></div>'
        f"{''.join(blocks)}{more}"
    )


def _block(session: JudgingSession, items: list[Item]) -> str:
    """Render one query: its words, then one strip of photos, or two for a comparison."""
    scenes = [(item, session.scene(item)) for item in items[:_PHOTOS]]
    first = scenes[0][1]
    lang = html.escape(first["lang"])
    choice = _describe_choice(session, items[0]) if len(first["sides"]) == 2 else ""
    heading = (
        f'<div><b lang="{lang}" dir="auto">{html.escape(first["query"])}</b> '
        f'<span class="searchlab-small">{lang}</span> {html.escape(choice)}</div>'
    )
    if len(first["sides"]) == 2:
        strips = [f'<div class="strip half">{_pictures(side)}</div>' for side in first["sides"]]
        return f'{heading}<div class="strip two">{"".join(strips)}</div>'
    photos = "".join(
        f"<figure>{_pictures(scene['sides'][0])}"
        f"<figcaption>{html.escape(_describe_choice(session, item))}</figcaption></figure>"
        for item, scene in scenes
    )
    rest = f"<figure>and {len(items) - _PHOTOS} more</figure>" if len(items) > _PHOTOS else ""
    return f'{heading}<div class="strip">{photos}{rest}</div>'


def _describe_choice(session: JudgingSession, item: Item) -> str:
    entry = session.journal.latest.get(item)
    if entry is None:
        return "to judge"
    if entry.choice is None:
        return "skipped"
    name = session.choices.get(entry.choice, "")
    return f"{entry.choice} {name}" if isinstance(entry.choice, int) else name


def agreement_html(alpha: Interval, n_pairs: int, pairs: Sequence[PairAgreement]) -> str:
    """Render agreement: figures for each two judges, and tables of their grades.

    Args:
        alpha: Krippendorff's alpha over all judges.
        n_pairs: Number of pairs that at least two judges have graded.
        pairs: Agreement of each two judges.
    """
    rows = "".join(
        f"<tr><td>{html.escape(' and '.join(pair.judges))}</td>"
        f'<td class="number">{pair.n_pairs:,}</td><td>{pair.percent}</td><td>{pair.kappa}</td>'
        f"<td>{pair.kappa_quadratic}</td></tr>"
        for pair in pairs
    )
    heads = ("judges", "pairs", "equal", "kappa", "weighted kappa")
    head = "".join(f"<th>{name}</th>" for name in heads)
    tables = "".join(_confusion(pair) for pair in pairs)
    return _sheet(
        f"<p><b>Krippendorff's alpha {alpha}</b> over {n_pairs:,} pairs, ordered "
        "grades, 95 % intervals by bootstrap over queries</p>"
        f"<table><tr>{head}</tr>{rows}</table>{tables}"
    )


def _sheet(body: str) -> str:
    return f'<style>{_STYLE}</style><div class="searchlab-page searchlab-sheet">{body}</div>'


def _pictures(photos: list[Picture]) -> str:
    return "".join(
        f'<img src="{html.escape(_address(photo))}" alt="">' if photo else "no picture"
        for photo in photos
    )


def _address(photo: Picture) -> str:
    return photo if isinstance(photo, str) else f"data:image/webp;base64,{_small(photo)}"


def _small(photo: bytes) -> str:
    # Small, since a notebook stores its outputs, which would become many megabytes.
    return base64.b64encode(thumbnail(as_rgb(photo), _SIDE)).decode()


def _confusion(pair: PairAgreement) -> str:
    first, second = map(html.escape, pair.judges)
    head = "".join(f'<th class="number">{second}: {grade}</th>' for grade in pair.grades)
    rows = "".join(
        f"<tr><th>{first}: {grade}</th>"
        + "".join(f'<td class="number">{count:,}</td>' for count in counts)
        + "</tr>"
        for grade, counts in zip(pair.grades, pair.confusion.tolist(), strict=True)
    )
    return f"<p></p><table><tr><th></th>{head}</tr>{rows}</table>"
