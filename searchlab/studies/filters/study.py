"""The filter atlas of searchlab's own engine, computed again from a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchlab.config import Config
from searchlab.search.indexes import build_index
from searchlab.studies.filters.atlas import Atlas, Cell, measure_cell
from searchlab.studies.filters.atlas_engine import Served
from searchlab.studies.index.study import own_system, vectors_of
from searchlab.studies.vectors.real import POOL, REAL

_STEADY = ("n_allowed", "recall", "short", "wrong", "plan")


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the recorded number of queries in every recorded cell again.

    Args:
        measurement: A system's record by `benchmarks/filters/bench_filters.py`.

    Returns:
        `cells`, without their times.

    Raises:
        NotFoundError: It is of another system, whose package searchlab does not install.
            The vectors are those of photos that SEARCHLAB_DATASETS does not hold, or not any more.
    """
    system = own_system(measurement)
    parameters, seed = measurement["parameters"], int(measurement["manifest"]["seed"])
    name = str(measurement["dataset"])
    made = vectors_of(measurement, n_queries=POOL if name in REAL else 1)
    vectors, real = made.photos, made.queries if name in REAL else None
    atlas = Atlas(vectors, n_queries=int(parameters["n_queries"]), seed=seed, real=real)
    config = Config(model="given", seed=seed, **system)
    index = build_index(vectors, config)
    served = Served(atlas.columns, index, config)
    cells = []
    for row in measurement["cells"]:
        cell = Cell(row["share"], row["relation"], row["n_conditions"], row.get("queries", "image"))
        n = int(row["n_queries"])
        measured = measure_cell(served, atlas, cell, k=int(parameters["k"]), budget_s=0, least=n)
        measured["plan"] = served.plan
        cells.append({name: _rounded(measured[name]) for name in _STEADY})
    return {"cells": cells}


def _rounded(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value
