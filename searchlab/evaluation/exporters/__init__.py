"""Exporters: a leaderboard in the form that another tool reads, one small file each.

To add one: write a file with a function that takes a `Report` and returns what it wrote, and a line
below.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from searchlab.errors import InputError

if TYPE_CHECKING:
    from searchlab.evaluation.reports import Report

Exporter: TypeAlias = "Callable[[Report, Path], list[str]]"
"""Writes a report into a folder, or to where the tool's own settings say; says what it wrote."""

EXPORTERS: Final = {
    "mteb": "searchlab.evaluation.exporters.mteb:export_mteb",
    "card": "searchlab.evaluation.exporters.model_card:export_cards",
    "mlflow": "searchlab.evaluation.exporters.mlflow:export_mlflow",
    "wandb": "searchlab.evaluation.exporters.wandb:export_wandb",
}
"""Name of a form -> the function that writes it."""


def load_exporter(name: str) -> Exporter:
    """Return the function that writes a form.

    Raises:
        InputError: There is no such form.
    """
    if name not in EXPORTERS:
        msg = f"a form must be one of {', '.join(EXPORTERS)}, got {name!r}"
        raise InputError(msg)
    module, _, function = EXPORTERS[name].partition(":")
    exporter: Exporter = getattr(importlib.import_module(module), function)
    return exporter


def plain_metric(name: str) -> str:
    """Write a metric's name as tools do that take no `@` or `/`.

    >>> plain_metric("recall@10/l2")
    'recall_at_10_l2'
    """
    return name.replace("@", "_at_").replace("/", "_")
