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
    """Say what the figures that are about to be recorded depend on, besides the configuration.

    Args:
        benchmark: A name in `STUDIES`, whose line says what code it runs.
        models: One entry for each plain model, with its hashes; see `models_of`.
        data: Hashes of photos, queries and judgments, by name; see `data_hashes`.
        seed: Of everything that was drawn.
        threads: That computed.
        batch_size: Of what was embedded together.
        dtype: Of the vectors.
        packages: Named besides `PACKAGES`, such as those of peers.

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
        specs: As `load_model` reads them; of a hybrid its parts are described.

    Returns:
        For each `spec`, `model_id`, and the hashes of `weights`, `preprocessing` and `tokenizer`.
    """
    plain = {part.name: part for spec in specs for part, _ in load_model(spec).parts}
    return [
        {"spec": name, "model_id": part.model_id, **part.fingerprints()}
        for name, part in plain.items()
    ]


def data_hashes(dataset: Dataset) -> dict[str, Any]:
    """Hash queries and judgments apart, however they were picked out of their dataset.

    Returns:
        `revision` of the dataset, 12 hex digits each for `queries` and `qrels`, and the `filter`
        where all queries have the same one.
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
    # What is left at its default is left out, so a field that comes later changes no hash.
    values = ((field, getattr(query, field.name)) for field in dataclasses.fields(query))
    return {field.name: repr(value) for field, value in values if value != field.default}


def _hash_of(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _without_folders(argument: str) -> str:
    """Cut absolute paths to their last name: where things lie on a machine changes no figure."""
    return re.sub(r"(^|[=:])/(?:[^/]*/)*", r"\1", argument)


@cache
def commit() -> str:
    """Return the git commit of the checkout that this package lies in; empty outside of one.

    A commit whose tracked files were changed since ends with `+`.
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
    """Return what timings depend on: system, processor and number of CPUs."""
    return f"{platform.system()}, {_processor()}, {os.cpu_count()} CPUs"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
