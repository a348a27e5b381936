"""Study: how the figures of one benchmark are computed, and which of its records are again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from searchlab.errors import NotFoundError
from searchlab.evaluation.provenance.tolerances import Tolerance

Recompute: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
Summarise: TypeAlias = Callable[[dict[str, Any], Path], dict[str, Any]]

TABLES = ("summary", "table")
"""Names of records that are made from other records."""


@dataclass(frozen=True)
class Study:
    """How the figures of one benchmark are computed.

    Attributes:
        code: Dotted names of modules; the figures depend on these and on what they import.
        recompute: `"module:function"`, which takes a recorded measurement and returns figures that
            must equal the recorded ones of the same names, so without times.
        again: Which figures it computes again, in words.
        sealed: Why the figures, or those that `recompute` leaves out, are not computed again.
        summary: `"module:function"`, which takes a recorded table of other records and the folder
            of results, and returns the table's figures, made from those records once more.
        only: The records that `recompute` is for, as patterns of `dataset/name`; all if empty.
        tolerances: How far figures may be off on another processor.
        shares_machines: Whether tasks of it may run on machines that do other work too; never
            where times are what it measures.
    """

    code: tuple[str, ...]
    recompute: str = ""
    again: str = ""
    sealed: str = ""
    summary: str = ""
    only: tuple[str, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    shares_machines: bool = False

    def computes(self, dataset: str, name: str) -> bool:
        """Tell whether figures of a record are computed again, by whichever way."""
        if not (self.recompute or self.summary):
            return bool(self.again)
        return self._makes(name) or self.recomputes(dataset, name)

    def load_recompute(self, dataset: str, name: str) -> Recompute | None:
        """Import the function that computes a record's figures again; None if there is none."""
        return _load(self.recompute) if self.recomputes(dataset, name) else None

    def load_summary(self, name: str) -> Summarise | None:
        """Import the function that makes a table again; None if the record is no table."""
        return _load(self.summary) if self._makes(name) else None

    def _makes(self, name: str) -> bool:
        return bool(self.summary) and name in TABLES

    def recomputes(self, dataset: str, name: str) -> bool:
        """Tell whether a record is computed again from its data, and not from other records."""
        patterns = self.only or ("*",)
        return bool(self.recompute) and any(
            fnmatchcase(f"{dataset}/{name}", pattern) for pattern in patterns
        )


def _load(function: str) -> Any:
    """Import a function; benchmarks are found in the checkout that this package lies in.

    Raises:
        NotFoundError: It is a benchmark's, and this is no checkout.
    """
    module, _, name = function.partition(":")
    root = Path(__file__).parents[3]
    if not module.startswith("benchmarks"):
        return getattr(importlib.import_module(module), name)
    if not (root / "benchmarks").is_dir():
        msg = f"a checkout with benchmarks/ is needed to compute it again, got none at {root}"
        raise NotFoundError(msg)
    sys.path.insert(0, str(root))
    try:
        return getattr(importlib.import_module(module), name)
    finally:
        sys.path.remove(str(root))
