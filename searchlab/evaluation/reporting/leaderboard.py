"""The leaderboard as plain text: headings, cells and the caption that says how to read them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.metrics import metric_kind, parse_metric
from searchlab.evaluation.results import Result
from searchlab.evaluation.significance.power import POWER

_CHOSEN = "*"
_NOT_TIMED = (
    " It ran on machines that others used too, so no time is shown, and all systems count as fast."
)


def leaderboard_columns(comparison: Comparison) -> list[str]:
    """Return the headings of the leaderboard."""
    metrics = [f"{name} [95 %]" for name in comparison.results[0].intervals]
    costs = ["p50 ms", "p95 ms", "text ms", "build s", "MiB"]
    return ["rank", "system", *metrics, "p", "langs", *costs]


def leaderboard_rows(comparison: Comparison) -> list[list[str]]:
    """Return the cells of the leaderboard, best first; see `leaderboard_columns`."""
    rows = []
    for rank, group in enumerate(comparison.groups, start=1):
        for result in group:
            mark = f"{_CHOSEN} " if result is comparison.chosen else ""
            tie = "=" if len(group) > 1 else ""
            figures = result.metrics
            rows.append(
                [
                    f"{mark}{rank}{tie}",
                    comparison.names[result.config_id],
                    *(str(intervals.macro) for intervals in result.intervals.values()),
                    p_text(comparison.p_values.get(result.config_id)),
                    str(len(result.languages)),
                    *_times(result),
                    f"{figures['size_mib']:.1f}",
                ]
            )
    return rows


def _times(result: Result) -> list[str]:
    if not result.is_timed:
        return ["–"] * 4
    figures = result.metrics
    return [
        f"{figures['p50_ms']:.2f}",
        f"{figures['p95_ms']:.2f}",
        f"{figures['text_ms']:.1f}",
        f"{figures['build_s']:.1f}",
    ]


def leaderboard_caption(comparison: Comparison, columns: Collection[str]) -> str:
    """Say how to read a leaderboard.

    Args:
        comparison: The compared results.
        columns: Headings that are shown; others are not explained.
    """
    first = comparison.results[0]
    n_clusters, n_langs = len(set(first.scores.cluster_ids)), len(first.languages)
    queries = "1 query" if first.n_queries == 1 else f"{first.n_queries:,} queries"
    mean = "mean" if n_langs == 1 else f"mean over {n_langs} languages, each counting the same"
    left_out = (
        f" Results on file that are of other data, code or machines: {comparison.n_left_out}, left "
        "out."
        if comparison.n_left_out
        else ""
    )
    return (
        f"{queries} about {n_clusters:,} of {first.photos['n_photos']:,} photos"
        f"{_judgments(first.judged_by)}. Quality: {mean}; "
        f"95 % intervals by bootstrap, queries about one photo drawn together{_gain(comparison)}."
        f"{_explain_ranks(comparison, columns)}{_unused(comparison)} ms: to rank one query on one "
        f"thread, and to embed its text. {'build s, ' if 'build s' in columns else ''}"
        "MiB: of the index alone."
        f"{'' if first.is_timed else _NOT_TIMED}{left_out}"
    )


def _judgments(judged_by: Mapping[str, int]) -> str:
    """Say where the judgments come from, as far as that was recorded."""
    counts = sorted(judged_by.items(), key=lambda origin: -origin[1])
    listed = ", ".join(f"{count:,} by {origin}" for origin, count in counts)
    return f"; relevant photos judged {listed}" if listed else ""


def _unused(comparison: Comparison) -> str:
    """Name the systems whose index was never searched, so that its cost alone was measured."""
    unused = [comparison.names[one.config_id] for one in comparison.results if one.index_unused]
    if not unused:
        return ""
    return (
        f" To score all of so few photos costs least, so the index of {', '.join(unused)} answered "
        "none of these queries: for more photos, judge it by its recall."
    )


def _gain(comparison: Comparison) -> str:
    """Say how grades are weighed, for the metrics that weigh them."""
    names = dict.fromkeys(parse_metric(name).name for name in comparison.results[0].intervals)
    kinds = ((name, metric_kind(name)) for name in names)
    return "".join(f"; {kind.gain} in {name}" for name, kind in kinds if kind and kind.gain)


def _explain_ranks(comparison: Comparison, columns: Collection[str]) -> str:
    if len(comparison.results) == 1:
        return ""
    p_value = "; p is that against the very first" if "p" in columns else ""
    return (
        " Systems of one rank (=) cannot be told apart from the first of them (paired "
        f"permutation test with Holm's correction over all pairs, {100 * comparison.alpha:g} %)"
        f"{p_value}.{explain_power(comparison.detectable)} {_CHOSEN} is the one to serve: the "
        "smallest of the fast ones in the first rank."
    )


def explain_power(detectable: tuple[float, float] | None, *, unit: str = "queries") -> str:
    """Say which differences from the first are often missed.

    Args:
        detectable: The least and the greatest such difference; None if it is not known.
        unit: What is averaged, in the plural.
    """
    if detectable is None:
        return ""
    if math.isinf(detectable[1]):
        return f" These {unit} are too few to show a difference of any size."
    sizes = " to ".join(dict.fromkeys(f"{size:.3f}" for size in detectable))
    return (
        f" Differences from the first below {sizes}{', by system,' if 'to' in sizes else ''} "
        f"are often missed with these {unit} (power {100 * POWER:g} %)."
    )


def language_columns(comparison: Comparison) -> list[str]:
    """Return the headings of the table by language."""
    systems = (comparison.names[result.config_id] for result in comparison.results)
    return ["language", "queries", *systems]


def language_rows(comparison: Comparison) -> list[list[str]]:
    """Return the cells by language: mean, and half the width of its 95 % interval."""
    first = comparison.results[0]
    rows = []
    for lang in first.languages:
        intervals = [result.intervals[first.headline].groups[lang] for result in comparison.results]
        best = max(0.001, *(round(interval.mean, 3) for interval in intervals))
        cells = [
            f"{interval.mean:.3f} ±{(interval.high - interval.low) / 2:.3f}"
            + (_CHOSEN if round(interval.mean, 3) == best else " ")
            for interval in intervals
        ]
        rows.append([lang, str(first.scores.langs.count(lang)), *cells])
    return rows


def leaderboard_markdown(comparison: Comparison) -> str:
    """Return the leaderboard as a Markdown table with its title and caption."""
    columns = leaderboard_columns(comparison)
    sides = [":---" if name == "system" else "---:" for name in columns]
    table = "".join(
        _markdown_row(cells) for cells in (columns, sides, *leaderboard_rows(comparison))
    )
    caption = leaderboard_caption(comparison, columns)
    text = f"{table}\n{caption}\n".replace(_CHOSEN, f"\\{_CHOSEN}")
    return f"**{comparison.title}**\n\n{text}"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.strip() for cell in cells)} |\n"


def p_text(p_value: float | None) -> str:
    """Format a p-value, or a dash if there is none."""
    if p_value is None:
        return "-"
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"
