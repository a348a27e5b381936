"""The tables of a comparison of foreign systems, for terminals and as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from searchlab.evaluation.outside.scored import ScoredSystems
from searchlab.evaluation.reporting.leaderboard import explain_power, p_text
from searchlab.evaluation.reporting.terminal import draw_table, print_plain_text

if TYPE_CHECKING:
    from rich.table import Table


def standings_table(comparison: ScoredSystems) -> Table:
    """Lay out the systems, best first, with the caption that says how to read them."""
    standings = comparison.standings
    has_gaps = any(comparison.unanswered.values())
    columns = ["rank", "system", *(f"{name} [95 %]" for name in comparison.metrics), "p"]
    rows = []
    for rank, group in enumerate(standings.groups, start=1):
        for name in group:
            each = comparison.intervals[name].values()
            cells = [f"{rank}{'=' if len(group) > 1 else ''}", name]
            cells += [*(str(one.macro) for one in each), p_text(standings.p_values.get(name))]
            rows.append([*cells, *([f"{comparison.unanswered[name]:,}"] if has_gaps else [])])
    n = len(comparison.query_ids)
    title = f"{len(rows)} systems on {n:,} {comparison.unit}"
    heads = [*columns, *(["unanswered"] if has_gaps else [])]
    table = draw_table(title, heads, rows, [""] * len(rows))
    table.caption = comparison_caption(comparison)
    return table


def language_table(comparison: ScoredSystems) -> Table:
    """Lay out the first metric for each language; `*` marks the best of a row."""
    metric, order = comparison.metrics[0], comparison.standings.order
    rows = []
    for lang in comparison.languages:
        each = [comparison.intervals[name][metric].groups[lang] for name in order]
        best = max(0.001, *(round(one.mean, 3) for one in each))
        marks = ["*" if round(one.mean, 3) == best else " " for one in each]
        cells = [f"{one.mean:.3f} ±{(one.high - one.low) / 2:.3f}" for one in each]
        rows.append(
            [
                lang,
                str(comparison.langs.count(lang)),
                *(cell + mark for cell, mark in zip(cells, marks, strict=True)),
            ]
        )
    title = f"{metric} by language; * is the best of a row"
    return draw_table(title, ["language", comparison.unit, *order], rows, [""] * len(rows))


def comparison_caption(comparison: ScoredSystems) -> str:
    """Say how to read the standings."""
    n_langs, n_clusters = len(comparison.languages), len(set(comparison.clusters))
    mean = "mean" if n_langs == 1 else f"mean over {n_langs} languages, each counting the same"
    together = (
        f", those about one of {n_clusters:,} {comparison.about} drawn together"
        if n_clusters < len(comparison.query_ids)
        else ""
    )
    left_out = (
        f" Left out, as not every system has them or nothing is relevant to them: "
        f"{comparison.left_out:,}."
        if comparison.left_out
        else ""
    )
    unanswered = (
        " A query that a system does not answer scores 0."
        if any(comparison.unanswered.values())
        else ""
    )
    detectable = explain_power(comparison.standings.detectable, unit=comparison.unit)
    return (
        f"Figures: {mean}; 95 % intervals by bootstrap{together}. Systems of one rank (=) cannot "
        f"be told apart from the first of them by {comparison.metrics[0]} (paired permutation "
        f"test with Holm's correction over all pairs, {100 * comparison.alpha:g} %); p is that "
        f"against the very first.{detectable}{unanswered}{left_out}"
    )


def comparison_text(comparison: ScoredSystems, *, languages: bool = False) -> str:
    """Return the tables without colour."""
    tables = [standings_table(comparison), *([language_table(comparison)] if languages else [])]
    return print_plain_text(tables)
