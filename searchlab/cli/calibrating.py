"""The command that refines scores on judgments of a library's own photos."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from searchlab.cli.options import EXISTING_FILE, check_written, data_option, stdout
from searchlab.errors import count, shell_word


@click.command()
@data_option
@click.argument("judgments")
@click.option(
    "--out",
    type=EXISTING_FILE,
    help="Configuration to write; calibrated.json in --data if not given.",
)
def calibrate(data: Path, judgments: str, out: Path | None) -> None:
    """Refine scores on your own judgments.

    JUDGMENTS is a folder of queries and judged photos, as the judging page and `searchlab datasets`
    write it. A few judgments move scores a little, some hundred decide them. The library itself is
    not changed: the scores are written to a configuration.
    """
    from searchlab.evaluation.calibration.own_judgments import refine_calibration
    from searchlab.evaluation.datasets import load_dataset
    from searchlab.files import write_atomically
    from searchlab.library.library import open_library

    engine = open_library(data).engine
    path = check_written(data, out, "calibrated.json")
    refined = refine_calibration(engine, load_dataset(judgments))
    config = replace(engine.config, calibration=refined.calibration)
    write_atomically(path, f"{config.to_json()}\n".encode())
    console = stdout()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    say(
        f"{count(refined.n_pairs, 'judged photo')} of "
        f"{count(refined.n_queries, 'query', 'queries')}: "
        f"{refined.share_relevant:.0%} are relevant; scores said {refined.mean_before:.0%}, "
        f"now {refined.mean_after:.0%}"
    )
    say(f"written: {path}; what is in force stays as it is until you say")
    say(f"    searchlab index --data {shell_word(data)} --config {shell_word(path)}")
