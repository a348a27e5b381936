"""Ratios of the API's operations, measured again in short, to be held to a band."""

from __future__ import annotations

import argparse
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks.http.bench_http import BENCHMARK, measure_api
from searchlab.errors import NotFoundError
from searchlab.evaluation.provenance.measurement import measurement_path, read_measurement

_AGAIN = ("endpoints", "filters")
_SECONDS = 0.3


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Send each kind of request for a moment, and compare the CPU of a request with the base's.

    Times differ from machine to machine; what one request costs beside another hardly does.

    Raises:
        NotFoundError: The record compares servers, or is of the long run.
    """
    name, parameters = str(measurement["name"]), measurement["parameters"]
    if name not in _AGAIN:
        msg = f"only {' and '.join(_AGAIN)} are measured again in short, got {name!r}"
        raise NotFoundError(msg)
    with tempfile.TemporaryDirectory() as scratch, redirect_stdout(StringIO()):
        options = argparse.Namespace(
            dataset=measurement["dataset"],
            runs=1,
            seconds=_SECONDS,
            workers=int(parameters["workers"]),
            seed=0,
            threads=1,
            smoke=False,
            force=True,
            out=Path(scratch),
        )
        measure_api(options, [name])
        again = read_measurement(measurement_path(options.out, BENCHMARK, options.dataset, name))
    ratios = {key: value for key, value in again["metrics"].items() if key.endswith("cpu_ratio")}
    return {"metrics": {"errors": again["metrics"]["errors"], **ratios}}
