"""The commands on evaluation: evaluate, verify, datasets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from searchlab.cli.completion import (
    complete_datasets,
    complete_indexes,
    complete_metrics,
    complete_models,
)
from searchlab.cli.options import ANY_PATH, EXISTING_FILE, FOLDER, named_models, stderr, stdout
from searchlab.cli.running import runner_of, runner_options
from searchlab.errors import InputError, NotFoundError, SearchlabError, quote, shell_word

if TYPE_CHECKING:
    from searchlab.config import Config
    from searchlab.evaluation.datasets import Dataset
    from searchlab.evaluation.provenance.verify import Status
    from searchlab.evaluation.reports import Report
    from searchlab.library.library import Library

_PHOTOS = "A library of the photos, or a new folder to make one in; "


@click.command()
@click.option(
    "--dataset",
    "name",
    default="demo",
    show_default=True,
    help="A name, or a folder of your own.",
    shell_complete=complete_datasets,
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Model, such as mini; repeatable.",
    callback=named_models,
    shell_complete=complete_models,
)
@click.option(
    "--index",
    "indexes",
    multiple=True,
    default=("exact",),
    show_default=True,
    help="exact, clustered, hnsw or exact-on-device; repeatable, and combined with each model.",
    shell_complete=complete_indexes,
)
@click.option(
    "--config",
    "config_files",
    multiple=True,
    type=EXISTING_FILE,
    help="A configuration, or a result that holds one; repeatable.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="Metric, such as ndcg@10; repeatable. The first one ranks the configurations.",
    shell_complete=complete_metrics,
)
@click.option("--languages", help="Languages of the queries, such as en,de; all if not given.")
@click.option("--per-language", type=int, help="Most queries of each language.")
@click.option(
    "--out", type=FOLDER, default=Path("results"), show_default=True, help="Folder of results."
)
@click.option(
    "--data",
    type=FOLDER,
    help=f"{_PHOTOS}~/.cache/searchlab, or what SEARCHLAB_CACHE names, if not given.",
)
@click.option("--force", is_flag=True, help="Measure again what is recorded already.")
@runner_options(
    "Measure on Ray, a task for each language of a configuration: ray:local, or ray:ADDRESS of a "
    "cluster whose nodes mount --data and --out alike (extra `cluster`). Times are left out."
)
@click.option(
    "--allow-changes",
    is_flag=True,
    help="Record what changed code measures into its own checkout; the record is marked.",
)
def evaluate(
    name: str,
    out: Path,
    data: Path | None,
    force: bool,
    allow_changes: bool,
    **options: Any,
) -> None:
    """Measure configurations on a judged dataset.

    Prints the leaderboard. Without --model and --config, mini is measured. A model is measured as a
    new library has it: what is written about photos is read too, unless the dataset withholds it.
    Configurations that are recorded in --out are not measured again.

    A dataset of your own is a folder with photos.jsonl (a line for each photo: file, source,
    source_photo_id), queries.tsv (with a header: query_id, lang, text, photo_id, filter) and
    qrels.tsv (query_id, photo_id, relevance) or qrels.trec.
    """
    from searchlab.cli.console import ConsoleProgress
    from searchlab.evaluation.datasets.photo_cache import Cache
    from searchlab.evaluation.experiments import METRICS, Experiment
    from searchlab.evaluation.provenance.manifest import refuse_changes
    from searchlab.evaluation.reporting.named import remember_printed

    runner = runner_of(options)
    if not allow_changes:
        refuse_changes(out)
    configs = _configs(options["models"], options["indexes"], options["config_files"])
    dataset = _dataset(name, options["languages"], options["per_language"])
    library, cache = _library(data)
    experiment = Experiment(
        dataset,
        configs,
        options["metrics"] or METRICS,
        library=library,
        cache=cache or Cache.OF_THE_USER,
        out=out,
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"--out must be a folder that can be written, got {out}: {error.strerror}"
        raise InputError(msg) from error
    log = stderr()
    report = experiment.run(ConsoleProgress(log), force=force, runner=runner)
    stdout().print(report)
    remember_printed(report, out)
    folder = out / experiment.benchmark / dataset.name
    log.print(f"recorded in {folder}", markup=False, highlight=False, soft_wrap=True)
    hint = _next_steps(report, out)
    log.print(hint, markup=False, highlight=False, soft_wrap=True)


def _next_steps(report: Report, out: Path) -> str:
    """Name the commands that go on from a leaderboard, with systems as they take them."""
    results = "" if out == Path("results") else f" --results {shell_word(out)}"
    chosen = report.results.index(report.chosen) + 1
    serve = f"to serve the chosen one: searchlab promote {chosen}{results}"
    if len(report.results) == 1:
        return serve
    return f"query by query: searchlab diff 2 1{results}, by number or model; {serve}"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=ANY_PATH)
@click.option("--data", type=FOLDER, help=f"{_PHOTOS}a temporary one if not given.")
@click.option("--dataset", "name", help="Folder of your own dataset that was measured.")
@click.option("--quick", is_flag=True, help="Check seals and hashes only; compute nothing again.")
@click.option(
    "--renew",
    "is_to_renew",
    is_flag=True,
    help="Let verified results count as measured by the current code; each still says which code "
    "it was measured with.",
)
def verify(
    paths: tuple[Path, ...], data: Path | None, name: str | None, quick: bool, is_to_renew: bool
) -> None:
    """Check recorded results, and compute them again.

    PATHS are result files, or folders of them. Checks the seal and the environment of each result,
    and computes its figures again. Exits with 1 if a file was changed, or a figure comes out
    differently here. Results that cannot be computed again here are listed and counted. Times are
    never compared.
    """
    if quick and is_to_renew:
        msg = "--renew must compute figures again, got --quick as well; leave one of them out"
        raise InputError(msg)
    from searchlab.cli.console import ConsoleProgress
    from searchlab.evaluation.datasets import load_dataset
    from searchlab.evaluation.provenance.renew import renew
    from searchlab.evaluation.provenance.verify import verify as verify_all

    library, cache = _library(data)
    verifications = verify_all(
        paths,
        quick=quick,
        dataset=None if name is None else load_dataset(name),
        library=library,
        cache=cache,
        progress=ConsoleProgress(stderr()),
    )
    done = []
    for verification in verifications:
        click.echo(str(verification))
        done.append(verification)
    if is_to_renew:
        for path in renew(done):
            click.echo(f"renewed: {path}")
    counts = Counter(verification.status for verification in done)
    words: dict[Status, str] = {
        "verified": "verified",
        "sealed": "sealed but not computed again",
        "not here": "cannot be recomputed here",
        "differs": "not as recorded",
    }
    n_files = sum(counts.values())
    files = "1 file" if n_files == 1 else f"{n_files} files"
    listed = [f"{counts[status]} {meaning}" for status, meaning in words.items() if counts[status]]
    click.echo(f"{files}: {', '.join(listed)}")
    if counts["differs"]:
        msg = f"all must be as recorded, got {counts['differs']} of {files} that differ; see above"
        raise SearchlabError(msg)


@click.command()
def datasets() -> None:
    """List the judged datasets, and why any of them is missing."""
    from rich.table import Table
    from rich.text import Text

    from searchlab.evaluation.datasets import dataset_names, load_dataset

    table = Table(box=None)
    for column in ("dataset", "task"):
        table.add_column(column, no_wrap=True)
    for column in ("photos", "queries", "languages"):
        table.add_column(column, justify="right")
    table.add_column("revision", overflow="fold")
    absent: dict[str, list[str]] = {}
    for name in dataset_names():
        try:
            dataset = load_dataset(name)
        except SearchlabError as error:
            absent.setdefault(str(error), []).append(name)
            continue
        numbers = (len(dataset.photo_ids), len(dataset.queries), len(dataset.languages))
        cells = (name, dataset.task, *(f"{number:,}" for number in numbers), dataset.revision)
        table.add_row(*map(Text, cells))
    out = stdout()
    out.print(table)
    for reason, names in absent.items():
        line = f"Not here: {', '.join(names)}; {reason}"
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def _configs(models: tuple[str, ...], indexes: tuple[str, ...], files: Any) -> list[Config]:
    from searchlab.config import USUAL_CHOICES, Config
    from searchlab.evaluation.config_grids import grid

    configs = [Config.load(file) for file in files]
    if models or not files:
        # As new libraries have them, so that what is promoted goes on reading what is written.
        configs += grid(models or ("mini",), indexes, **USUAL_CHOICES)
    return list({config.config_id: config for config in configs}.values())


def _dataset(name: str, languages: str | None, per_language: int | None) -> Dataset:
    from searchlab.evaluation.datasets import load_dataset

    dataset = load_dataset(name)
    tags = dataset.languages
    if languages is not None:
        tags = tuple(tag.strip() for tag in languages.split(","))
        if unknown := set(tags) - set(dataset.languages):
            known = ", ".join(dataset.languages)
            listed = ", ".join(map(quote, sorted(unknown)))
            msg = f"--languages must be among {known}, got {listed}"
            raise InputError(msg)
    if per_language is not None:
        return dataset.sample(tags, per_language, seed=0)
    return dataset if languages is None else dataset.select(languages=tags)


def _library(data: Path | None) -> tuple[Library | None, Path | None]:
    """Return the library in a folder, or else the folder itself, as the cache for a new one."""
    from searchlab.library.library import open_library

    if data is None:
        return None, None
    try:
        return open_library(data), None
    except NotFoundError:
        return None, data
