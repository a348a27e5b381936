"""Shared by the commands: common options, the consoles, and small helpers for output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.errors import InputError

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


def count(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count(1, "photo"), count(2_000, "photo")
    ('1 photo', '2,000 photos')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def stdout() -> Console:
    """Make the console for results."""
    from rich.console import Console

    return Console()


def stderr() -> Console:
    """Make the console for progress and remarks."""
    from rich.console import Console

    return Console(stderr=True)


def write_text(path: Path, text: str) -> None:
    """Write a file that the user named.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"{path} must be a file that can be written, got: {error.strerror}"
        raise InputError(msg) from error
