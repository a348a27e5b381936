"""Ratios of the API's operations, measured again in short, to be held to a band."""

from __future__ import annotations

from typing import Any

from benchmarks.common.again import measure_again
from benchmarks.http.bench_http import measure_api

_ROUNDS, _SECONDS = 3, 0.2  # of one round alone, a hiccup of the machine would count


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Send each kind of request for a moment, and compare the CPU of a request with the base's.

    Times differ from machine to machine; what one request costs beside another hardly does.
    """
    workers, name = int(measurement["parameters"]["workers"]), str(measurement["name"])
    again = measure_again(
        lambda options: measure_api(options, [name]),
        measurement,
        runs=_ROUNDS,
        seconds=_SECONDS,
        workers=workers,
    )
    ratios = {key: value for key, value in again["metrics"].items() if key.endswith("cpu_ratio")}
    return {"metrics": {"errors": again["metrics"]["errors"], **ratios}}
