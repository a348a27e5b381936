"""The commands on judging tasks, whose pages a server shows: create, compare, list, export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.cli.completion import complete_datasets, complete_words
from searchlab.cli.options import (
    EXISTING_FILE,
    FOLDER,
    data_option,
    given_options,
    seed_option,
)
from searchlab.errors import InputError, NotFoundError, count, shell_word

if TYPE_CHECKING:
    from searchlab.evaluation.datasets.labelled import LabelledQuery
    from searchlab.evaluation.judging.pools import Pool
    from searchlab.evaluation.judging.sampling import JudgingPlan
    from searchlab.library.library import Library

_RULES = ("median", "majority", "strict")

_dataset_option = click.option(
    "--dataset",
    help="A dataset whose queries to judge; only its photos are searched.",
    shell_complete=complete_datasets,
)


@click.group()
def judge() -> None:
    """Have people judge which photos answer which queries.

    They do it at /judge of a running server.
    """


@judge.command("create")
@data_option
@click.argument("name")
@click.option("--title", default="", help="Title for people; NAME if not given.")
@click.option(
    "--queries",
    type=EXISTING_FILE,
    help="Queries, one a line, each after its language and a tab if you like; or a table with the "
    "header query_id, lang, text.",
)
@_dataset_option
@click.option(
    "--config",
    "config_files",
    multiple=True,
    type=EXISTING_FILE,
    help="A configuration whose first photos to pool; repeatable. The one in force if not given.",
)
@click.option("--depth", default=10, show_default=True, help="First photos of each configuration.")
@seed_option("the order")
@click.option(
    "--random-share",
    default=0.0,
    show_default=True,
    help="Photos drawn at random for each query, as a share of those pooled for it.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    help="Judge this many photos of all, drawn by how far the configurations disagree on them; "
    "`judge estimate` then says what follows, with intervals.",
)
@click.option(
    "--metric",
    help="With --most, what to estimate: precision@k, success@1 or dcg@k; precision@DEPTH if not "
    "given.",
)
@click.option(
    "--known",
    is_flag=True,
    help="With --most, count the judgments that the dataset has: what they miss is estimated.",
)
def create(
    data: Path,
    name: str,
    title: str,
    queries: Path | None,
    dataset: str | None,
    config_files: tuple[Path, ...],
    depth: int,
    seed: int,
    random_share: float,
    most: int | None,
    metric: str | None,
    known: bool,
) -> None:
    """Pool photos for queries, and let judges begin.

    The photos of a query are what the configurations found, in an order that does not show which
    one found a photo, or how high. With --most only those photos are judged that tell most.
    """
    from searchlab.evaluation.judging.tasks import COMMAND_LINE, create_task
    from searchlab.library.library import open_library

    if (most is None and (metric or known)) or (most is not None and random_share):
        msg = "--metric and --known go with --most, and --random-share without, got another mixture"
        raise InputError(msg)
    if metric and "depth" in given_options():
        msg = "--depth says how many photos count where --metric is not given, got both; keep one"
        raise InputError(msg)
    library = open_library(data)
    if most is not None:
        _create_planned(
            library,
            (data, name, title, most),
            (queries, dataset, config_files),
            metric or f"precision@{depth}",
            known=known,
            seed=seed,
        )
        return
    shape = {"depth": depth, "seed": seed, "random_share": random_share}
    pool = _pool(library, queries, dataset, config_files, shape)
    task = create_task(data, name, pool, title=title, made_by=COMMAND_LINE)
    click.echo(f"{task.name}: {pool}", err=True)
    click.echo(f"/judge/{task.name}")


def _create_planned(
    library: Library,
    task: tuple[Path, str, str, int],
    asked: tuple[Path | None, str | None, tuple[Path, ...]],
    metric: str,
    *,
    known: bool,
    seed: int,
) -> None:
    from searchlab.evaluation.datasets import load_dataset
    from searchlab.evaluation.judging.sampling import parse_cutoff, plan_judging

    queries, dataset, config_files = asked
    depth = parse_cutoff(metric).k
    listed, photo_ids, withheld = _queries(queries, dataset)
    if known and dataset is None:
        msg = "--known must come with a --dataset, whose judgments count, got none"
        raise InputError(msg)
    judged = load_dataset(dataset).qrels if known and dataset is not None else None
    runs = _rank(library, listed, photo_ids, withheld, config_files, depth)
    plan = plan_judging(listed, runs, metric=metric, judged=judged, seed=seed)
    _place(plan, *task)


def _place(plan: JudgingPlan, data: Path, name: str, title: str, most: int) -> None:
    from searchlab.evaluation.judging.planned_tasks import create_planned_task
    from searchlab.evaluation.judging.tasks import COMMAND_LINE

    click.echo(f"{plan}", err=True)
    n = min(most, len(plan))
    task = create_planned_task(data, name, plan, n, title=title, made_by=COMMAND_LINE)
    click.echo(
        f"{task.name}: {task.pool}; then: searchlab judge estimate {shell_word(task.name)}",
        err=True,
    )
    click.echo(f"/judge/{task.name}")


@judge.command("estimate")
@data_option
@click.argument("name")
def estimate(data: Path, name: str) -> None:
    """Say how good the configurations of a task are.

    It must be one that was created with --most; each figure comes with its 95 % interval. All of
    its photos must be graded: to stop where it pleases makes an estimate wrong.
    """
    from searchlab.evaluation.judging.planned_tasks import estimate_task

    found = estimate_task(data, name)
    click.echo(repr(found))
    if len(found.undecided) > 1:
        names = " and ".join(found.undecided)
        click.echo(
            f"not told apart yet: {names}; searchlab judge more {shell_word(name)} NEW", err=True
        )


@judge.command("more")
@data_option
@click.argument("name")
@click.argument("new")
@click.option("--title", default="", help="Title for people; NEW if not given.")
@click.option("--most", default=200, show_default=True, type=click.IntRange(min=1))
def more(data: Path, name: str, new: str, title: str, most: int) -> None:
    """Make a task NEW of what to judge after NAME.

    Its photos are those that tell apart the configurations which may be the best.
    """
    from searchlab.evaluation.judging.planned_tasks import go_on_with

    _place(go_on_with(data, name), data, new, title, most)


@judge.command("compare")
@data_option
@click.argument("name")
@click.option("--title", default="", help="Title for people; NAME if not given.")
@click.option("--queries", type=EXISTING_FILE, help="Queries, as for `judge create`.")
@_dataset_option
@click.option(
    "--config",
    "config_files",
    multiple=True,
    type=EXISTING_FILE,
    required=True,
    help="A configuration to compare; name two, or one against the one in force.",
)
@click.option("--depth", default=6, show_default=True, help="Photos on each side.")
@seed_option("order and sides")
def compare(
    data: Path,
    name: str,
    title: str,
    queries: Path | None,
    dataset: str | None,
    config_files: tuple[Path, ...],
    depth: int,
    seed: int,
) -> None:
    """Let judges compare two configurations blind, side by side.

    Which side is which is drawn for each query, and shown to a judge when all is judged.
    """
    from searchlab.config import Config
    from searchlab.evaluation.judging.comparisons import create_comparison
    from searchlab.library.library import open_library

    library = open_library(data)
    listed, photo_ids, withheld = _queries(queries, dataset)
    if len(config_files) == 1:
        in_force = library.engine.config
        runs = _rank(library, listed, photo_ids, withheld, (), depth)
        if Config.load(config_files[0]).config_id == in_force.config_id:
            msg = "--config must be another one than the one in force, got the same; name two"
            raise InputError(msg)
        (other,) = _rank(library, listed, photo_ids, withheld, config_files, depth).items()
        runs[other[0] if other[0] not in runs else f"{other[0]} (compared)"] = other[1]
    else:
        runs = _rank(library, listed, photo_ids, withheld, config_files, depth)
    task = create_comparison(data, name, listed, runs, title=title, depth=depth, seed=seed)
    click.echo(
        f"{task.name}: {' and '.join(runs)}, {count(len(listed), 'query', 'queries')}", err=True
    )
    click.echo(f"/judge/{task.name}/compare")


def _pool(
    library: Library,
    queries: Path | None,
    dataset_name: str | None,
    config_files: tuple[Path, ...],
    shape: dict[str, float],
) -> Pool:
    from searchlab.evaluation.judging.pools import pool_queries

    listed, photo_ids, withheld = _queries(queries, dataset_name)
    depth = int(shape["depth"])
    runs = _rank(library, listed, photo_ids, withheld, config_files, depth)
    everything = set(library.engine.table.texts("photo_id"))
    searched = everything if photo_ids is None else everything & photo_ids
    return pool_queries(
        listed,
        searched,
        runs,
        depth=depth,
        seed=int(shape["seed"]),
        random_share=shape["random_share"],
        table=library.engine.table,
    )


def _queries(
    queries: Path | None, dataset_name: str | None
) -> tuple[Sequence[LabelledQuery], frozenset[str] | None, frozenset[str]]:
    """Return the queries, the photos to search (None for all), and the withheld ones."""
    from searchlab.evaluation.datasets import load_dataset
    from searchlab.evaluation.judging.query_lists import parse_queries

    if (queries is None) == (dataset_name is None):
        came = "neither" if queries is None else "both"
        msg = f"a task must get queries from either --queries or --dataset, got {came}"
        raise InputError(msg)
    if dataset_name is not None:
        dataset = load_dataset(dataset_name)
        return dataset.queries, dataset.photo_ids, dataset.unread
    assert queries is not None
    return parse_queries(_text(queries)), None, frozenset()


def _rank(
    library: Library,
    listed: Sequence[LabelledQuery],
    photo_ids: frozenset[str] | None,
    withheld: frozenset[str],
    config_files: tuple[Path, ...],
    depth: int,
) -> dict[str, dict[str, list[str]]]:
    """Rank queries by each configuration; by the one in force if none is named."""
    from searchlab.cli.console import ConsoleProgress
    from searchlab.cli.options import stderr
    from searchlab.config import Config
    from searchlab.evaluation.judging.pools import rank_queries
    from searchlab.evaluation.results import system_name

    configs = [Config.load(file) for file in config_files] or [library.engine.config]
    runs: dict[str, dict[str, list[str]]] = {}
    for config in configs:
        engine = library.engine
        if config != engine.config or photo_ids is not None:
            engine = library.engine_for(
                config,
                withheld=withheld,
                photo_ids=photo_ids,
                progress=ConsoleProgress(stderr()),
            )
        name = system_name(config)
        name = f"{name} ({config.config_id[:6]})" if name in runs else name
        runs[name] = rank_queries(engine, listed, depth=depth)
    return runs


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        msg = f"--queries must be a file, got none at {path}"
        raise NotFoundError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path} must be text in UTF-8, got other bytes at {error.start}; save it as UTF-8"
        raise InputError(msg) from error


@judge.command("list")
@data_option
def list_all(data: Path) -> None:
    """List the judging tasks, and how far their judges are."""
    from searchlab.evaluation.judging.comparisons import list_comparisons, open_comparison
    from searchlab.evaluation.judging.tasks import list_tasks, open_task
    from searchlab.library.library import open_library

    open_library(data)
    for name in list_tasks(data):
        task = open_task(data, name)
        click.echo(f"{name}: {task.title}; {task.pool}")
        for journal in task.journals():
            click.echo(f"    {journal.judge}: {len(journal.latest)} of {len(task.pool)}")
    for name in list_comparisons(data):
        comparison = open_comparison(data, name)
        click.echo(f"{name}: {comparison.title}; {len(comparison.queries)} queries to compare")
        for journal in comparison.journals():
            click.echo(f"    {journal.judge}: {len(journal.latest)}")


@judge.command("export")
@data_option
@click.argument("name")
@click.argument("out", type=FOLDER)
@click.option(
    "--rule",
    default="median",
    show_default=True,
    help="How several grades become one: median, majority or strict.",
    shell_complete=complete_words(*_RULES),
)
@click.option("--force", is_flag=True, help="Replace a dataset that is there.")
def export(data: Path, name: str, out: Path, rule: str, force: bool) -> None:
    """Write the judgments of a task into the folder OUT.

    OUT is then a dataset of your own, which `searchlab evaluate` reads.
    """
    from searchlab.evaluation.judging.folders import write_judgments
    from searchlab.evaluation.judging.tasks import open_task
    from searchlab.library.library import open_library

    library = open_library(data)
    written = write_judgments(library, open_task(data, name), out, rule=rule, force=force)
    left_out = ""
    if written.n_dropped:
        left_out += f"; {written.n_dropped} without a relevant photo left out"
    if written.n_gone:
        left_out += f"; {count(written.n_gone, 'photo')} without a file here left out"
    if written.n_lost:
        lost = count(written.n_lost, "judgment")
        left_out += f"; {lost} of photos that are not in the library any more left out"
    judgments = count(written.n_judgments, "judgment")
    queries = count(written.n_queries, "query", "queries")
    click.echo(f"{judgments} of {queries}{left_out}", err=True)
    click.echo(str(out))
