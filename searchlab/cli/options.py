"""What the commands share: the option that names the library, and the two streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

EXISTING_FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
data_option = click.option(
    "--data",
    type=FOLDER,
    default=Path("searchlab-data"),
    envvar="SEARCHLAB_DATA",
    show_default=True,
    help="Folder of the library.",
)


def stdout() -> Console:
    """Results go here."""
    from rich.console import Console

    return Console()


def stderr() -> Console:
    """Progress and remarks go here."""
    from rich.console import Console

    return Console(stderr=True)
