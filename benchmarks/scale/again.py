"""Records of scale, made again: summaries from their records, small sizes from vectors."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.common.peers import PEERS
from benchmarks.scale.bench_scale import SYSTEMS, make_tables
from benchmarks.scale.cells import make_workload
from searchlab.errors import NotFoundError
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.studies.index.recall import measure_within

MOST = 100_000
"""Larger sizes take minutes and gigabytes, and are measured again by the benchmark itself."""


def summary(measurement: dict[str, Any], results: Path) -> dict[str, Any]:
    """Make the tables of a summary again from the records that lie beside it now.

    Raises:
        NotFoundError: A record is gone.
    """
    folder = results / measurement["benchmark"] / measurement["dataset"]
    had = {(row["system"], row["n_photos"]) for row in measurement["rows"]}
    records = []
    for label in measurement["parameters"]["sizes"].split(","):
        for path in (folder / f"{system}-{label}.json" for system in SYSTEMS):
            if path.is_file():
                records.append(read_measurement(path))
    here = {(one["parameters"]["of"], one["parameters"]["n_photos"]) for one in records}
    if gone := sorted(had - here):
        msg = f"the records that a summary is made from must lie beside it, got none of {gone}"
        raise NotFoundError(msg)
    return make_tables(records)


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Ask one of our systems the recorded queries again, and compare how many it finds.

    Raises:
        NotFoundError: The size is over `MOST`, or it is another library, whose filters take
            minutes.
    """
    parameters, manifest = measurement["parameters"], measurement["manifest"]
    name, n = parameters["of"], int(parameters["n_photos"])
    if n > MOST:
        msg = f"up to {MOST:,} vectors are computed again, got {n:,}"
        raise NotFoundError(msg)
    if PEERS[name].package != "searchlab":
        msg = f"a system must be searchlab's own to be asked again, got {name!r}"
        raise NotFoundError(msg)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        options = argparse.Namespace(
            dataset=measurement["dataset"],
            seed=int(manifest["seed"]),
            queries=int(parameters["n_queries"]),
            cache=Path(scratch),
        )
        workload = make_workload(n, options)
        peer = PEERS[name].make(seed=options.seed, threads=int(parameters["threads"]))
        peer.load()
        peer.build(workload.photos, {}, Path(scratch))
        points = []
        with threadpool_limits(1):
            for point in measurement["points"]:
                if point["effort"] is not None:
                    peer.set_effort(point["effort"])
                kind, within = point["queries"], point["filter"]
                measured = measure_within(
                    _answer(peer, workload.masks[within]),
                    workload.photos,
                    workload.queries[kind],
                    workload.true[kind][within],
                    budget_s=0,
                    runs=1,
                    least=int(point["n_queries"]),
                )
                points.append({"recall": round(measured["recall"], 5)})
        peer.close()
    return {"points": points}


def _answer(peer: Any, mask: Any) -> Callable[..., Any]:
    if mask is None:
        search: Callable[..., Any] = peer.search
        return search
    allowed = peer.make_selection(mask)
    return lambda query, k: peer.search_among(query, k, allowed)
