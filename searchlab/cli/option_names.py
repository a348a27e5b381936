"""Messages about fields of Python and the API, in the words of the command line."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from searchlab.errors import DataError, InputError, NotFoundError, with_folder

_SUBJECT: Final = re.compile(r"\w+(?: and \w+)?(?= (?:must|cannot be combined)\b)")
_LIST: Final = r"\w+(?:, (?:an? )?\w+)+(?: (?:and|or) (?:an? )?\w+)?"


def name_options(command: click.Command) -> None:
    """Let a command, or those of a group, call its options by name where input is refused."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            name_options(below)
    elif command.callback is not None:
        command.callback = _naming(command.callback, command.params)


def with_options(message: str, parameters: Sequence[click.Parameter]) -> str:
    """Put options in place of the fields that a message is about.

    These are the ones that it begins with, as in `limit must be ...`, and those that its condition
    compares with them. A list of fields stays one of fields, and what somebody gave stays as it is.

    Args:
        message: What is wrong.
        parameters: Those of the command.
    """
    options = {
        parameter.name: parameter.opts[0]
        for parameter in parameters
        if parameter.name and parameter.opts[0].startswith("--")
    }
    subject = _SUBJECT.match(message)
    about = set(re.findall(r"\w+", subject[0])) & options.keys() if subject else set()
    head = subject[0] if about and subject else ""
    condition, got, given = message.removeprefix(head).partition(", got ")
    return (
        re.sub(r"\w+", lambda word: options.get(word[0], word[0]), head)
        + _put(options, options, condition)
        + got
        + _put(about, options, given)
    )


def _put(names: Iterable[str], options: Mapping[str, str], text: str) -> str:
    """Put options in place of names with an underscore, as no plain word has one."""
    listed = "|".join(name for name in names if "_" in name)
    if not listed:
        return text
    # What is quoted, or a part of a path or of code, is what somebody gave.
    field = rf"(?<![\w`'\"/.-])({listed})(?![\w`'\"/.(=-])"
    return re.sub(
        f"{_LIST}|{field}", lambda found: options[found[1]] if found[1] else found[0], text
    )


def _naming(callback: Any, parameters: Sequence[click.Parameter]) -> Any:
    @functools.wraps(callback)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return callback(*arguments, **options)
        except (InputError, NotFoundError) as error:
            error.args = (with_options(str(error), parameters),)
            raise
        except DataError as error:
            if isinstance(folder := options.get("data"), Path):
                error.args = (with_folder(str(error), folder),)
            raise

    return call
