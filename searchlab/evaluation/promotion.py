"""Promotion: chooses the configuration to serve, and writes it to a file with its evidence.

The file is a sealed measurement (`searchlab.evaluation.provenance.measurement`) that `Config.load`
reads as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchlab.config import Config
from searchlab.config.indexes import load_index
from searchlab.errors import ConflictError, DataError, InputError, SearchlabError, refuse_names
from searchlab.evaluation.provenance.measurement import read_measurement, write_measurement
from searchlab.evaluation.results import Result, incompatibility, load_result
from searchlab.evaluation.significance import Interval, bootstrap_interval, paired_test

BENCHMARK = "promotion"
# Smaller differences in time are noise on a shared machine, or too small to notice. Words take a
# millisecond on a slow one: were that too much, its other work would decide what is served.
_AS_FAST_FACTOR = 1.5
_AS_FAST_MS = 2.0
_ALPHA = 0.05


@dataclass(frozen=True)
class Standing:
    """How a result compares with the current configuration.

    Attributes:
        against: Name of the current configuration.
        is_worse: Whether the result is shown to be worse; None if they cannot be compared.
        reason: The comparison in words, or why there is none.
        difference: Result minus current configuration, if both have scores for each query.
        p_value: P-value of the paired test, likewise.
    """

    against: str
    is_worse: bool | None
    reason: str
    difference: Interval | None = None
    p_value: float | None = None


@dataclass(frozen=True, eq=False)
class TaskEvidence:
    """A task that the promoted configuration was chosen on.

    Attributes:
        result: Its result on the task.
        weight: Share of the task in the choice, 0 to 1.
    """

    result: Result
    weight: float


def choose(group: Sequence[Result]) -> Result:
    """Pick the configuration to serve.

    A configuration is fast if its median time for a new query (embedding and ranking) is at most
    1.5 times the least, or 2 ms more; results without times of one machine all are. Of the fast
    ones the smallest index is picked; of equally small ones an exact index, then the better mean.

    Args:
        group: The first of `Report.groups`: nothing in it is shown to be worse than the best.

    Raises:
        InputError: The group is empty.
    """
    if not group:
        msg = "a group must have at least one result, got none; evaluate a configuration first"
        raise InputError(msg)
    fastest = min(_query_ms(result) for result in group)
    most = max(_AS_FAST_FACTOR * fastest, fastest + _AS_FAST_MS)
    fast = [result for result in group if not result.is_timed or _query_ms(result) <= most]
    return min(
        fast,
        key=lambda result: (
            round(result.metrics["size_mib"], 3),
            load_index(result.config.index).approximate,
            -result.metrics[result.headline],
            result.name,
        ),
    )


def promote(
    result: Result,
    path: Path | str,
    *,
    measured: Sequence[Result] = (),
    tied_with: Sequence[Result] = (),
    tasks: Sequence[TaskEvidence] = (),
    out: Path | None = None,
    force: bool = False,
    replace_unlike: bool = False,
) -> Path:
    """Write the configuration to serve, with the figures that it was chosen for.

    Args:
        result: Result of the configuration.
        path: File such as `results/chosen.json`, for `searchlab serve --config` and `Config.load`.
        measured: All results of the same report; the current configuration may be one of them.
        tied_with: Results that do not differ significantly from it.
        tasks: All tasks that it was chosen on, where there are several.
        out: Folder of results that `result` lies in; that of `path` if left out.
        force: Whether to replace any current configuration.
        replace_unlike: Whether to replace one whose evidence cannot be compared.

    Returns:
        The path.

    Raises:
        ConflictError: The file holds a configuration that is shown to be better, by the paired test
            or because its interval lies wholly above; or one whose evidence cannot be compared.
        DataError: The file holds no chosen configuration.
    """
    refuse_names("load_result(path), or one of a report's results", result=result)
    path = Path(path)
    standing = None
    if path.exists():
        try:
            standing = compare_with_current(result, path, measured=measured)
        except DataError:
            if not force:
                raise
    if standing is not None and not force:
        _refuse(result, path, standing, replace_unlike=replace_unlike)
    out = out or path.parent
    values = {
        "benchmark": BENCHMARK,
        "dataset": result.dataset,
        "dataset_revision": result.dataset_revision,
        "name": path.stem,
        "system": result.name,
        "config_id": result.config_id,
        "config": result.config.to_dict(),
        "metrics": result.to_dict()["metrics"],
        "intervals": {name: list(averages.macro) for name, averages in result.intervals.items()},
        "evidence": {
            "benchmark": result.benchmark,
            "headline": result.headline,
            "n_queries": result.n_queries,
            "n_about": len(set(result.scores.cluster_ids)),
            "languages": list(result.languages),
            "photos": result.photos,
            "result": _sealed(result, out, path.parent),
            **({"tasks": [_task(task, out, path.parent) for task in tasks]} if tasks else {}),
            "tied_with": [{"config_id": r.config_id, "system": r.name} for r in tied_with],
            "replaced": standing and _plain(standing, forced=force),
        },
        "manifest": result.manifest,
    }
    return write_measurement(path, values)


def compare_with_current(
    result: Result, path: Path, *, measured: Sequence[Result] = ()
) -> Standing:
    """Compare a result with the current configuration.

    They are compared query by query if both were measured in the same way: the current result is
    looked for among `measured`, then in the result file that its evidence names. Otherwise their
    intervals are compared, if data, metric and code are the same.

    Args:
        result: The result that may replace it.
        path: File of the current configuration.
        measured: Results of the same report.

    Raises:
        DataError: The file holds no chosen configuration.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        config = Config.from_dict(values["config"])
        name = str(values.get("system") or values.get("name") or config.config_id)
        if values.get("schema", 1) > 1 and values.get("benchmark") != BENCHMARK:
            msg = f"a measurement of {values.get('benchmark')}"
            raise ValueError(msg)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, SearchlabError) as error:
        msg = f"{path} must hold a chosen config, got: {error}; move it away or force"
        raise DataError(msg) from error
    if config.config_id == result.config_id:
        return Standing(name, False, "it is the same configuration, measured again")
    rivals = [other for other in measured if other.config_id == config.config_id]
    problem, current = "", None
    try:
        current = read_measurement(path)
        rivals += _load_sealed_result(path.parent, current["evidence"]["result"])
    except (DataError, TypeError, KeyError, AttributeError) as error:
        problem = f"its evidence cannot be read: {error}"
    for rival in rivals:
        if incompatibility(result, rival, timings=False) is None:
            return _compare_by_query(result, rival, name)
    if current is None:
        return Standing(name, None, problem)
    try:
        return _compare_by_interval(result, current, name)
    except (TypeError, KeyError, AttributeError) as error:
        return Standing(name, None, f"its evidence lacks a part: {error}")


def _compare_by_query(result: Result, rival: Result, name: str) -> Standing:
    scores, metric = result.scores, result.headline
    mine, theirs = scores.values[metric], rival.scores.values[metric]
    groups, clusters = scores.langs, scores.cluster_ids
    difference = bootstrap_interval(mine - theirs, groups=groups, clusters=clusters)
    p_value = paired_test(mine, theirs, groups=groups, clusters=clusters)
    reason = (
        f"{metric} differs by {difference.mean:+.3f} [{difference.low:+.3f}, "
        f"{difference.high:+.3f}], p = {p_value:.4f}"
    )
    # The test alone decides: an interval never reaches beyond the scores that were seen, so that of
    # few queries is too narrow.
    return Standing(name, difference.mean < 0 and p_value < _ALPHA, reason, difference, p_value)


def _compare_by_interval(result: Result, current: dict[str, Any], name: str) -> Standing:
    new_setting = {
        "dataset": result.dataset,
        "revision": result.dataset_revision,
        "photos": result.photos["hash"],
        "queries": result.n_queries,
        "code": result.code,
    }
    evidence = current["evidence"]
    old_setting = {
        "dataset": current["dataset"],
        "revision": current["dataset_revision"],
        "photos": evidence["photos"]["hash"],
        "queries": evidence["n_queries"],
        "code": current["manifest"]["code"],
    }
    differences = [
        f"{what} {old_setting[what]} and {value}"
        for what, value in new_setting.items()
        if value != old_setting[what]
    ]
    if result.headline not in current["intervals"]:
        differences.append(f"{result.headline} was not measured")
    # Without scores there is no test, and of so few queries none could tell them apart.
    n_about = len(set(result.scores.cluster_ids))
    if 2 ** (1 - n_about) > _ALPHA:
        differences.append(f"intervals of {n_about} queries say too little")
    if differences:
        return Standing(name, None, "; ".join(differences))
    old = Interval(*current["intervals"][result.headline])
    new = result.intervals[result.headline].macro
    reason = f"{result.headline} is {new} against {old}"
    return Standing(name, old.low > new.high, reason)


def _refuse(result: Result, path: Path, standing: Standing, *, replace_unlike: bool) -> None:
    if standing.is_worse:
        msg = (
            f"{path} must not be replaced by a worse config, got {result.name} against "
            f"{standing.against} in force: {standing.reason}; force to replace it all the same"
        )
        raise ConflictError(msg)
    if standing.is_worse is None and not replace_unlike:
        msg = (
            f"{path} must be replaced by what was measured beside it, got evidence for "
            f"{standing.against} that cannot be compared ({standing.reason}); evaluate both "
            "together, or force"
        )
        raise ConflictError(msg)


def _load_sealed_result(folder: Path, named: dict[str, Any] | None) -> list[Result]:
    """Load the result that the evidence names, if the file exists and is unchanged."""
    path = None if named is None else folder / named["path"]
    if named is None or path is None or not path.exists():
        return []
    return [load_result(path)] if read_measurement(path)["digest"] == named["digest"] else []


def _sealed(result: Result, out: Path, folder: Path) -> dict[str, str] | None:
    """Name the file of a result, relative to a folder, and its seal; None where there is none."""
    path = result.path(out)
    if not path.exists():
        return None
    return {"path": _from(folder, path), "digest": read_measurement(path)["digest"]}


def _task(task: TaskEvidence, out: Path, folder: Path) -> dict[str, Any]:
    result = task.result
    return {
        "dataset": result.dataset,
        "dataset_revision": result.dataset_revision,
        "weight": task.weight,
        "interval": [round(x, 6) for x in result.intervals[result.headline].macro],
        "result": _sealed(result, out, folder),
    }


def _from(folder: Path, path: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _plain(standing: Standing, *, forced: bool) -> dict[str, Any]:
    return {
        "system": standing.against,
        "is_worse": standing.is_worse,
        "reason": standing.reason,
        "difference": standing.difference and [round(x, 6) for x in standing.difference],
        "p_value": standing.p_value,
        "forced": forced,
    }


def _query_ms(result: Result) -> float:
    return result.metrics["text_ms"] + result.metrics["p50_ms"]
