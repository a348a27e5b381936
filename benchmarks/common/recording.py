"""One command line and one way to record for every script in `benchmarks/`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from searchlab.errors import DataError, InputError, SearchlabError
from searchlab.evaluation.provenance.manifest import machine, refuse_changes
from searchlab.evaluation.provenance.measurement import (
    measurement_path,
    read_measurement,
    write_measurement,
)
from searchlab.evaluation.provenance.registry import code_of, study_of


def bench_parser(
    doc: str, *, dataset: str, datasets: Sequence[str] = (), spreads: str = ""
) -> argparse.ArgumentParser:
    """Make the command line that all benchmarks share; a script adds what it alone needs.

    Args:
        doc: The script's docstring.
        dataset: The default dataset.
        datasets: All datasets that may be named; any name may be if left out.
        spreads: Name of the study that the script can spread over machines, if its line in
            `STUDIES` says that it may; --on is refused if left out.

    Returns:
        A parser of --dataset, --runs, --seed, --threads, --force, --smoke, --out, --on and
        --allow-changes. It refuses code with changes that no commit has, if the folder of results
        lies in the same checkout.

    Raises:
        InputError: The study may not share machines.
    """
    # A script that measures a cluster has an --on of its own.
    parser = _Parser(
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        conflict_handler="resolve",
    )
    if not spreads:
        parser.add_argument("--on", action=_Refused, default=argparse.SUPPRESS)
    elif study_of(spreads).shares_machines:
        parser.add_argument("--on", help="spread it: ray:local, or ray:ADDRESS of a cluster")
    else:
        msg = f"a study that is spread must share machines, got {spreads!r}, which does not"
        raise InputError(msg)
    choices = list(datasets) or None
    parser.add_argument("--dataset", default=dataset, choices=choices, help="photos to measure on")
    parser.add_argument(
        "--runs", type=_count, default=5, help="repetitions; the median is reported"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws")
    parser.add_argument("--threads", type=_count, default=1, help="threads that compute")
    parser.add_argument("--force", action="store_true", help="measure again what is on record")
    parser.add_argument(
        "--smoke", action="store_true", help="try the script on little data; figures say nothing"
    )
    parser.add_argument("--out", type=Path, default=_results(), help="folder of results")
    parser.add_argument(
        "--allow-changes",
        action="store_true",
        help="record what changed code measures as well; the record is marked",
    )
    return parser


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        msg = f"must be a whole number, at least 1, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


class _Parser(argparse.ArgumentParser):
    """Refuses what must not be recorded before anything is measured; says errors in a line."""

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        options = super().parse_args(*args, **kwargs)
        sys.excepthook = _say_error
        if not (options.smoke or options.allow_changes):
            try:
                refuse_changes(options.out)
            except InputError as error:
                self.error(str(error))
        return options


def _say_error(
    kind: type[BaseException], error: BaseException, where: TracebackType | None
) -> None:
    if isinstance(error, SearchlabError):
        sys.stderr.write(f"{Path(sys.argv[0]).name}: error: {error}\n")
    elif isinstance(error, KeyboardInterrupt):
        sys.stderr.write("stopped; what was recorded stays\n")
    else:
        sys.__excepthook__(kind, error, where)


class _Refused(argparse.Action):
    """Refuses other machines where a script times, or works in one process."""

    def __init__(self, option_strings: Sequence[str], dest: str, **named: Any) -> None:
        super().__init__(option_strings, dest, help=argparse.SUPPRESS, **named)

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        parser.error(
            f"{given[2]} must be left out, got {given[1]!r}: what this script measures, such as "
            "times, holds for one machine that does nothing else"
        )


def _results() -> Path:
    return Path(sys.argv[0]).resolve().parents[2] / "results"


def on_record(
    options: argparse.Namespace, benchmark: str, name: str, *, any_code: bool = False
) -> dict[str, Any] | None:
    """Return the record of an earlier measurement; None if it must be measured now.

    A record counts if it was made on this machine, with the same seed and threads where it names
    them, and by the same code unless `any_code`.
    """
    path = measurement_path(options.out, benchmark, options.dataset, name)
    if options.force or not path.exists():
        return None
    try:
        existing = read_measurement(path)
    except DataError as error:
        sys.stdout.write(f"{error}\n")
        return None
    manifest = existing["manifest"]
    settings = {"seed": options.seed, "threads": options.threads}
    if any(manifest.get(name) not in (None, value) for name, value in settings.items()):
        return None
    if manifest["machine"] != machine():
        return None
    if not any_code and manifest["code"] != code_of(benchmark):
        return None
    sys.stdout.write(f"on record: {path}\n")
    return existing


def add_summarise(parser: argparse.ArgumentParser) -> None:
    """Let the command line make a summary anew without measuring."""
    parser.add_argument(
        "--summarise",
        action="store_true",
        help="measure nothing; summarise what is on record, of whatever code and machine",
    )


def recorded(options: argparse.Namespace, benchmark: str, name: str) -> dict[str, Any] | None:
    """Return a record of whatever code and machine; None if there is none.

    Raises:
        DataError: It was changed by hand, or is no record.
    """
    path = measurement_path(options.out, benchmark, options.dataset, name)
    return read_measurement(path) if path.exists() else None


def refuse_empty(options: argparse.Namespace, benchmark: str, records: Collection[Any]) -> None:
    """End the script where there is nothing to summarise, before a summary is written over."""
    if options.summarise and not records:
        folder = options.out / benchmark / options.dataset
        sys.exit(f"--summarise must find records of what it is asked for, got none in {folder}")


def record(
    options: argparse.Namespace,
    benchmark: str,
    name: str,
    values: Mapping[str, Any],
    *,
    beside: Sequence[Path] = (),
) -> Path:
    """Write a measurement and the files beside it; `values` are those of `write_measurement`.

    Raises:
        InputError: A smoke run would write into the folder of results.
    """
    if options.smoke and options.out.resolve() == _results():
        msg = f"a smoke run must keep out of {options.out}; give a folder of its own with --out"
        raise InputError(msg)
    path = measurement_path(options.out, benchmark, options.dataset, name)
    whole = {"benchmark": benchmark, "dataset": options.dataset, "name": name, **values}
    write_measurement(path, whole, beside=beside)
    sys.stdout.write(f"written: {path}\n")
    return path


def median_ms(
    work: Callable[[], object], runs: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Measure the median milliseconds of a piece of work, after one run that does not count.

    Args:
        work: Is done `runs` times.
        runs: How often.
        clock: `time.process_time` counts what others do on the machine hardly at all.
    """
    work()
    seconds = []
    for _ in range(runs):
        started = clock()
        work()
        seconds.append(clock() - started)
    return 1000 * float(np.median(seconds))
