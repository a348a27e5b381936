"""The commands on recorded results: report, diff, power, promote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.cli.options import EXISTING_FILE, FOLDER, stderr, write_text
from searchlab.errors import DataError, InputError, NotFoundError

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.evaluation.results import Result
    from searchlab.library.library import Library

_pictures_option = click.option(
    "--data",
    type=FOLDER,
    envvar="SEARCHLAB_DATA",
    help="Library whose thumbnails are shown, or the folder of `evaluate --data`.",
)

_own_option = click.option(
    "--dataset",
    "own",
    multiple=True,
    help="Folder of your own dataset, to show the words and pictures of its queries; repeatable.",
)


@click.command()
@click.argument("folder", type=FOLDER, default=Path("results"))
@click.option(
    "--out",
    type=EXISTING_FILE,
    default=Path("report.html"),
    show_default=True,
    help="HTML file to write.",
)
@_pictures_option
@_own_option
@click.option(
    "--samples",
    type=click.IntRange(0),
    default=6,
    show_default=True,
    help="Queries shown for each dataset.",
)
@click.option(
    "--write-tables",
    is_flag=True,
    help="Update the tables in the folder's README files instead of writing a report.",
)
@click.option(
    "--prose",
    multiple=True,
    type=EXISTING_FILE,
    help="With --write-tables: another Markdown file to update; repeatable.",
)
def report(
    folder: Path,
    out: Path,
    data: Path | None,
    own: tuple[str, ...],
    samples: int,
    write_tables: bool,
    prose: tuple[Path, ...],
) -> None:
    """Write an HTML report of a folder of results."""
    if not folder.is_dir():
        msg = f"{folder} must be a folder of results, got none; run `searchlab evaluate`"
        raise NotFoundError(msg)
    if prose and not write_tables:
        msg = "--prose goes with --write-tables, got it without; add --write-tables"
        raise InputError(msg)
    if write_tables:
        _write_tables(folder, prose)
        return
    if not out.parent.is_dir():
        msg = f"{out} must be a file in a folder that is there, got no {out.parent}"
        raise InputError(msg)
    from searchlab.evaluation.reporting.report_page import report_page

    page = report_page(folder, library=_pictured(data), n_samples=samples, own=_datasets(own))
    write_text(out, page)
    click.echo(f"{out}: {len(page) / 2**20:.1f} MiB, needs nothing else")


def _write_tables(folder: Path, prose: tuple[Path, ...]) -> None:
    from searchlab.evaluation.charts import save_chart
    from searchlab.evaluation.reporting.frontier import frontier_chart
    from searchlab.evaluation.reporting.lookup import Results
    from searchlab.evaluation.reporting.report_page import find
    from searchlab.evaluation.reporting.tables import write_tables

    for path in prose:
        if not path.is_file():
            msg = f"--prose must be a Markdown file, got no file {path}; check the path"
            raise NotFoundError(msg)
    results = Results(folder)
    for board, one in find(folder).reports.items():
        with frontier_chart(one) as figure:
            for path in save_chart(figure, board.with_name(f"{board.name}-frontier")):
                click.echo(f"written: {path}")
    problems = []
    for path in [*sorted(folder.rglob("README.md")), *prose]:
        problems += [f"{path}, {problem}" for problem in write_tables(path, results)]
        click.echo(f"tables of today: {path}")
    if problems:
        msg = f"every table must be made from files that are there, got {'; '.join(problems)}"
        raise DataError(msg)


_results_option = click.option(
    "--results",
    "results_folder",
    type=FOLDER,
    default=Path("results"),
    show_default=True,
    help="Folder of results, where names and places of the last leaderboard are looked up.",
)


@click.command()
@click.argument("before", type=EXISTING_FILE)
@click.argument("after", type=EXISTING_FILE)
@_results_option
@click.option("--metric", help="Metric to compare; the first recorded one if not given.")
@click.option("--html", type=EXISTING_FILE, help="Also write this page with pictures.")
@click.option(
    "--most", type=click.IntRange(0), default=8, show_default=True, help="Most losses to list."
)
@_pictures_option
@_own_option
def diff(
    before: Path,
    after: Path,
    results_folder: Path,
    metric: str | None,
    html: Path | None,
    most: int,
    data: Path | None,
    own: tuple[str, ...],
) -> None:
    """Compare two results query by query.

    Lists wins, ties and losses, the worst regressions first. BEFORE and AFTER are systems of the
    last leaderboard, by name, model or place, such as `diff mini palette`; or the JSON files that
    `searchlab evaluate` wrote.
    """
    if html is not None and not html.parent.is_dir():
        msg = f"--html must be a file in a folder that is there, got no {html.parent}; make it"
        raise InputError(msg)
    from searchlab.evaluation.reporting.diff import compare
    from searchlab.evaluation.reporting.diff_page import diff_page
    from searchlab.evaluation.reporting.pictures import find_pictures
    from searchlab.evaluation.results import read_run_beside

    before, after = _found(before, results_folder), _found(after, results_folder)
    a, b = _results(before, after)
    pictures, dataset = find_pictures(_pictured(data), a.dataset, _datasets(own))
    diff_result = compare(
        a,
        b,
        read_run_beside(before),
        read_run_beside(after),
        metric=metric,
        dataset=dataset,
        pictures=pictures,
    )
    click.echo(diff_result.text(most=most))
    if html is not None:
        write_text(html, diff_page(diff_result))
        click.echo(f"written: {html}")


@click.command()
@click.argument("before", type=EXISTING_FILE)
@click.argument("after", type=EXISTING_FILE)
@_results_option
@click.option("--metric", help="Metric to compare; the first recorded one if not given.")
@click.option("--difference", type=float, help="Difference to show; the observed one if not given.")
def power(
    before: Path,
    after: Path,
    results_folder: Path,
    metric: str | None,
    difference: float | None,
) -> None:
    """Say how small a difference the queries can show.

    Also says how many queries are needed to show a given difference. BEFORE and AFTER are systems
    of the last leaderboard, by name, model or place, or the JSON files of results.
    """
    if difference == 0:
        msg = "--difference must be a number other than 0, got 0; leave it out for the observed one"
        raise InputError(msg)
    from searchlab.evaluation.reporting.diff import common_metric
    from searchlab.evaluation.significance.power import power_of

    a, b = _results(_found(before, results_folder), _found(after, results_folder))
    metric = common_metric(a, b, metric)
    if (a.scores.values[metric] == b.scores.values[metric]).all():
        msg = (
            f"two results must differ on some query, got {a.name} and {b.name} with the same "
            f"{metric} on all {a.n_queries:,}; their spread is needed, so name two that differ"
        )
        raise InputError(msg)
    power_result = power_of(
        b.scores.values[metric],
        a.scores.values[metric],
        groups=a.scores.langs,
        clusters=a.scores.cluster_ids,
    )
    click.echo(f"{metric}, from {a.name} to {b.name}")
    click.echo(power_result.explain(difference, about="photos"))


@click.command()
@click.argument("file", metavar="RESULT_OR_CHOSEN", type=EXISTING_FILE)
@_results_option
@click.option(
    "--data",
    type=FOLDER,
    envvar="SEARCHLAB_DATA",
    help="Library to switch to the configuration; for a chosen.json, searchlab-data if not given.",
)
@click.option(
    "--out",
    type=EXISTING_FILE,
    help="File to write; chosen.json in the folder of results if not given.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Accept a result that is worse than the current choice, or cannot be compared with it.",
)
def promote(
    file: Path, results_folder: Path, data: Path | None, out: Path | None, force: bool
) -> None:
    """Make a measured configuration the one that a library uses.

    RESULT_OR_CHOSEN is a system of the last leaderboard, by name, model or place; or a file.
    Writes chosen.json, and switches the library to it. A result is compared with the one in
    chosen.json, and refused if it is shown to be worse. Neither file may have been edited since it
    was written.
    """
    from searchlab.config import Config
    from searchlab.evaluation.provenance.measurement import read_measurement

    file = _found(file, results_folder)
    is_result = _is_result(file)
    if out is not None and not is_result:
        msg = f"--out goes with a result, got {file}; name the result that it was chosen from"
        raise InputError(msg)
    library = _library(data if is_result else data or Path("searchlab-data"))
    if is_result:
        from searchlab.evaluation.reporting.reading import promotion

        file = _promote_result(file, out, force=force)
        click.echo("\n".join(promotion(read_measurement(file))))
        click.echo(f"written: {file}")
    if library is None:
        return
    from searchlab.cli.console import ConsoleProgress

    config = Config.load(file)
    snapshot_id = library.publish(config, progress=ConsoleProgress(stderr()))
    click.echo(f"{config.model} × {config.index} is in force: snapshot {snapshot_id}")


def _promote_result(file: Path, out: Path | None, *, force: bool) -> Path:
    from searchlab.evaluation.promotion import promote as write
    from searchlab.evaluation.reports import load_report
    from searchlab.evaluation.results import load_result

    result = load_result(file)
    board = load_report(file.parent)
    beside = [one for one in board.results if one.setting == result.setting]
    (group,) = [g for g in board.groups if result.config_id in {r.config_id for r in g}] or [[]]
    folder = file.resolve().parents[2]
    return write(
        result,
        out or folder / "chosen.json",
        measured=beside,
        tied_with=[one for one in group if one.config_id != result.config_id],
        out=folder,
        force=force,
    )


def _is_result(file: Path) -> bool:
    """Tell whether a file is a result, and not a chosen configuration; neither may be edited.

    A configuration that was written by hand is accepted as chosen: it has no evidence and no seal.

    Raises:
        NotFoundError: There is no such file.
        DataError: It is neither, was changed, or a file that belongs to it is missing.
    """
    from searchlab.config import Config
    from searchlab.evaluation.promotion import BENCHMARK
    from searchlab.evaluation.provenance.measurement import read_measurement

    if not file.is_file():
        msg = (
            f"{file} must be a result of `searchlab evaluate`, or a chosen.json, got no file; "
            "check the path"
        )
        raise NotFoundError(msg)
    Config.load(file)
    if "config" not in json.loads(file.read_text(encoding="utf-8")):
        return False
    values = read_measurement(file)
    if values["benchmark"] == BENCHMARK:
        return False
    if "intervals" in values and file.with_suffix(".scores.tsv").exists():
        return True
    msg = (
        f"{file} must be a result of `searchlab evaluate`, or a chosen.json, got one of "
        f"{values['benchmark']}; evaluate its configuration first"
    )
    raise DataError(msg)


def _found(named: Path, folder: Path) -> Path:
    from searchlab.evaluation.reporting.named import find_result

    return find_result(named, folder)


def _results(before: Path, after: Path) -> tuple[Result, Result]:
    from searchlab.evaluation.results import load_result

    for file in (before, after):
        if not file.is_file():
            msg = f"{file} must be a result of `searchlab evaluate`, got no file; check the path"
            raise NotFoundError(msg)
    return load_result(before), load_result(after)


def _datasets(names: tuple[str, ...]) -> list[Dataset]:
    from searchlab.evaluation.datasets import load_dataset

    return [load_dataset(name) for name in names]


def _pictured(data: Path | None) -> Library | None:
    """Open a library to show pictures from: also the newest that `evaluate --data` made."""
    from searchlab.evaluation.datasets.dataset_library import newest_library_in
    from searchlab.library.library import open_library

    if data is None:
        return None
    try:
        return open_library(data)
    except NotFoundError:
        made = newest_library_in(data)
        if made is None:
            raise
        return open_library(made)


def _library(data: Path | None) -> Library | None:
    from searchlab.library.library import open_library

    return None if data is None else open_library(data)
