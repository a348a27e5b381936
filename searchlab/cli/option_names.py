"""Messages about fields of Python and the API, in the words of the command line."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import click

from searchlab.errors import InputError, NotFoundError


def name_options(command: click.Command) -> None:
    """Let a command, or those of a group, call its options by name where input is refused."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            name_options(below)
    elif command.callback is not None:
        command.callback = _naming(command.callback, command.params)


def with_options(message: str, parameters: Sequence[click.Parameter]) -> str:
    """Put options in place of the fields that they set.

    A field of one word is an option only where the message begins with it: `limit must be ...`.

    Args:
        message: What is wrong.
        parameters: Those of the command.
    """
    options = {
        parameter.name: parameter.opts[0]
        for parameter in parameters
        if parameter.name and parameter.opts[0].startswith("--")
    }
    for name, option in options.items():
        if message.startswith(f"{name} must"):
            message = f"{option}{message.removeprefix(name)}"
        elif "_" in name:  # as no plain word has; what is quoted is what somebody gave
            message = re.sub(rf"(?<![\w`'\"/.-]){name}(?![\w`'\"/.(=-])", option, message)
    return message


def _naming(callback: Any, parameters: Sequence[click.Parameter]) -> Any:
    @functools.wraps(callback)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return callback(*arguments, **options)
        except (InputError, NotFoundError) as error:
            error.args = (with_options(str(error), parameters),)
            raise

    return call
