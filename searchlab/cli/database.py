"""The options that name the database of accounts, whose address may hold a password."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from searchlab.cli.options import EXISTING_FILE
from searchlab.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])

_FROM_FILE = "searchlab.database_url"


def database_option(command: Command) -> Command:
    """Add `--database-url` and `--database-url-file`; the command gets `database_url`."""
    by_url = click.option(
        "--database-url",
        envvar="SEARCHLAB_DATABASE_URL",
        show_envvar=True,
        callback=_choose,
        help="Database, as postgresql://USER:PASSWORD@HOST:PORT/NAME; api.db in the library if not "
        "given. With a password, name it in the variable or in a file: other users of the machine "
        "can read the words of a command.",
    )
    by_file = click.option(
        "--database-url-file",
        type=EXISTING_FILE,
        envvar="SEARCHLAB_DATABASE_URL_FILE",
        show_envvar=True,
        is_eager=True,
        expose_value=False,
        callback=_read,
        help="File that holds the address of the database, and nothing else.",
    )
    return by_url(by_file(command))


def _read(context: click.Context, _: click.Parameter, file: Path | None) -> None:
    if file is None:
        return
    try:
        url = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        msg = f"--database-url-file must be a file that can be read, got {file}: {why}"
        raise InputError(msg) from None
    if not url or "\n" in url:
        msg = f"--database-url-file must hold one line, the address, got {file} with none or more"
        raise InputError(msg)
    context.meta[_FROM_FILE] = url


def _choose(context: click.Context, _: click.Parameter, url: str | None) -> str | None:
    from_file: str | None = context.meta.get(_FROM_FILE)
    if url and from_file:
        msg = "--database-url and --database-url-file must not both be given; leave one out"
        raise InputError(msg)
    source = context.get_parameter_source("database_url")
    if url and source is ParameterSource.COMMANDLINE and _has_password(url):
        click.echo(
            "searchlab: other users of this machine can read the password in --database-url; "
            "use SEARCHLAB_DATABASE_URL or --database-url-file",
            err=True,
        )
    return from_file or url


def _has_password(url: str) -> bool:
    try:
        return bool(urlsplit(url).password)
    except ValueError:
        return False
