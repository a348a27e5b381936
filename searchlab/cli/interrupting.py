"""What an interrupted command says: few have something to keep."""

from __future__ import annotations

import functools
from typing import Any

import click


def say_what_is_kept(command: click.Command) -> None:
    """Let a command that keeps what it has finished say so where it is interrupted."""
    callback: Any = command.callback

    @functools.wraps(callback)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return callback(*arguments, **options)
        except KeyboardInterrupt as error:
            click.echo(err=True)  # behind the ^C of a terminal
            msg = "what was finished is kept, the same command goes on from there"
            raise click.Abort(msg) from error

    command.callback = call
