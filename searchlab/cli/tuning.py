"""The command that measures a library's index on this machine, for the planner."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.cli.options import (
    EXISTING_FILE,
    check_written,
    data_option,
    seed_option,
    stderr,
    stdout,
)
from searchlab.errors import shell_word

if TYPE_CHECKING:
    from searchlab.config import Config
    from searchlab.evaluation.tuning.index_costs import Measured


@click.command()
@data_option
@click.option(
    "--seconds", type=float, default=45.0, show_default=True, help="Time to spend, about."
)
@seed_option("the random samples")
@click.option(
    "--out", type=EXISTING_FILE, help="Configuration to write; tuned.json in --data if not given."
)
def tune(data: Path, seconds: float, seed: int, out: Path | None) -> None:
    """Tune the index on this machine.

    Measures how long each way to answer a query takes, so that searches choose the cheapest. The
    library itself is not changed: the measurements are written to a configuration, with a chart
    beside it, and --config of `searchlab serve` or `searchlab index` makes the library use it.
    """
    from searchlab.cli.console import ConsoleProgress
    from searchlab.config.indexes import load_index
    from searchlab.evaluation.tuning.chart import table, verdict
    from searchlab.evaluation.tuning.tune import measure_library
    from searchlab.library.library import open_library

    library = open_library(data)
    config = library.engine.config
    path = check_written(data, out, "tuned.json")
    progress = ConsoleProgress(stderr())
    measured = measure_library(library, seconds=seconds, seed=seed, progress=progress)
    console = stdout()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    if measured.rows:
        say(table(measured))
    say(verdict(measured, config))
    if load_index(config.index).approximate:
        _write(path, measured, config, seed=seed)
        charts = f" and {path.stem}.png, .svg" if measured.rows else ""
        say(f"written: {path}{charts}; what is in force stays as it is until you say")
        say(f"    searchlab serve --data {shell_word(data)} --config {shell_word(path)}")
        say(f"or  searchlab index --data {shell_word(data)} --config {shell_word(path)}")


def _write(path: Path, measured: Measured, config: Config, *, seed: int) -> None:
    from searchlab.evaluation.provenance.manifest import make_manifest, models_of
    from searchlab.evaluation.provenance.measurement import write_measurement
    from searchlab.evaluation.tuning.chart import draw

    tuned = replace(config, tuning=measured.tuning)
    values = {
        "benchmark": "tuning",
        "dataset": path.parent.resolve().name,
        "name": path.stem,
        "metrics": {"seconds": round(measured.seconds, 1)},
        "config_id": tuned.config_id,
        "config": tuned.to_dict(),
        "tuned_from": config.config_id,
        "rows": measured.rows,
        "manifest": make_manifest("tuning", models=models_of(config.model), seed=seed, threads=1),
    }
    beside = []
    # Drawn in another folder first, so that an interruption leaves no half-written chart.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".tuning-") as folder:
        if measured.rows:
            for chart in draw(measured, config, Path(folder) / path.stem):
                beside.append(chart.replace(path.with_suffix(chart.suffix)))
        write_measurement(path, values, beside=beside)
