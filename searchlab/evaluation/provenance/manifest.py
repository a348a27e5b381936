"""Manifest: everything that a figure depends on, recorded so that it can be checked again."""

from __future__ import annotations

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

from searchlab.evaluation.provenance.registry import code_of
from searchlab.models import load_model

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset, LabelledQuery

PACKAGES = ("hnswlib", "numpy", "onnxruntime", "pillow", "ranx", "scikit-learn")


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
        filled in.

    Raises:
        InputError: No line of `STUDIES` names the benchmark.
    """
    return {
        "code": code_of(benchmark),
        "commit": commit(),
        "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in (*PACKAGES, *packages)},
        "command": " ".join([Path(sys.argv[0]).name, *map(_without_folders, sys.argv[1:])]),
        "models": [dict(model) for model in models],
        "data": dict(data or {}),
        "seed": seed,
        "threads": threads,
        "batch_size": batch_size,
        "dtype": dtype,
    }


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


def data_hashes(dataset: Dataset) -> dict[str, Any]:
    """Hash the queries and the judgments of a dataset.

    Returns:
        `revision` of the dataset, 12 hex digits each for `queries` and `qrels`, and the `filter`
        if all queries have the same one.
    """
    queries = sorted(dataset.queries, key=lambda query: query.query_id)
    conditions = queries[0].filter
    shared = not conditions.is_empty and all(query.filter == conditions for query in queries)
    return {
        "revision": dataset.revision,
        "queries": _hash_of([_describe(query) for query in queries]),
        "qrels": _hash_of([(i, sorted(dataset.qrels[i].items())) for i in sorted(dataset.qrels)]),
        **({"filter": conditions.to_dict()} if shared else {}),
    }


def _describe(query: LabelledQuery) -> dict[str, str]:
    # Defaults are left out, so that a new field changes no hash.
    values = ((field, getattr(query, field.name)) for field in dataclasses.fields(query))
    return {field.name: repr(value) for field, value in values if value != field.default}


def _hash_of(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _without_folders(argument: str) -> str:
    """Cut absolute paths to their last name, since folders of a machine change no figure."""
    return re.sub(r"(^|[=:])/(?:[^/]*/)*", r"\1", argument)


@cache
def commit() -> str:
    """Return the git commit of the checkout that this package lies in; empty outside of one.

    It ends with `+` if tracked files were changed since.
    """
    folder = Path(__file__).parent
    git = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=+"]
    try:
        inside = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", __file__],
            capture_output=True,
            check=False,
        )
        if inside.returncode:
            return ""
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
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
