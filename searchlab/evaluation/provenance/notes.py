"""Notes: what a reader of a record's figures should know before relying on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from searchlab.errors import DataError
from searchlab.evaluation.experiments import BENCHMARK as SEARCH_QUALITY
from searchlab.evaluation.provenance.manifest import is_lost
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.provenance.registry import STUDIES

Values: TypeAlias = dict[str, Any]

_ELSEWHERE: Final = (
    *("flickr8k", "judge", "mixed-", "photos-mini", "report", "spliced-", "stamps", "vivid"),
)
"""Parts of the names of data that does not ship."""


class Notes:
    """Tells notes of one record after another; reads the records beside them once."""

    def __init__(self) -> None:
        self._machines: dict[Path, dict[str, list[str]]] = {}

    def of(self, path: Path, values: Values) -> tuple[str, ...]:
        """Say what is computed again, whose code it was, and what machines stand beside it.

        Args:
            path: The record.
            values: Its values.

        Returns:
            A line for each thing to know; none if there is nothing.
        """
        manifest, notes = values["manifest"], [how] if (how := _how(values)) else []
        named = str(manifest.get("commit", "")).removeprefix("recorded with ")
        if named.endswith("+"):
            notes.append(f"measured with changes that commit {named[:-1]} has not")
        if is_lost(named.rstrip("+")):
            notes.append(f"commit {named.rstrip('+')} is not in the history here")
        if _has_times(values):
            notes += [
                f"times beside it are of another machine, {machine}: {', '.join(names)}"
                for machine, names in self._machines_beside(path).items()
                if machine not in str(manifest["machine"])
                and str(manifest["machine"]) not in machine
            ]
        return tuple(notes)

    def _machines_beside(self, path: Path) -> dict[str, list[str]]:
        if path.parent not in self._machines:
            self._machines[path.parent] = _machines_in(path.parent)
        return self._machines[path.parent]


def benchmark_of(values: Mapping[str, Any]) -> str:
    """Return the study of a record; results of configurations all belong to `search_quality`."""
    return SEARCH_QUALITY if is_result(values) else str(values["benchmark"])


def is_result(values: Mapping[str, Any]) -> bool:
    """Tell whether it is the result of a configuration, even if its files were removed."""
    return "intervals" in values and "config_id" in values and "evidence" not in values


def _how(values: Values) -> str:
    """Say which figures of a record are computed again, which are not, and what that needs."""
    study = STUDIES.get(benchmark_of(values))
    if study is None:
        return ""  # which is said elsewhere
    computed = study.again and study.computes(str(values["dataset"]), str(values["name"]))
    parts = [f"computed again: {study.again}"] if computed else []
    parts += [f"not computed again: {study.sealed}"] if study.sealed else []
    named = f"{values['dataset']} {values['name']} {values.get('task', '')}"
    if any(one in named for one in _ELSEWHERE):
        parts.append("needs SEARCHLAB_DATASETS")
    return "; ".join(parts)


def _has_times(values: Values) -> bool:
    return any(
        re.search(r"(_ms|_us|_s| us)\b|per_s\b|_ratio\b", name) for name in values["metrics"]
    )


def _machines_in(folder: Path) -> dict[str, list[str]]:
    """Return the machines of a folder's records with times, and the names of these records."""
    machines: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            values = read_measurement(path)
        except DataError:  # said where that file is verified
            continue
        if _has_times(values):
            machines.setdefault(str(values["manifest"]["machine"]), []).append(path.name)
    return machines
