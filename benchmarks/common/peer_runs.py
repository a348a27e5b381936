"""Measure many systems one after the other; skip those on record, name those not installed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console

from benchmarks.common.fresh_process import in_fresh_process
from benchmarks.common.peers import PEERS
from benchmarks.common.recording import add_summarise, on_record, record, recorded, refuse_empty
from searchlab.cli.console import ConsoleProgress
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import read_measurement

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
    add_summarise(parser)


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
            if options.summarise:
                existing = recorded(options, benchmark, name)
            elif name in chosen:
                existing = on_record(options, benchmark, name)
            else:
                existing = on_record(unforced, benchmark, name, any_code=True)
            if existing is not None:
                outcome.records[name] = existing
            elif options.summarise:
                outcome.missing[name] = "not measured yet"
            elif not PEERS[name].is_installed:
                outcome.missing[name] = "not installed"
            elif name not in chosen:
                outcome.missing[name] = "not measured yet"
            else:
                _measure(options, benchmark, name, measure, outcome)
            step.advance(1)
    refuse_empty(options, benchmark, outcome.records)
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


def recorded_beside(summary: dict[str, Any], results: Path) -> Outcome:
    """Read the records of the systems that a summary has in its rows, in their order.

    Raises:
        NotFoundError: A record is gone.
    """
    folder = results / summary["benchmark"] / summary["dataset"]
    outcome = Outcome()
    for row in summary["rows"]:
        path = folder / f"{row['system']}.json"
        if not path.is_file():
            msg = f"the records that a summary is made from must lie beside it, got no {path}"
            raise NotFoundError(msg)
        outcome.records[str(row["system"])] = read_measurement(path)
    return outcome


def origin_of(values: dict[str, Any]) -> dict[str, str]:
    """Return version, commit and minute of a measurement, so that each row says its own."""
    manifest = values["manifest"]
    version = manifest["packages"].get(PEERS[values["name"]].package, "-")
    at = manifest.get("measured_on", manifest)
    commit = str(at.get("commit", manifest["commit"])).removeprefix("recorded with ")
    measured = str(at.get("date", manifest["date"]))[:16].replace("T", " ")
    return {"version": str(version), "commit": commit, "measured": measured}


def summary_manifest(
    options: argparse.Namespace, benchmark: str, records: Iterable[dict[str, Any]]
) -> Any:
    """Make the manifest of a summary, which names the machines of the measurements in it."""
    manifest = make_manifest(benchmark, seed=options.seed, threads=options.threads)
    machines = {str(record["manifest"]["machine"]) for record in records}
    return {**manifest, "machine": "; ".join(sorted(machines)) or manifest["machine"]}
