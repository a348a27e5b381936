"""The report: everything in a folder of results as one HTML file that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.errors import DataError, NotFoundError
from searchlab.evaluation.charts import svg_of
from searchlab.evaluation.file_names import find_result_file
from searchlab.evaluation.promotion import BENCHMARK as PROMOTION
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.reporting.frontier import (
    FRONTIER_COLUMNS,
    frontier_caption,
    frontier_chart,
    frontier_rows,
)
from searchlab.evaluation.reporting.leaderboard import language_columns, language_rows
from searchlab.evaluation.reporting.leaderboard_html import leaderboard_section
from searchlab.evaluation.reporting.markup import figure, note, page, table
from searchlab.evaluation.reporting.measured import manifest_html, measurement_html
from searchlab.evaluation.reporting.pictures import find_pictures
from searchlab.evaluation.reporting.reading import promotion, reading, shown_systems
from searchlab.evaluation.reporting.samples import samples_html
from searchlab.evaluation.reports import Report, load_report
from searchlab.evaluation.results import read_run_beside

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.evaluation.results import Result
    from searchlab.library.library import Library

_MANY_LANGUAGES = 12


@dataclass
class FolderContents:
    """The measurements in a folder of results.

    Attributes:
        reports: Folder of a benchmark and dataset -> report on its configurations.
        chosen: File -> chosen configuration.
        others: File -> any other measurement.
        unread: File -> why it cannot be read.
    """

    reports: dict[Path, Report] = field(default_factory=dict)
    chosen: dict[Path, dict[str, Any]] = field(default_factory=dict)
    others: dict[Path, dict[str, Any]] = field(default_factory=dict)
    unread: dict[Path, str] = field(default_factory=dict)


def find(folder: Path) -> FolderContents:
    """Read every measurement in a folder and its subfolders.

    Raises:
        NotFoundError: No measurement can be read.
    """
    contents = FolderContents()
    boards = set()
    for path in sorted(folder.rglob("*.json")):
        try:
            values = read_measurement(path)
        except DataError as error:
            contents.unread[path] = str(error)
            continue
        if values["benchmark"] == PROMOTION:
            contents.chosen[path] = values
        elif "intervals" in values and path.with_suffix(".scores.tsv").exists():
            boards.add(path.parent)
        else:
            contents.others[path] = values
    for board in sorted(boards):
        try:
            contents.reports[board] = load_report(board)
        except DataError as error:
            contents.unread[board] = str(error)
    if not (contents.reports or contents.others):
        why = next(iter(contents.unread.values()), "no file")
        msg = f"{folder} must hold measurements, got none that can be read ({why}); evaluate first"
        raise NotFoundError(msg)
    return contents


def report_page(
    folder: Path,
    *,
    library: Library | None = None,
    n_samples: int = 6,
    own: Sequence[Dataset] = (),
) -> str:
    """Render all measurements in a folder as one HTML file.

    Args:
        folder: Folder of results, or of one benchmark and dataset in it.
        library: Library to take pictures of photos from, before the files of the datasets.
        n_samples: Number of queries to show for each dataset.
        own: Datasets of your own, for the words and pictures of their queries.

    Raises:
        NotFoundError: Nothing in the folder can be read.
    """
    contents = find(folder)
    parts = [
        f"<h1>What was measured in {html.escape(folder.resolve().name)}</h1>",
        _describe_scope(contents),
    ]
    links = [
        f"<li><a href='#{_anchor(p)}'>{html.escape(r.title)}</a></li>"
        for p, r in contents.reports.items()
    ]
    if contents.others:
        links.append("<li><a href='#others'>Other measurements</a></li>")
    parts.append(f"<nav aria-label='Contents'><ul>{''.join(links)}</ul></nav>")
    parts += [_describe_promotion(path, values) for path, values in contents.chosen.items()]
    parts += [
        _section(path, report, library=library, n_samples=n_samples, own=own)
        for path, report in contents.reports.items()
    ]
    parts.append(_others(contents.others))
    if contents.unread:
        rows = [[path.name, reason] for path, reason in contents.unread.items()]
        parts.append("<h2>Left out</h2>")
        parts.append(table(["file", "reason"], rows, left=["file", "reason"]))
    return page(
        f"searchlab report: {folder.resolve().name}", "\n".join(part for part in parts if part)
    )


def _describe_scope(contents: FolderContents) -> str:
    manifests = [r.manifest for report in contents.reports.values() for r in report.results]
    manifests += [values["manifest"] for values in contents.others.values()]
    dates = sorted(str(manifest["date"])[:10] for manifest in manifests)
    machines = sorted({str(manifest["machine"]) for manifest in manifests})
    codes = sorted({str(manifest["code"]) for manifest in manifests})
    scopes = [
        f"{report.results[0].n_queries:,} queries in {len(report.results[0].languages)} languages "
        f"of {report.results[0].dataset}, asked of {len(report.results)} systems"
        for report in contents.reports.values()
    ]
    if contents.others:
        scopes.append(f"{len(contents.others)} other measurements")
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    return f"<p>Asked: {html.escape('; '.join(scopes))}.</p>" + note(
        f"Measured {when} by {', '.join(codes)} on {'; '.join(machines)}."
    )


def _describe_promotion(path: Path, values: Mapping[str, Any]) -> str:
    text = f"In force ({path.name}): {' '.join(promotion(values))}"
    return f"<div class='says'>{html.escape(text)}</div>{manifest_html(values)}"


def _section(
    path: Path,
    report: Report,
    *,
    library: Library | None,
    n_samples: int,
    own: Sequence[Dataset],
) -> str:
    says = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in reading(report))
    pictures, dataset = find_pictures(library, report.results[0].dataset, own)
    systems = [
        (result, read_run_beside(find_result_file(path, result.config)))
        for result in shown_systems(report)
    ]
    return "\n".join(
        [
            f'<h2 id="{_anchor(path)}">{html.escape(report.title)}</h2>',
            f'<div class="says"><ul>{says}</ul></div>',
            "<h3>Leaderboard</h3>",
            leaderboard_section(report),
            "<h3>Quality, latency, memory, languages</h3>",
            _frontier(report),
            "<h3>By language</h3>",
            _languages(report),
            "<h3>Queries drawn by chance</h3>",
            note("Drawn by the hash of their ids, not picked. A framed photo with ✓ is relevant."),
            samples_html(
                systems, report.names, dataset=dataset, pictures=pictures, n_queries=n_samples
            ),
            "<h3>Manifests</h3>",
            *(_manifest(path, report, result) for result in report.results),
        ]
    )


def _frontier(report: Report) -> str:
    rows = table(FRONTIER_COLUMNS, frontier_rows(report), left=["system"])
    if not report.results[0].is_timed:
        return note("No chart over time: it ran on machines that others used too.") + rows
    try:
        with frontier_chart(report) as drawing:
            svg = svg_of(drawing)
    except ImportError:
        return note("Charts need matplotlib: pip install 'searchlab[notebooks]'.") + rows
    words = (
        "Quality against latency and memory, and over languages; the table below has the values."
    )
    return figure(svg, frontier_caption(report), words=words) + rows


def _languages(report: Report) -> str:
    rows = language_rows(report)
    caption = f"{report.results[0].headline}, ± half the 95 % interval; * is the best of a row"
    body = table(language_columns(report), rows, caption=caption, left=["language"])
    if len(rows) > _MANY_LANGUAGES:
        return f"<details><summary>{len(rows)} languages</summary>{body}</details>"
    return body


def _manifest(path: Path, report: Report, result: Result) -> str:
    values = read_measurement(find_result_file(path, result.config))
    title = f"{report.names[result.config_id]}, {result.config_id}"
    return manifest_html(values, title=title)


def _others(others: Mapping[Path, Mapping[str, Any]]) -> str:
    if not others:
        return ""
    parts = ['<h2 id="others">Other measurements</h2>']
    title = ""
    for path, values in others.items():
        here = f"{values['benchmark']} on {values['dataset']}"
        if here != title:
            parts.append(f"<h2>{html.escape(here)}</h2>")
        title = here
        parts.append(measurement_html(path, values))
    return "\n".join(parts)


def _anchor(path: Path) -> str:
    return html.escape(f"{path.parent.name}-{path.name}".replace(" ", "-"), quote=True)
