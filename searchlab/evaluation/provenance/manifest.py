"""Manifest: everything that a figure depends on, recorded so that it can be checked again."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.errors import InputError
from searchlab.evaluation.provenance.registry import code_of
from searchlab.models import load_model

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset, LabelledQuery

_FIGURES_COME_FROM = ("searchlab", "benchmarks", "datasets", "pyproject.toml")
PACKAGES = ("hnswlib", "numpy", "onnxruntime", "pillow", "scikit-learn")


def make_manifest(
    benchmark: str,
    *,
    models: Sequence[Mapping[str, Any]] = (),
    data: Mapping[str, Any] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    batch_size: int | None = None,
    dtype: str = "float32",
    packages: Sequence[str] = (),
) -> dict[str, Any]:
    """Describe what the figures of a measurement depend on, besides the configuration.

    Args:
        benchmark: A name in `STUDIES`, whose line says what code it runs.
        models: One entry for each plain model, with its hashes; see `models_of`.
        data: Hashes of photos, queries and judgments, by name; see `data_hashes`.
        seed: Seed of all random choices.
        threads: Number of threads that computed.
        batch_size: Number of photos or texts that were embedded together.
        dtype: Type of the vectors' numbers.
        packages: Packages to name besides `PACKAGES`, such as libraries of a comparison.

    Returns:
        Plain values; `code`, `commit`, `date`, `machine`, `python`, `packages` and `command` are
        filled in, and `changes`: files that no commit has as they are.

    Raises:
        InputError: No line of `STUDIES` names the benchmark.
    """
    return {
        "code": code_of(benchmark),
        "commit": commit(),
        **({"changes": list(changed_files())} if changed_files() else {}),
        "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "python": platform.python_version(),
        "packages": _versions([*PACKAGES, *packages]),
        "command": " ".join([Path(sys.argv[0]).name, *map(_without_folders, sys.argv[1:])]),
        "models": [dict(model) for model in models],
        "data": dict(data or {}),
        "seed": seed,
        "threads": threads,
        "batch_size": batch_size,
        "dtype": dtype,
    }


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Name -> version; no figure depends on a package that is not installed, so it is left out."""
    versions = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def models_of(*specs: str) -> list[dict[str, str]]:
    """Describe the plain models that specs name, each once, in the order of the specs.

    Args:
        specs: Names for `load_model`; for a hybrid its parts are described.

    Returns:
        For each `spec`, `model_id`, and the hashes of `weights`, `preprocessing` and `tokenizer`.
    """
    plain = {part.name: part for spec in specs for part, _ in load_model(spec).parts}
    return [
        {"spec": name, "model_id": part.model_id, **part.fingerprints()}
        for name, part in plain.items()
    ]


def data_hashes(dataset: Dataset, *, recorded: str = "") -> dict[str, Any]:
    """Hash the queries and the judgments of a dataset.

    Args:
        dataset: The dataset.
        recorded: A recorded hash of queries. It is returned if these are the same queries, hashed
            when filters had fewer fields.

    Returns:
        `revision` of the dataset, 12 hex digits each for `queries` and `qrels`, and the `filter`
        if all queries have the same one.
    """
    queries = sorted(dataset.queries, key=lambda query: query.query_id)
    described = [_describe(query) for query in queries]
    older = _hash_of([_without_later(one) for one in described]) if recorded else None
    conditions = queries[0].filter
    shared = not conditions.is_empty and all(query.filter == conditions for query in queries)
    return {
        "revision": dataset.revision,
        "queries": recorded if older == recorded else _hash_of(described),
        "qrels": _hash_of([(i, sorted(dataset.qrels[i].items())) for i in sorted(dataset.qrels)]),
        **({"filter": conditions.to_dict()} if shared else {}),
    }


def _describe(query: LabelledQuery) -> dict[str, str]:
    # Defaults are left out, so that a new field changes no hash.
    values = ((field, getattr(query, field.name)) for field in dataclasses.fields(query))
    return {field.name: repr(value) for field, value in values if value != field.default}


def _without_later(described: Mapping[str, str]) -> dict[str, str]:
    """Describe a query as it was before filters had a palette and a last day, if it has none."""
    return {
        name: value.replace(" palette=(),", "").replace(", before_date=None", "")
        for name, value in described.items()
    }


def _hash_of(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _without_folders(argument: str) -> str:
    """Cut absolute paths to their last name, since folders of a machine change no figure."""
    return re.sub(r"(^|[=:])/(?:[^/]*/)*", r"\1", argument)


@cache
def commit() -> str:
    """Return the git commit of the checkout that this package lies in; empty outside of one.

    It ends with `+` if code or bundled data were changed since.
    """
    if checkout() is None:
        return ""
    described = _git("describe", "--always", "--abbrev=12").strip()
    return f"{described}+" if changed_files() else described


@cache
def is_lost(name: str) -> bool:
    """Tell whether the checkout that this package lies in has no such commit; False outside of one.

    Args:
        name: A commit as a manifest has it, without `+`.
    """
    if checkout() is None or not name:
        return False
    return not _git("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")


@cache
def checkout() -> Path | None:
    """Return the git checkout that this package lies in; None outside of one."""
    if not _git("ls-files", "--error-unmatch", __file__):
        return None
    return Path(_git("rev-parse", "--show-toplevel").strip())


@cache
def changed_files() -> tuple[str, ...]:
    """List code and data of the checkout that no commit has as they are, new files too.

    Documents and records are left out: no figure depends on them.
    """
    folder = checkout()
    if folder is None:
        return ()
    paths = [f":(top){name}" for name in _FIGURES_COME_FROM if (folder / name).exists()]
    lines = _git("status", "--porcelain", "--untracked-files=all", "--", *paths).splitlines()
    return tuple(sorted(line[3:] for line in lines))


def refuse_changes(out: Path) -> None:
    """Refuse to record into the checkout that the code comes from while that code is changed.

    Raises:
        InputError: `out` lies in the checkout, and there are changes that no commit has.
    """
    folder, changed = checkout(), changed_files()
    if folder is None or not changed or not out.resolve().is_relative_to(folder.resolve()):
        return
    listed = ", ".join(changed[:3]) + (" and more" if len(changed) > 3 else "")
    msg = (
        f"what is recorded in {out} must be measured with code that a commit has, got changes in "
        f"{listed}; commit them, or give --allow-changes, which marks the record"
    )
    raise InputError(msg)


def _git(*arguments: str) -> str:
    """Return what git prints about the folder of this package; empty if it fails."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


@cache
def machine() -> str:
    """Describe the machine, on which timings depend: system, processor and number of CPUs."""
    return f"{platform.system()}, {_processor()}, {os.cpu_count()} CPUs"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
