"""Targets: a bound, what was measured, and whether the bound is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def target(name: str, *, most: float, measured: float) -> dict[str, Any]:
    """Compare a figure with an upper bound; returns a row for the record.

    Args:
        name: What is measured, and in what unit.
        most: The upper bound.
        measured: The figure.
    """
    return {"target": name, "most": most, "measured": measured, "reached": measured <= most}


def show_targets(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print each target with its verdict."""
    for row in rows:
        verdict = "reached" if row["reached"] else "NOT reached"
        print(
            f"{verdict:<12} {row['measured']:>9,.2f} of at most {row['most']:,.2f}  {row['target']}"
        )
    print()
