"""Measures a recorded result again, and lists the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from searchlab.evaluation.datasets.judgments import read_run
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.provenance.manifest import data_hashes, machine
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.provenance.tolerances import ROUNDING, Tolerance, is_close
from searchlab.evaluation.results import Ranked, Result, load_result
from searchlab.search.filters.photo_filter import PhotoFilter

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.library.library import Library
    from searchlab.progress import Progress

ONE_IN = 1_000
"""One in so many rankings may differ on another machine: a cosine, or the threshold from which on a
description states what it shows, is met or missed by its last bits."""

_STEADY = ("system", "task", "parameters", "intervals", "n_queries")


def recompute_result(
    path: Path,
    dataset: Dataset,
    *,
    library: Library,
    progress: Progress | None = None,
    tolerances: Sequence[Tolerance] = (),
) -> list[str]:
    """Rank and score again, and compare photos, rankings, and the score of every query.

    A ranking in `ONE_IN` may differ where the machine is another one than the recorded.

    Args:
        path: The JSON of a result.
        dataset: Exactly the queries of the result.
        library: Library of the dataset's photos.
        progress: Shows the ranking.
        tolerances: How far means and intervals may be off on another machine.

    Returns:
        A line for each difference.
    """
    recorded = load_result(path)
    is_elsewhere = recorded.manifest["machine"] != machine()
    most = len(recorded.scores.query_ids) // ONE_IN if is_elsewhere else 0
    data = recorded.manifest["data"]
    if "filter" in data:
        dataset = dataset.under(PhotoFilter(**data["filter"]), library.engine.table)
    here = data_hashes(dataset, recorded=str(data["queries"]))
    for name in ("queries", "qrels"):
        if data[name] != here[name]:
            return [f"{name} of {dataset.name}: recorded {data[name]}, here {here[name]}"]
    experiment = Experiment(
        dataset,
        [recorded.config],
        tuple(recorded.intervals),
        library=library,
        benchmark=recorded.benchmark,
        seed=int(recorded.manifest["seed"]),
    )
    again, ranked = experiment.measure(recorded.config, library, progress)
    if again.photos != recorded.photos:
        return [f"photos: recorded {recorded.photos}, now {again.photos}"]
    lines = []
    run_file = path.with_suffix(".run.gz")
    if run_file.exists():
        lines += other_rankings(read_run(run_file), ranked, most=most)
    lines += _other_labels(recorded, again) + _other_scores(recorded, again, most)
    before, now = read_measurement(path), again.to_dict()
    names = (*recorded.intervals, "size_mib")  # all other costs are times
    steady = {name: now[name] for name in _STEADY}
    steady["metrics"] = {name: now["metrics"][name] for name in names}
    if "filter" not in data:  # with a filter, the revision depends on the order of filter and part
        steady["dataset_revision"] = now["dataset_revision"]
    return lines + differences(before, steady, tolerances=tolerances if most else ())


def other_rankings(
    recorded: Mapping[str, list[str]], ranked: Ranked, *, most: int = 0
) -> list[str]:
    """Compare rankings of two runs.

    Args:
        recorded: query_id -> photos, best first.
        ranked: query_id -> photos with scores, best first.
        most: Rankings that may differ.

    Returns:
        A line if more differ.
    """
    differing = [
        query_id
        for query_id, pairs in ranked.items()
        if recorded.get(query_id, []) != [photo_id for photo_id, _ in pairs]
    ]
    if len(differing) <= most:
        return []
    return [f"run: {len(differing):,} of {len(ranked):,} rankings differ, first {differing[0]!r}"]


def _other_labels(recorded: Result, again: Result) -> list[str]:
    # Tests and intervals depend on them: queries about one photo are one piece of evidence.
    return [
        f"{name} of the queries: not those of the dataset"
        for name, before, now in (
            ("langs", recorded.scores.langs, again.scores.langs),
            ("about", recorded.scores.cluster_ids, again.scores.cluster_ids),
        )
        if before != now
    ]


def _other_scores(recorded: Result, again: Result, most: int) -> list[str]:
    lines = []
    for metric, before in recorded.scores.values.items():
        now = again.scores.values[metric]
        off = np.abs(now - before)
        n_off = int(np.count_nonzero(~(off <= ROUNDING)))
        if n_off > most:
            worst = int(np.argmax(off))
            lines.append(
                f"{metric}: {n_off:,} of {len(off):,} queries differ, most "
                f"{again.scores.query_ids[worst]!r}: recorded {before[worst]}, now {now[worst]}"
            )
    return lines


def differences(
    recorded: Any, now: Any, where: str = "", *, tolerances: Sequence[Tolerance] = ()
) -> list[str]:
    """Compare values that were computed again with recorded ones.

    Args:
        recorded: Plain values; those without a counterpart in `now` are ignored.
        now: Plain values.
        where: Name of the values, for the lines.
        tolerances: How far some figures may be off; others by 1e-6, absolutely and relatively.

    Returns:
        A line for each value that differs.
    """
    if isinstance(now, Mapping) and isinstance(recorded, Mapping):
        lines = []
        for key, value in now.items():
            place = f"{where}.{key}" if where else str(key)
            if key in recorded:
                lines += differences(recorded[key], value, place, tolerances=tolerances)
            else:
                lines.append(f"{place}: not recorded, now {value}")
        return lines
    if isinstance(now, list | tuple) and isinstance(recorded, list | tuple):
        if len(now) != len(recorded):
            return [f"{where}: recorded {len(recorded)} values, now {len(now)}"]
        pairs = enumerate(zip(recorded, now, strict=True))
        return [
            line
            for n, (a, b) in pairs
            for line in differences(a, b, f"{where}[{n}]", tolerances=tolerances)
        ]
    same = _alike(where, recorded, now, tolerances)
    return [] if same else [f"{where}: recorded {recorded}, now {now}"]


def _alike(where: str, recorded: Any, now: Any, tolerances: Sequence[Tolerance]) -> bool:
    numbers = [
        isinstance(value, int | float) and not isinstance(value, bool) for value in (recorded, now)
    ]
    if not all(numbers) or recorded == now:
        return bool(recorded == now)
    return is_close(where, float(recorded), float(now), tolerances)
