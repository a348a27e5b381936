"""The commands on models: list, export."""

from __future__ import annotations

from pathlib import Path

import click

from searchlab.cli.options import FOLDER


@click.group()
def models() -> None:
    """Embedding models."""


@models.command("list")
def list_models() -> None:
    """List the kinds of models and how to name them."""
    import inspect

    from searchlab import models as package

    click.echo(inspect.getdoc(package))


@models.command("export")
@click.argument("spec")
@click.argument("folder", type=FOLDER)
@click.option("--int8/--no-int8", default=True, show_default=True)
def export_model(spec: str, folder: Path, int8: bool) -> None:
    """Export an open_clip model to ONNX, fp32 and int8, and measure the agreement."""
    from searchlab.models.export import export_onnx

    click.echo(str(export_onnx(spec, folder, int8=int8)))
