"""Options that say who does the work of a command: this process, or tasks on Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from searchlab.errors import InputError

if TYPE_CHECKING:
    from searchlab.cluster.runners import LocalRunner, RayRunner

F = TypeVar("F", bound=Callable[..., Any])

_WITH_ON = ("work", "cpus", "gpus")


def runner_options(purpose: str) -> Callable[[F], F]:
    """Give a command `--on`, and what its tasks take of a cluster.

    Args:
        purpose: What is done on Ray and what its nodes must reach, for the help of `--on`.
    """

    def add(command: F) -> F:
        options = (
            click.option("--on", "runner_name", help=purpose),
            click.option(
                "--cpus",
                type=float,
                help="With --on, processors that a task takes; 1 if not given.",
            ),
            click.option(
                "--gpus",
                type=float,
                help="With --on, GPUs that a task takes, such as 0.5; 0 if not given.",
            ),
        )
        for option in reversed(options):
            command = option(command)
        return command

    return add


def runner_of(options: Mapping[str, Any]) -> LocalRunner | RayRunner | None:
    """Open the runner that the options of `runner_options` name; None for this process.

    Raises:
        InputError: The name is none of a runner, or what a task takes is given without one.
        MissingExtraError: Ray is not installed.
    """
    given = {name: options[name] for name in _WITH_ON if options.get(name) is not None}
    if options["runner_name"] is None:
        if given:
            msg = (
                f"--{min(given)} goes with --on, got none; name who does the work, such as "
                "--on ray:local"
            )
            raise InputError(msg)
        return None
    from searchlab.cluster.runners import open_runner

    return open_runner(options["runner_name"], **given)
