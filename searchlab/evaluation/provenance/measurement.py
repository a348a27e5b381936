"""Measurements on disk: JSON files with a seal that shows if a number was changed by hand.

<out>/<benchmark>/<dataset>/<name>.json     the figures, their parameters, what they depend on
<out>/<benchmark>/<dataset>/<name>.*        files that belong to it: runs, scores, charts
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from searchlab.errors import DataError, InputError
from searchlab.files import digest_of, sha256_of, write_atomically

SCHEMA = 2
_NEEDED = ("schema", "benchmark", "dataset", "name", "metrics", "manifest", "files", "digest")


def measurement_path(out: Path, benchmark: str, dataset: str, name: str) -> Path:
    """Return the path of a measurement in a folder of results."""
    return out / benchmark / dataset / f"{name}.json"


def write_measurement(
    path: Path, values: Mapping[str, Any], *, beside: Sequence[Path] = ()
) -> Path:
    """Seal a measurement and write it, after the files that belong to it.

    Args:
        path: Path of the JSON file; see `measurement_path`.
        values: Plain values, with `benchmark`, `dataset`, `name`, `metrics` (name -> number) and
            `manifest` (see `make_manifest`); optional are `parameters`, `config` with `config_id`,
            and tables and curves under other names.
        beside: Files in the same folder that belong to it, already written.

    Returns:
        The path.

    Raises:
        InputError: A part is missing, a number is not finite, or a file lies in another folder.
    """
    ours = {"schema": SCHEMA, "files": {}, "digest": ""}
    # The schema comes first in the file.
    sealed: dict[str, Any] = {"schema": SCHEMA} | dict(values) | ours
    missing = [name for name in _NEEDED if name not in sealed]
    elsewhere = [str(file) for file in beside if file.parent != path.parent]
    if missing or elsewhere:
        msg = (
            f"a measurement must have {', '.join(_NEEDED)} and its files in {path.parent}, got "
            f"none of {missing} and files at {elsewhere}"
        )
        raise InputError(msg)
    sealed["files"] = {file.name: sha256_of(file) for file in sorted(beside)}
    try:
        # Encoded and decoded, as JSON turns keys into strings and tuples into lists.
        sealed = json.loads(json.dumps(sealed, allow_nan=False))
        sealed["digest"] = digest_of(sealed)
    except ValueError as error:
        msg = f"a measurement must hold finite numbers, got {error} in {path}; leave them out"
        raise InputError(msg) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(sealed, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode())
    return path


def read_measurement(path: Path | str) -> dict[str, Any]:
    """Read a measurement, after checking its seal.

    Raises:
        DataError: It is missing, damaged or of another schema, or it or a file that belongs to it
            was changed since it was written.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text, object_pairs_hook=_refuse_duplicates)
        if values["schema"] != SCHEMA:
            msg = f"schema {values['schema']}, this searchlab reads {SCHEMA}"
            raise ValueError(msg)
        missing = [name for name in _NEEDED if name not in values]
        if missing:
            msg = f"no {', '.join(missing)}"
            raise ValueError(msg)
        if values["digest"] != digest_of(values):
            msg = "figures that were changed after they were written"
            raise ValueError(msg)
        changed = [
            name
            for name, digest in values["files"].items()
            if not (path.parent / name).is_file() or sha256_of(path.parent / name) != digest
        ]
        if changed:
            msg = f"{', '.join(changed)} beside it, missing or changed after it was written"
            raise ValueError(msg)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = f"{path} must hold a sealed measurement, got: {error}; measure again"
        raise DataError(msg) from error
    return dict(values)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # With two values under one name, the seal would cover one while a reader may see the other.
    values = dict(pairs)
    if len(values) < len(pairs):
        msg = "a name that stands twice in one object"
        raise ValueError(msg)
    return values
