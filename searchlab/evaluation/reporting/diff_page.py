"""Diff as a page: the verdict, counts, languages, and the queries that changed most."""

from __future__ import annotations

import html
from collections.abc import Sequence

from searchlab.evaluation.reporting.leaderboard import p_text
from searchlab.evaluation.reporting.markup import note, page, piece, table
from searchlab.evaluation.reporting.paired import Change, PairedResults, Tally
from searchlab.evaluation.reporting.pictures import Pictures

_REGRESSIONS = 8
_IMPROVEMENTS = 4
_SHOWN = 8  # results of a query


def diff_html(diff: PairedResults, *, regressions: int = _REGRESSIONS) -> str:
    """Render a diff for a notebook.

    Args:
        diff: The compared results.
        regressions: Most losses to show.
    """
    return piece(_body(diff, regressions, heading="h3"))


def diff_page(diff: PairedResults, *, regressions: int = 40) -> str:
    """Render a diff as a complete HTML file; see `diff_html`."""
    title = f"From {diff.names[0]} to {diff.names[1]}"
    return page(title, f"<h1>{html.escape(title)}</h1>{_body(diff, regressions, heading='h2')}")


def _body(diff: PairedResults, regressions: int, *, heading: str) -> str:
    lost, won = diff.regressions[:regressions], diff.improvements[:_IMPROVEMENTS]
    parts = [
        f'<div class="says"><b>{html.escape(diff.verdict)}</b>, p = {diff.whole.p_value:.4f}</div>',
        _bar(diff.whole),
        note(diff.setting),
    ]
    if diff.power is not None:
        lines = diff.power.explain(about="photos").splitlines()
        parts.append(note(". ".join(line[0].upper() + line[1:] for line in lines) + "."))
    parts.append(_languages(diff))
    if not (diff.pictures and diff.pictures.at_hand):
        parts.append(note("There are no pictures: name a library that holds these photos."))
    if not any(diff.runs):
        parts.append(note("There are no rankings: the file .run.gz beside a result is missing."))
    for title, changes, total in (
        ("Worst regressions first", lost, len(diff.regressions)),
        ("Greatest improvements", won, len(diff.improvements)),
    ):
        if changes:
            shown = f"{title}: {len(changes):,} of {total:,}"
            parts.append(f"<{heading}>{html.escape(shown)}</{heading}>")
            parts += [_case(diff, change) for change in changes]
    return "".join(parts)


def _bar(tally: Tally) -> str:
    cells = []
    for name, kind, count in (
        ("won", "won", tally.wins),
        ("tied", "tied", tally.ties),
        ("lost", "lost", tally.losses),
    ):
        share = 100 * count / tally.n_queries
        if count:
            words = f"{count:,} {name}"
            cells.append(
                f'<span class="{kind}" style="width:{share:.1f}%" title="{words}">{words}</span>'
            )
    counts = (
        f"Of {tally.n_queries:,} queries {tally.wins:,} won, {tally.ties:,} tied, "
        f"{tally.losses:,} lost."
    )
    return f'<div class="bar" aria-hidden="true">{"".join(cells)}</div>{note(counts)}'


def _languages(diff: PairedResults) -> str:
    if len(diff.languages) < 2:
        return ""
    order = sorted(diff.languages.items(), key=lambda item: item[1].difference.mean)
    rows = []
    for lang, tally in order:
        interval = tally.difference
        shown = f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
        counts = [f"{n:,}" for n in (tally.n_queries, tally.wins, tally.ties, tally.losses)]
        mark = "differs" if tally.p_value < 0.05 else ""
        rows.append([lang, shown, p_text(tally.p_value), mark, *counts])
    columns = [
        "language",
        f"{diff.metric} [95 %]",
        "p (Holm)",
        "",
        "queries",
        "won",
        "tied",
        "lost",
    ]
    body = table(columns, rows, caption="By language, most lost first", left=["language"])
    if len(rows) > 12:
        n_differing = sum(tally.p_value < 0.05 for tally in diff.languages.values())
        summary = f"{n_differing} of {len(rows)} languages differ"
        return f"<details><summary>{summary}</summary>{body}</details>"
    return body


def _case(diff: PairedResults, change: Change) -> str:
    words = html.escape(change.text or change.query_id)
    grades = dict(diff.qrels.get(change.query_id, {}))
    head = (
        f'<h4><span lang="{html.escape(change.lang)}">{words}</span> '
        f"<small>{html.escape(change.lang)}, {html.escape(diff.metric)} "
        f"{change.before:.3f} → {change.after:.3f}</small></h4>"
    )
    pictures = diff.pictures or Pictures()
    strips = []
    for name, run in zip(diff.names, diff.runs, strict=True):
        if run:
            ranked = list(run.get(change.query_id, ()))
            strips.append(_strip(name, ranked, grades, pictures))
    return (
        f'<div class="case">{head}{"".join(strips)}{_missed(diff, change, grades, pictures)}</div>'
    )


def _strip(name: str, ranked: Sequence[str], grades: dict[str, int], pictures: Pictures) -> str:
    return f"<small>{html.escape(name)}</small>{pictures.strip(list(ranked[:_SHOWN]), grades)}"


def _missed(diff: PairedResults, change: Change, grades: dict[str, int], pictures: Pictures) -> str:
    """Show the best judged photo, if neither system has it among its first results."""
    seen = {i for run in diff.runs for i in list(run.get(change.query_id, ()))[:_SHOWN]}
    return pictures.missed(change.cluster_id, seen, grades)
