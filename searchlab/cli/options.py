"""Shared by the commands: common options, the consoles, and small helpers for output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from searchlab.cli.completion import complete_fields
from searchlab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


class _Path(click.Path):
    """A path that is not empty, as one is of a variable that is not set: `.` is the folder here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("a path must not be empty; of the folder here it is .", param, ctx)
        return super().convert(value, param, ctx)


ANY_PATH = _Path(path_type=Path)
EXISTING_FILE = _Path(path_type=Path, dir_okay=False)
FOLDER = _Path(path_type=Path, file_okay=False)


def seed_option(of: str) -> Callable[[Any], Any]:
    """Return the option --seed, of whatever is drawn by lot."""
    number = click.IntRange(min=0)
    return click.option("--seed", type=number, default=0, show_default=True, help=f"Seed of {of}.")


def check_written(data: Path, out: Path | None, name: str) -> Path:
    """Return the file that a command writes its configuration to: `name` in `data` unless given.

    Raises:
        InputError: It is no .json file, or its folder is not there or is a backup.
    """
    from searchlab.library.roots import refuse_backup

    path = data / name if out is None else out
    if path.suffix != ".json" or not path.parent.is_dir():
        msg = f"--out must name a .json file in a folder that is there, got {path}"
        raise InputError(msg)
    refuse_backup(path.parent)
    return path


data_option = click.option(
    "--data",
    type=FOLDER,
    default=Path("searchlab-data"),
    envvar="SEARCHLAB_DATA",
    show_default=True,
    help="Folder of the library.",
)

_OUTPUT = (
    click.option(
        "-v", "--verbose", is_flag=True, help="Show credit, colour, thumbnail and id of each."
    ),
    click.option("--paths", is_flag=True, help="Print only the paths of the files, one a line."),
    click.option(
        "-0", "null", is_flag=True, help="Print the paths with a NUL after each, for `xargs -0`."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON for machines."),
    click.option(
        "--fields",
        help="Fields that --json prints, separated by commas; file, title, tags, place, latitude, "
        "longitude, rating and folder can be among them.",
        shell_complete=complete_fields,
    ),
    click.option(
        "--html",
        type=EXISTING_FILE,
        help="Also write the results as a page of pictures, linked to their files.",
    ),
    click.option(
        "--open",
        "opened",
        is_flag=True,
        help="Open the results in the browser, as a page of pictures linked to their files (the "
        "file of --html if that is given).",
    ),
    click.option(
        "--share",
        is_flag=True,
        help="Leave out files, places and keywords everywhere, to pass the results on.",
    ),
    click.option(
        "--thumbnails",
        type=click.Choice(["auto", "kitty", "iterm2", "sixel", "never"]),
        default="auto",
        show_default=True,
        envvar="SEARCHLAB_THUMBNAILS",
        show_envvar=True,
        help="Show pictures in the terminal: auto if it says that it can, or by this protocol; "
        "never in a pipe.",
    ),
    click.option("--plan", is_flag=True, help="Explain how the query is answered."),
)


def named_models(_: click.Context, __: click.Parameter, value: Any) -> Any:
    """Let classes of one's own that are named here be found; the callback of `--model`."""
    from searchlab.models.remembered import remember_named

    for spec in [value] if isinstance(value, str) else value or ():
        remember_named(spec, Path.cwd())
    return value


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say how its results are shown."""
    for option in reversed(_OUTPUT):
        command = option(command)
    return command


def given_options() -> set[str]:
    """Return the names of the running command's parameters that stand on its command line."""
    context = click.get_current_context()
    return {
        name
        for name in context.params
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of a table, the first one its head, each column as wide as it must be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def stdout() -> Console:
    """Make the console for results."""
    from rich.console import Console

    class Results(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # which is no error here, where rich would end with 1

    return Results()


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
