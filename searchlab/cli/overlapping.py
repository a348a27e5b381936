"""The command that looks for photos of one dataset in another, or in a training list."""

from __future__ import annotations

from pathlib import Path

import click

from searchlab.cli.completion import complete_datasets, complete_models
from searchlab.cli.options import named_models, stderr
from searchlab.errors import count

_SHOWN = 20


@click.command()
@click.argument("dataset", shell_complete=complete_datasets)
@click.argument("other", metavar="DATASET_OR_LIST", shell_complete=complete_datasets)
@click.option(
    "--model",
    help="Also compare how photos look to this model, such as mini.",
    callback=named_models,
    shell_complete=complete_models,
)
@click.option(
    "--at-least",
    type=float,
    default=0.97,
    show_default=True,
    help="With --model: least cosine that counts as the same picture.",
)
@click.option(
    "--most", type=click.IntRange(0), default=_SHOWN, show_default=True, help="Most to list."
)
def overlap(dataset: str, other: str, model: str | None, at_least: float, most: int) -> None:
    """List photos of a dataset that were seen elsewhere.

    Figures are too good where a model was trained on the photos that it is measured on. The other
    side is a dataset, by name or folder, or a text file that lists a model's training photos: a
    SHA-256, a file name or an id in each line. The same bytes are found; with --model also the same
    picture at another size. What looks alike is for you to look at.
    """
    from searchlab.cli.console import ConsoleProgress
    from searchlab.evaluation.datasets import load_dataset
    from searchlab.evaluation.datasets.overlap import find_overlap
    from searchlab.models import load_model

    measured = load_dataset(dataset)
    found = find_overlap(
        measured,
        Path(other) if Path(other).is_file() else load_dataset(other),
        model=None if model is None else load_model(model),
        at_least=at_least,
        progress=ConsoleProgress(stderr()),
    )
    for one in found[:most]:
        click.echo(f"{one.by:8} {one.cosine:.3f}  {one.name}  {one.other}")
    if len(found) > most:
        click.echo(f"and {len(found) - most:,} more")
    total = len(measured.records)
    share = 100 * len(found) / total
    click.echo(f"{len(found):,} of {count(total, 'photo')} of {measured.name} ({share:.1f} %)")
