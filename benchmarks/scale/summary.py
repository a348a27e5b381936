"""Costs by size, the laws fitted to them, and what these say of sizes that nobody measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.scale.cells import KINDS
from searchlab.studies.index.recall import fastest_at
from searchlab.studies.vectors.scaling import Estimate, PowerLaw, fit_power_law

RECALL = 0.99
AT_MOST_MS = 1.0
"""Median time at which recalls are compared, where times at equal recall are not all there is."""
OURS = "searchlab-clustered"
# Of a point; records of before 30 November 2026 do not tell the least recall of any query.
_FIGURES = ("recall", "least_recall", "p50_ms", "p99_ms")
PLANNED = (10_000_000, 100_000_000, 1_000_000_000)
MACHINES_GB = (64, 256)
# Part of a machine's memory that an index may take: the rest is for rows on their way and requests.
_USABLE = 0.75
# A caption query that takes longer is noticeable beside the time to embed its text.
PATIENCE_MS = 50
# Least exponents: a fit over small sizes may not go below them. Every row adds the same bytes and
# must be read to build; a search reads the centres of all lists, about the square root of the rows.
LEAST = {"memory_mib": 1.0, "stored_mib": 1.0, "build_cpu_s": 1.0, "p50_ms": 0.5, "p99_ms": 0.5}
COSTS = {
    "build_cpu_s": "s of one processor to build",
    "memory_mib": "MiB of memory",
    "stored_mib": "MiB on disk, vectors included",
    "p50_ms image none": "ms of a query like a photo, median",
    "p99_ms image none": "ms of a query like a photo, p99",
    "p50_ms text none": "ms of a query like a caption, median",
    "p99_ms text none": "ms of a query like a caption, p99",
}


def at_recall(points: Sequence[Mapping[str, Any]], one_setting: int) -> dict[str, float]:
    """Pick for each kind and filter the fastest point that reaches the recall.

    Args:
        points: The points of one system at one size.
        one_setting: An effort; its point is picked too, named `one setting: `.
    """
    metrics: dict[str, float] = {}
    for kind in KINDS:
        for within in dict.fromkeys(point["filter"] for point in points):
            cell = [p for p in points if (p["queries"], p["filter"]) == (kind, within)]
            place = f"{kind} {within}"
            metrics[f"best recall {place}"] = max(point["recall"] for point in cell)
            fastest = fastest_at(cell, RECALL)
            picked = {"": fastest}
            picked["one setting: "] = next(
                (p for p in cell if p["effort"] in (None, one_setting)), fastest
            )
            for name, point in picked.items():
                if point is not None:
                    for figure in _FIGURES:
                        if figure in point:
                            metrics[f"{name}{figure} {place}"] = point[figure]
    return metrics


def recall_in_time(points: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Pick for each kind of query, without a filter, the highest recall within `AT_MOST_MS`."""
    recalls: dict[str, float] = {}
    for point in points:
        if point["filter"] == "none" and point["p50_ms"] <= AT_MOST_MS:
            name = f"recall in {AT_MOST_MS:g} ms {point['queries']} none"
            recalls[name] = max(point["recall"], recalls.get(name, 0.0))
    return recalls


def make_rows(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Make a row of each record, by system and size."""
    rows = [
        {"system": one["parameters"]["of"], "n_photos": one["parameters"]["n_photos"]}
        | dict(one["metrics"])
        | recall_in_time(one.get("points", ()))
        for one in records
    ]
    order = list(dict.fromkeys(row["system"] for row in rows))
    return sorted(rows, key=lambda row: (order.index(row["system"]), row["n_photos"]))


def fit_laws(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fit every cost of every system that was measured at three sizes or more."""
    laws = []
    for system in dict.fromkeys(row["system"] for row in rows):
        for cost in COSTS:
            measured = [row for row in rows if row["system"] == system and row.get(cost, 0) > 0]
            if len(measured) > 2:
                ns = [row["n_photos"] for row in measured]
                values = [row[cost] for row in measured]
                law = fit_power_law(ns, values)
                laws.append({"system": system, "cost": cost, **_to_dict(law), "measured": values})
    return laws


def _to_dict(law: PowerLaw) -> dict[str, Any]:
    return {
        "exponent": law.exponent._asdict(),
        "scale": law.scale,
        "ns": list(law.ns),
        "spread": law.spread,
    }


@dataclass(frozen=True)
class Forecast:
    """A cost beyond the sizes that were measured: it grows from the largest of them by its law.

    Attributes:
        n: The largest size that was measured.
        cost: The cost at that size.
        exponent: Exponent of the law, at least that of `LEAST`.
    """

    n: float
    cost: float
    exponent: Estimate

    @classmethod
    def of(cls, fit: Mapping[str, Any]) -> Forecast:
        """Take a row of `fit_laws`."""
        least = next(part for name, part in LEAST.items() if fit["cost"].startswith(name))
        exponent = Estimate(*(max(fit["exponent"][end], least) for end in Estimate._fields))
        return cls(fit["ns"][-1], fit["measured"][-1], exponent)

    def at(self, n: float) -> Estimate:
        """Return what `n` photos would cost."""
        mean, *ends = (self.cost * (n / self.n) ** exponent for exponent in self.exponent)
        return Estimate(mean, min(ends), max(ends))

    def reaches(self, cost: float) -> float:
        """Return the number of photos that cost so much."""
        return float(self.n * (cost / self.cost) ** (1 / self.exponent.mean))


def plan(laws: Sequence[Mapping[str, Any]], *, dim: int) -> list[dict[str, Any]]:
    """Say what our index would take at sizes that were not measured, from the laws.

    Args:
        laws: As `fit_laws` returns them.
        dim: Components of a row.

    Returns:
        For each size: memory, disk, build and time of a query on one machine as [mean, low, high],
        how many machines of each size hold it, and the time of a query when it is spread over them.
    """
    ours = {law["cost"]: Forecast.of(law) for law in laws if law["system"] == OURS}
    needed = ("memory_mib", "stored_mib", "build_cpu_s", "p50_ms text none")
    if not all(cost in ours for cost in needed):
        return []
    rows = []
    for n in PLANNED:
        memory_gb, disk_gb = (
            _scale(ours[cost].at(n), 2**20 / 1e9) for cost in ("memory_mib", "stored_mib")
        )
        row: dict[str, Any] = {
            "n_photos": n,
            "extrapolated": n > ours["memory_mib"].n,
            "times_the_largest_measured": n / ours["memory_mib"].n,
            "dim": dim,
            "memory_gb": memory_gb,
            "disk_gb": disk_gb,
            "build_cpu_h": _scale(ours["build_cpu_s"].at(n), 1 / 3600),
        }
        for kind in KINDS:
            row[f"p50_ms_{kind}"] = _scale(ours[f"p50_ms {kind} none"].at(n), 1)
        for size in MACHINES_GB:
            machines = math.ceil(memory_gb[0] / (_USABLE * size))
            row[f"machines_of_{size}_gb"] = machines
            spread = ours["p50_ms text none"].at(n / machines)
            row[f"p50_ms_text_over_{size}_gb_machines"] = _round(spread.mean)
        row["verdict"] = _verdict(row)
        rows.append(row)
    for size in MACHINES_GB:
        most = ours["memory_mib"].reaches(_USABLE * size * 1e9 / 2**20)
        rows.append(_plan_largest(ours, most, f"the most that one machine of {size} GB holds"))
    most = ours["p50_ms text none"].reaches(PATIENCE_MS)
    rows.append(
        _plan_largest(ours, most, f"the most that one processor searches in {PATIENCE_MS} ms")
    )
    return rows


def _plan_largest(ours: Mapping[str, Forecast], n: float, verdict: str) -> dict[str, Any]:
    return {
        "n_photos": _round(n),
        "extrapolated": n > ours["memory_mib"].n,
        "memory_gb": _scale(ours["memory_mib"].at(n), 2**20 / 1e9),
        "p50_ms_text": _scale(ours["p50_ms text none"].at(n), 1),
        "build_cpu_h": _scale(ours["build_cpu_s"].at(n), 1 / 3600),
        "verdict": f"{verdict}; beyond it, several that each hold a part",
    }


def _verdict(row: Mapping[str, Any]) -> str:
    slow = row["p50_ms_text"][0] > PATIENCE_MS
    why = f", in parts: one scan would take more than {PATIENCE_MS} ms" if slow else ""
    for size in MACHINES_GB:
        if row[f"machines_of_{size}_gb"] == 1:
            return f"one machine of {size} GB{why}"
    n = row[f"machines_of_{MACHINES_GB[-1]}_gb"]
    return f"a distributed engine, or {n} machines that each hold a part{why}"


def _scale(estimate: Estimate, factor: float) -> list[float]:
    return [_round(factor * part) for part in estimate]


def _round(value: float) -> float:
    # Three digits: more would claim more than a fit can say.
    return float(f"{value:.3g}") if math.isfinite(value) else 1e308


def format_summary(
    rows: Sequence[Mapping[str, Any]],
    laws: Sequence[Mapping[str, Any]],
    planned: Sequence[Mapping[str, Any]],
    missing: Mapping[str, str],
) -> str:
    """Format the figures as text."""
    columns = ("build_cpu_s", "build_s", "memory_mib", "stored_mib")
    columns += tuple(f"p50_ms {kind} none" for kind in KINDS)
    lines = [f"{'':22}{'photos':>12}" + "".join(f"{c.replace(' none', ''):>14}" for c in columns)]
    for row in rows:
        cells = "".join(f"{_format(row.get(column)):>14}" for column in columns)
        lines.append(f"{row['system']:22}{row['n_photos']:>12,}{cells}")
    lines += [
        f"{law['system']}: {law['cost']} grows as n ** {law['exponent']['mean']:.2f} "
        f"[{law['exponent']['low']:.2f}, {law['exponent']['high']:.2f}]"
        for law in laws
    ]
    lines += [f"{row.get('n_photos', 0):,.0f} photos: {row['verdict']}" for row in planned]
    return "\n".join([*lines, *(f"{name}: {why}" for name, why in missing.items())])


def _format(value: float | None) -> str:
    return "not reached" if value is None else f"{value:,.2f}"
