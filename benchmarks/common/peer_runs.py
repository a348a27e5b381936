"""Measure many systems one after the other; skip those on record, name those not installed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rich.console import Console

from benchmarks.common.fresh_process import in_fresh_process
from benchmarks.common.peers import PEERS
from benchmarks.common.recording import on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.errors import InputError
from searchlab.evaluation.provenance.manifest import make_manifest

Measure: TypeAlias = Callable[[str, argparse.Namespace], dict[str, Any]]
"""Measures one system by its name; returns what is to be recorded, without `manifest`."""


@dataclass
class Outcome:
    """The records of some systems, and why others have none.

    Attributes:
        records: Name -> record of each measured system.
        missing: Name -> why a system has no record.
        failed: Names of those of `missing` that should have been measured.
    """

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def add_systems(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Let the command line pick systems; records of the others are read, by whatever code."""
    listed = ", ".join(names)
    parser.add_argument("--systems", default=",".join(names), help=f"separated by commas: {listed}")


def measure_systems(
    options: argparse.Namespace, benchmark: str, names: Sequence[str], measure: Measure
) -> Outcome:
    """Measure each system in a process of its own, and record it at once.

    Args:
        options: The command line.
        benchmark: Name of the benchmark, which is its folder of results.
        names: All systems of the benchmark; `options.systems` says which to measure now.
        measure: A function of a module, so that it can be pickled.

    Raises:
        InputError: `options.systems` names a system that the benchmark does not know.
    """
    chosen = options.systems.split(",")
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        msg = f"systems must be among {', '.join(names)}, got {unknown}"
        raise InputError(msg)
    outcome = Outcome()
    unforced = argparse.Namespace(**{**vars(options), "force": False})
    progress = ConsoleProgress(Console(stderr=True))
    with progress.step(benchmark, len(names), unit="systems") as step:
        for name in names:
            step.note(name)
            if name in chosen:
                existing = on_record(options, benchmark, name)
            else:
                existing = on_record(unforced, benchmark, name, any_code=True)
            if existing is not None:
                outcome.records[name] = existing
            elif not PEERS[name].is_installed:
                outcome.missing[name] = "not installed"
            elif name not in chosen:
                outcome.missing[name] = "not measured yet"
            else:
                _measure(options, benchmark, name, measure, outcome)
            step.advance(1)
    return outcome


def _measure(
    options: argparse.Namespace, benchmark: str, name: str, measure: Measure, outcome: Outcome
) -> None:
    try:
        values = in_fresh_process(
            measure,
            name,
            options,
            threads=options.threads,
            environment=PEERS[name].environment,
        )
    except Exception as error:  # a peer may raise anything; the others are measured all the same
        outcome.missing[name] = f"failed: {type(error).__name__}: {error}".splitlines()[0][:200]
        outcome.failed.append(name)
        return
    manifest = make_manifest(
        benchmark,
        seed=options.seed,
        threads=options.threads,
        data={"vectors": values.pop("vectors")},
        packages=("threadpoolctl", PEERS[name].package),
    )
    outcome.records[name] = {"name": name, **values, "manifest": manifest}
    record(options, benchmark, name, {**values, "manifest": manifest})


def version_of(values: dict[str, Any]) -> str:
    """Return the version of the package that was measured."""
    package = PEERS[values["name"]].package
    return str(values["manifest"]["packages"][package])
