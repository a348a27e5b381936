"""Promotion: which measured configuration to serve, and the file that says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from searchlab.config import Config
from searchlab.errors import ConflictError, DataError, InputError, SearchlabError
from searchlab.files import write_atomically
from searchlab.results import Result
from searchlab.significance import Interval

# Timings nearer than this are noise on a shared machine, or more than anyone would notice.
_AS_FAST = 1.5
_AS_FAST_MS = 1.0


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
            result.config.index != "exact",
            -result.metrics[result.headline],
            result.name,
        ),
    )


def promote(
    result: Result, path: Path | str, *, tied_with: Sequence[Result] = (), force: bool = False
) -> Path:
    """Write a configuration, and the figures that earned it its place, as the one to serve.

    Args:
        result: What to serve.
        path: Such as `results/chosen.json`; `searchlab serve --config` and `Config.load` read it.
        tied_with: Results that cannot be told apart from it.
        force: Replace whatever is there.

    Returns:
        The path.

    Raises:
        ConflictError: The file holds a configuration that is clearly better on the same data: its
            interval lies wholly above.
        DataError: The file holds something else.
    """
    path = Path(path)
    if path.exists() and not force:
        _refuse_worse(result, path)
    values = {
        "schema": 1,
        "config_id": result.config_id,
        "name": result.name,
        "config": result.config.to_dict(),
        "benchmark": result.benchmark,
        "dataset": result.dataset,
        "dataset_revision": result.dataset_revision,
        "date": result.environment["date"],
        "evidence": {
            "headline": result.headline,
            "metrics": result.to_dict()["metrics"],
            "intervals": {name: list(found.macro) for name, found in result.intervals.items()},
            "n_queries": result.n_queries,
            "languages": list(result.languages),
        },
        "photos": result.photos,
        "tied_with": [{"config_id": tied.config_id, "name": tied.name} for tied in tied_with],
        "environment": result.environment,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode())
    return path


def _refuse_worse(result: Result, path: Path) -> None:
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
        config = Config.from_dict(there["config"])
        data = there["dataset"], there["dataset_revision"]
        evidence = there["evidence"]["intervals"].get(result.headline)
        low = -1.0 if evidence is None else float(evidence[1])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, SearchlabError) as error:
        msg = f"{path} must hold a chosen config, got: {error}; move it away or force"
        raise DataError(msg) from error
    found = result.intervals[result.headline].macro
    same_data = data == (result.dataset, result.dataset_revision)
    if same_data and config.config_id != result.config_id and low > found.high:
        msg = (
            f"{path} must not be replaced by a worse config, got {result.name} with "
            f"{result.headline} {found} against {there.get('name')} with "
            f"{Interval(*evidence)}; force to replace it all the same"
        )
        raise ConflictError(msg)


def _query_ms(result: Result) -> float:
    return result.metrics["text_ms"] + result.metrics["p50_ms"]
