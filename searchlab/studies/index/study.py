"""Recall of searchlab's own indexes, computed again from a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from searchlab.config import Config
from searchlab.errors import NotFoundError
from searchlab.evaluation.metrics import recall_at_k
from searchlab.search.indexes import ExactIndex, Neighbors, build_index
from searchlab.studies.index.recall import scored
from searchlab.studies.vectors.made import VectorSet
from searchlab.studies.vectors.real import vector_set


def own_system(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded settings of a system, if it is searchlab's own.

    Raises:
        NotFoundError: It is another system.
    """
    system: dict[str, Any] = measurement["parameters"].get("system", {})
    if "step_rows" not in system:
        msg = f"a system must be searchlab's own to be asked again, got {measurement['name']!r}"
        raise NotFoundError(msg)
    return system


def vectors_of(measurement: Mapping[str, Any], *, n_queries: int) -> VectorSet:
    """Make or read the vectors of a record again.

    Args:
        measurement: A system's record.
        n_queries: Largest number of queries of each kind.

    Raises:
        NotFoundError: They are of photos that are not here, or that have changed since.
    """
    name, seed = str(measurement["dataset"]), int(measurement["manifest"]["seed"])
    made = vector_set(name, n_queries=n_queries, seed=seed)
    recorded = int(measurement["parameters"]["n_photos"])
    if len(made.photos) != recorded:
        msg = (
            f"{name} must be the {recorded:,} photos that it was when this was measured, got "
            f"{len(made.photos):,}; measure it again"
        )
        raise NotFoundError(msg)
    return made


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Build an index again and ask it all queries again.

    Args:
        measurement: A system's record by `benchmarks/index/bench_index.py`.

    Returns:
        `points`, without their times.

    Raises:
        NotFoundError: It is of another system, whose package searchlab does not install.
            The vectors are those of photos that SEARCHLAB_DATASETS does not hold, or not any more.
    """
    system = own_system(measurement)
    parameters, seed = measurement["parameters"], int(measurement["manifest"]["seed"])
    made = vectors_of(measurement, n_queries=int(parameters["n_queries"]))
    config = Config(model="given", seed=seed, **system)
    index = build_index(made.photos, config)
    deepest = max(point["k"] for point in measurement["points"])
    exact = {
        kind: ExactIndex(made.photos).search(rows, deepest) for kind, rows in made.queries.items()
    }
    points = []
    for point in measurement["points"]:
        kind, k = point["queries"], point["k"]
        queries = made.queries[kind]
        effort = _effort(config, point["effort"])
        answers = [index.search(query[np.newaxis], k, effort=effort).rows[0] for query in queries]
        true = Neighbors(exact[kind].rows[:, :k], exact[kind].scores[:, :k])
        recall = recall_at_k(scored(made.photos, queries, answers, k), true)
        points.append({"queries": kind, "k": k, "effort": point["effort"]})
        points[-1]["recall"] = round(recall, 4)
    return {"points": points}


def _effort(config: Config, recorded: int | None) -> float | None:
    # Recalls are recorded in thousandths.
    return recorded / 1000 if recorded and config.index == "clustered" else recorded
