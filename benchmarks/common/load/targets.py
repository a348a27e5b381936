"""Targets: what was to be reached, what was measured, and whether that is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def target(name: str, *, most: float, measured: float) -> dict[str, Any]:
    """Compare a figure with the most that it may be.

    Args:
        name: What is measured, and in what unit.
        most: Where the target lies.
        measured: What came out.
    """
    return {"target": name, "most": most, "measured": measured, "reached": measured <= most}


def show_targets(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print each with its verdict."""
    for row in rows:
        verdict = "reached" if row["reached"] else "NOT reached"
        print(
            f"{verdict:<12} {row['measured']:>9,.2f} of at most {row['most']:,.2f}  {row['target']}"
        )
    print()
