"""Renew: marks records whose figures were computed again, and are the same, with today's code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from searchlab.evaluation.provenance.manifest import commit
from searchlab.evaluation.provenance.measurement import read_measurement, write_measurement
from searchlab.evaluation.provenance.notes import benchmark_of
from searchlab.evaluation.provenance.registry import code_of
from searchlab.evaluation.provenance.verify import Verification

_MEASURED_ON = ("code", "commit", "date")


def renew(verifications: Iterable[Verification]) -> list[Path]:
    """Write today's code and commit into every record that was just verified, and seal it again.

    The code that it was measured with stays under `manifest.measured_on`; nothing else changes.
    Records of today's code are not written. A chosen configuration gets the new seal of its result.

    Args:
        verifications: Results of `verify`, not of a quick one.

    Returns:
        Paths of the records that were written.

    Raises:
        DataError: A record was changed since it was verified.
    """
    listed = list(verifications)
    seals: dict[Path, tuple[str, str]] = {}  # record -> its seal before and now
    for verification in listed:
        if verification.status == "verified":
            values = read_measurement(verification.path)
            if _take_todays_code(values):
                before = str(values["digest"])
                _seal(verification.path, values)
                now = str(read_measurement(verification.path)["digest"])
                seals[verification.path.resolve()] = before, now
    renewed = [one.path for one in listed if one.path.resolve() in seals]
    for verification in listed:
        if verification.status == "sealed" and _take_new_seal(verification.path, seals):
            renewed.append(verification.path)
    return renewed


def _take_todays_code(values: dict[str, Any]) -> bool:
    """Put today's code into the manifest of a record; returns whether that changed it."""
    manifest = values["manifest"]
    code = code_of(benchmark_of(values))
    if manifest["code"] == code:
        return False
    former = {name: manifest[name] for name in _MEASURED_ON if name in manifest}
    manifest |= {"code": code, "commit": commit()}
    manifest.setdefault("measured_on", former)
    return True


def _take_new_seal(path: Path, seals: dict[Path, tuple[str, str]]) -> bool:
    """Put the new seal of its result into a chosen configuration; returns whether it changed."""
    values = read_measurement(path)
    named = (values.get("evidence") or {}).get("result") or {}
    before, now = seals.get((path.parent / str(named.get("path", ""))).resolve(), ("", ""))
    if not now or named["digest"] != before:
        return False
    named["digest"] = now
    _seal(path, values)
    return True


def _seal(path: Path, values: dict[str, Any]) -> None:
    write_measurement(path, values, beside=[path.parent / name for name in values["files"]])
