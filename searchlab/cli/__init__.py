"""The command line. Commands parse, call and print; heavy imports wait until one needs them."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from searchlab import __version__
from searchlab.cli.accounts import accounts
from searchlab.cli.backups import backup, restore
from searchlab.cli.calibrating import calibrate
from searchlab.cli.comparing import compare
from searchlab.cli.evaluation import datasets, evaluate, verify
from searchlab.cli.exporting import export
from searchlab.cli.extras import explain_missing
from searchlab.cli.info import info
from searchlab.cli.interrupting import say_what_is_kept
from searchlab.cli.judging import judge
from searchlab.cli.keys import keys
from searchlab.cli.library import check, demo, index, search
from searchlab.cli.models import models
from searchlab.cli.opening import open_library
from searchlab.cli.option_names import name_options
from searchlab.cli.overlapping import overlap
from searchlab.cli.publishing import pull, push
from searchlab.cli.reporting import diff, power, promote, report
from searchlab.cli.serve import serve
from searchlab.cli.sources import fetch
from searchlab.cli.tuning import tune
from searchlab.errors import InputError, NotFoundError, SearchlabError

# What imports make stays: looking through it for garbage takes a tenth of a short command.
_COLLECT_AFTER = (20_000, 20, 20)


class _Commands(click.Group):
    """Lists its commands in the order in which a newcomer meets them; a closed pipe is no error."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _until_nobody_reads():
            return super().make_context(*args, **options)

    def invoke(self, context: click.Context) -> Any:
        with _until_nobody_reads():
            return super().invoke(context)


@contextmanager
def _until_nobody_reads() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, package_name="searchlab")
def searchlab() -> None:
    """Search photos by meaning, and measure which model finds them best.

    Exits with 0 if all is well, 1 if a check failed, 2 if it was called wrongly.

    Tab completes after: eval "$(_SEARCHLAB_COMPLETE=bash_source searchlab)" (or zsh_source).
    """


for _command in (
    *(demo, fetch, index, search, open_library, info, check, tune, calibrate, promote, models),
    *(serve, accounts, keys, judge, export, backup, restore, push, pull),
    *(datasets, overlap, evaluate, verify),
    *(report, diff, power, compare),
):
    name_options(_command)
    searchlab.add_command(_command)

_OF_MODELS = [models.commands[name] for name in ("build", "adapt", "migrate")]
for _command in (demo, fetch, index, evaluate, push, *_OF_MODELS):
    say_what_is_kept(_command)


def main() -> None:
    """Run the command line; an error is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        searchlab(standalone_mode=False)
    except click.exceptions.Abort as stop:
        _stop("; ".join(filter(None, ["interrupted", str(stop)])), 130)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _stop(f"{error.format_message()} (see --help)", 2)
    except (InputError, NotFoundError) as error:
        _stop(str(error), 2)
    except SearchlabError as error:
        _stop(str(error), 1)
    except MemoryError:
        _stop("a command must get the memory that it needs, got less; see `ulimit -v`", 1)
    except ModuleNotFoundError as error:
        message = explain_missing(error)
        if message is None:
            raise
        _stop(message, 2)
    except OSError as error:  # a full disk, a file system that cannot be written
        _stop(f"{error.filename or 'the system'}: {error.strerror or error}", 1)


def _stop(message: str, code: int) -> None:
    click.echo(f"searchlab: {message}", err=True)
    sys.exit(code)
