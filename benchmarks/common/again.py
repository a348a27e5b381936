"""A benchmark run once more for `searchlab verify`, into a folder that is thrown away."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from searchlab.errors import NotFoundError
from searchlab.evaluation.provenance.measurement import measurement_path, read_measurement

_OF_ITS_OWN = ("manifest", "files", "digest")  # of every record, however alike the figures


def measure_again(
    measure: Callable[[argparse.Namespace], object],
    recorded: Mapping[str, Any],
    **settings: Any,
) -> dict[str, Any]:
    """Measure what a record holds again.

    Args:
        measure: Takes the options of a benchmark, measures and records.
        recorded: The record.
        settings: Options beside those that all benchmarks have.

    Returns:
        The record that came of it, but for what says where and when it came.

    Raises:
        NotFoundError: The benchmark ended for want of data.
    """
    with tempfile.TemporaryDirectory() as scratch, redirect_stdout(StringIO()):
        options = argparse.Namespace(
            **{
                "dataset": recorded["dataset"],
                "seed": int(recorded["manifest"]["seed"] or 0),
                "threads": 1,
                "runs": 1,
                "smoke": False,
                "force": True,
                "out": Path(scratch),
                **settings,
            }
        )
        with data_wanted():
            measure(options)
        where = (recorded["benchmark"], recorded["dataset"], recorded["name"])
        again = read_measurement(measurement_path(options.out, *map(str, where)))
        return {name: value for name, value in again.items() if name not in _OF_ITS_OWN}


@contextmanager
def data_wanted() -> Iterator[None]:
    """Turn the end of a script for want of data into an error that `verify` understands.

    Raises:
        NotFoundError: The block ended so.
    """
    try:
        yield
    except SystemExit as ended:
        raise NotFoundError(str(ended)) from None


def only(
    rows: Sequence[Mapping[str, Any]], *names: str, of: int | None = None
) -> list[dict[str, Any]]:
    """Keep some figures of rows.

    Args:
        rows: Rows of a record.
        names: The figures that are compared; rows without one of them compare none.
        of: How many rows the record has; those after the last of `rows` compare nothing.
    """
    kept = [{name: row[name] for name in names if name in row} for row in rows]
    return kept + [{} for _ in range((of or 0) - len(kept))]
