"""Target by target: the bound, what was measured, and whether it was reached.

    python -m benchmarks.targets.bench_targets  # seconds; it reads what is recorded
    python -m benchmarks.targets.bench_targets --smoke --out "$(mktemp -d)"

Writes results/targets/<dataset>/table.json. It measures nothing: `benchmarks/targets/goals.py`
names the record of each figure, and the bound. Figures that are not on record are "not measured" in
the table, and different machines are named.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.recording import bench_parser, record
from benchmarks.targets.goals import GOALS, Goal
from searchlab.errors import SearchlabError
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.reporting.lookup import Results

_GROUND = {
    "scale/scenes": "made",
    "scale/spliced": "real texts",
    "scale/mixed": "mixed of two real ones",
    "filters": "made",
    "facets": "made records",
    "opening": "made",
    "deep_pages/spliced": "real texts",
    "embedding": "bundled and drawn photos",
    "http": "bundled photos",
}
"""How the path of a record begins -> whether what was searched was made or real."""

RESULTS = Path(__file__).resolve().parents[2] / "results"


def row_of(goal: Goal, results: Results) -> dict[str, Any]:
    """Look one figure up; without a record the row has no `figure` and no `over_bound`."""
    row = {
        "target": goal.target,
        "what": goal.what,
        "bound": round(goal.bound, 4),
        "wanted": f"{'at most' if goal.sense == '<=' else 'at least'} {goal.bound:.3g}",
        "vectors": next((of for at, of in _GROUND.items() if goal.where.startswith(at)), "-"),
        "where": goal.where,
    }
    try:
        figure = goal.read(results)
        if goal.count is not None:
            row["queries"] = goal.count(results)
        machine = read_measurement(results.folder / goal.where)["manifest"]["machine"]
    except (SearchlabError, KeyError, TypeError, ZeroDivisionError) as error:
        why = error if isinstance(error, SearchlabError) else f"no {error}"
        return row | {"reached": "not measured", "why": str(why)[:160]}
    return row | {
        "figure": float(f"{figure:.3g}"),
        "over_bound": float(f"{figure / goal.bound:.3g}"),
        "reached": "yes" if goal.reached(figure) else "no",
        "machine": machine,
    }


def format_table(rows: Sequence[dict[str, Any]]) -> str:
    """Format the table as text."""
    lines = [f"{'':3}{'':62}{'wanted':>16}{'figure':>10}  reached"]
    for row in rows:
        figure = f"{row['figure']:g}" if "figure" in row else "-"
        lines.append(
            f"{row['target']:<3}{row['what']:62}{row['wanted']:>16}{figure:>10}  {row['reached']}"
        )
    return "\n".join(lines)


def make_table(results: Results) -> dict[str, Any]:
    """Look all figures up, and count those within their bound."""
    rows = [row_of(goal, results) for goal in GOALS]
    counts = {
        word: sum(row["reached"] == word for row in rows) for word in ("yes", "no", "not measured")
    }
    machines = sorted({row["machine"] for row in rows if "machine" in row})
    return {
        "parameters": {"machines": machines},
        "metrics": {f"reached: {word}": count for word, count in counts.items()},
        "rows": rows,
    }


def recompute(measurement: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the table again from the records that lie in a folder of results now."""
    return make_table(Results(folder))


def main() -> None:
    """Read, compare, record."""
    parser = bench_parser(__doc__, dataset="all")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder that is read")
    options = parser.parse_args()
    table = make_table(Results(options.results))
    record(options, "targets", "table", table | {"manifest": make_manifest("targets")})
    machines = table["parameters"]["machines"]
    sys.stdout.write(format_table(table["rows"]) + "\n")
    if len(machines) > 1:
        sys.stdout.write(f"measured on different machines: {'; '.join(machines)}\n")


if __name__ == "__main__":
    main()
