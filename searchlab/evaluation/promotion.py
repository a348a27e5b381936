"""Promotion: which measured configuration to serve, and the file that says so, with its evidence.

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
from searchlab.errors import ConflictError, DataError, InputError, SearchlabError
from searchlab.evaluation.provenance.measurement import read_measurement, write_measurement
from searchlab.evaluation.results import Result, incompatibility, load_result
from searchlab.evaluation.significance import Interval, bootstrap_interval, permutation_test

BENCHMARK = "promotion"
# Timings nearer than this are noise on a shared machine, or more than anyone would notice.
_AS_FAST = 1.5
_AS_FAST_MS = 1.0
_ALPHA = 0.05


@dataclass(frozen=True)
class Standing:
    """How a result stands beside the configuration in force.

    Attributes:
        against: Name of what is in force.
        is_worse: True and False are shown; None: the evidence cannot be compared.
        reason: The comparison in words, or why there can be none.
        difference: Result less what is in force, where both were measured query by query.
        p_value: Of the paired test, likewise.
    """

    against: str
    is_worse: bool | None
    reason: str
    difference: Interval | None = None
    p_value: float | None = None


def choose(group: Sequence[Result]) -> Result:
    """Pick the configuration to serve.

    Those count as fast whose median time for a new query (embedding and ranking) is within 1.5
    times or 1 ms of the least; of these the one with the smallest index is picked, then an index
    that misses nothing, then the better mean.

    Args:
        group: The first of `Report.groups`: nothing in it is shown to be worse than the best.

    Raises:
        InputError: The group is empty.
    """
    if not group:
        msg = "a group must have at least one result, got none; evaluate a configuration first"
        raise InputError(msg)
    fastest = min(_query_ms(result) for result in group)
    most = max(_AS_FAST * fastest, fastest + _AS_FAST_MS)
    fast = [result for result in group if _query_ms(result) <= most]
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
    out: Path | None = None,
    force: bool = False,
    replace_unlike: bool = False,
) -> Path:
    """Write a configuration, and the figures that earned it its place, as the one to serve.

    Args:
        result: What to serve.
        path: Such as `results/chosen.json`; `searchlab serve --config` and `Config.load` read it.
        measured: All results of the same report: what is in force may be one of them.
        tied_with: Results that cannot be told apart from it.
        out: Folder of results that `result` lies in; that of `path` if left out.
        force: Replace whatever is there.
        replace_unlike: Replace a configuration whose evidence cannot be compared, too.

    Returns:
        The path.

    Raises:
        ConflictError: The file holds a configuration that is shown to be better, by the paired test
            or by an interval that lies wholly above; or one whose evidence cannot be compared.
        DataError: The file holds something else.
    """
    path = Path(path)
    standing = None
    if path.exists():
        try:
            standing = stand(result, path, measured=measured)
        except DataError:
            if not force:
                raise
    if standing is not None and not force:
        _refuse(result, path, standing, replace_unlike=replace_unlike)
    out = out or path.parent
    source = result.path(out)
    sealed = read_measurement(source)["digest"] if source.exists() else None
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
            "result": sealed and {"path": _from(path.parent, source), "digest": sealed},
            "tied_with": [{"config_id": r.config_id, "system": r.name} for r in tied_with],
            "replaced": standing and _plain(standing, forced=force),
        },
        "manifest": result.manifest,
    }
    return write_measurement(path, values)


def stand(result: Result, path: Path, *, measured: Sequence[Result] = ()) -> Standing:
    """Compare a result with the configuration in force.

    Query by query where both were measured alike: the one in force is looked for among `measured`,
    then in the result file that its evidence names. Otherwise by the intervals, if they are of the
    same data, metric and code.

    Args:
        result: What may replace it.
        path: Of the file in force.
        measured: Results of the same report.

    Raises:
        DataError: The file holds no configuration.
    """
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        config = Config.from_dict(plain["config"])
        name = str(plain.get("system") or plain.get("name") or config.config_id)
        if plain.get("schema", 1) > 1 and plain.get("benchmark") != BENCHMARK:
            msg = f"a measurement of {plain.get('benchmark')}"
            raise ValueError(msg)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, SearchlabError) as error:
        msg = f"{path} must hold a chosen config, got: {error}; move it away or force"
        raise DataError(msg) from error
    if config.config_id == result.config_id:
        return Standing(name, False, "it is the same configuration, measured again")
    rivals = [one for one in measured if one.config_id == config.config_id]
    unread, there = "", None
    try:
        there = read_measurement(path)
        rivals += _load_sealed_result(path.parent, there["evidence"]["result"])
    except (DataError, TypeError, KeyError, AttributeError) as error:
        unread = f"its evidence cannot be read: {error}"
    for rival in rivals:
        if incompatibility(result, rival, timings=False) is None:
            return _compare_by_query(result, rival, name)
    if there is None:
        return Standing(name, None, unread)
    try:
        return _by_interval(result, there, name)
    except (TypeError, KeyError, AttributeError) as error:
        return Standing(name, None, f"its evidence lacks a part: {error}")


def _compare_by_query(result: Result, rival: Result, name: str) -> Standing:
    scores, metric = result.scores, result.headline
    mine, theirs = scores.values[metric], rival.scores.values[metric]
    groups, clusters = scores.langs, scores.cluster_ids
    difference = bootstrap_interval(mine - theirs, groups=groups, clusters=clusters)
    p_value = permutation_test(mine, theirs, groups=groups, clusters=clusters)
    reason = (
        f"{metric} differs by {difference.mean:+.3f} [{difference.low:+.3f}, "
        f"{difference.high:+.3f}], p = {p_value:.4f}"
    )
    worse = difference.mean < 0 and (p_value < _ALPHA or difference.high < 0)
    return Standing(name, worse, reason, difference, p_value)


def _by_interval(result: Result, there: dict[str, Any], name: str) -> Standing:
    here = {
        "dataset": result.dataset,
        "revision": result.dataset_revision,
        "photos": result.photos["hash"],
        "queries": result.n_queries,
        "code": result.code,
    }
    evidence = there["evidence"]
    then = {
        "dataset": there["dataset"],
        "revision": there["dataset_revision"],
        "photos": evidence["photos"]["hash"],
        "queries": evidence["n_queries"],
        "code": there["manifest"]["code"],
    }
    unlike = [
        f"{what} {then[what]} and {value}" for what, value in here.items() if value != then[what]
    ]
    if result.headline not in there["intervals"]:
        unlike.append(f"{result.headline} was not measured")
    if unlike:
        return Standing(name, None, "; ".join(unlike))
    held = Interval(*there["intervals"][result.headline])
    interval = result.intervals[result.headline].macro
    reason = f"{result.headline} is {interval} against {held}"
    return Standing(name, held.low > interval.high, reason)


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
    """Load the result that evidence names, if it still is what it was."""
    path = None if named is None else folder / named["path"]
    if named is None or path is None or not path.exists():
        return []
    return [load_result(path)] if read_measurement(path)["digest"] == named["digest"] else []


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
