"""Paging while a library changes: how often a reader sees a photo twice, or never.

`measure_churn` walks over made-up collections in all ways of `searchlab.studies.paging.walks`, and
`measure_library` over a real library, whose snapshots change on disk between two pages.
`benchmarks/paging/bench_paging.py` records both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.evaluation.datasets import bundled_root
from searchlab.evaluation.significance import bootstrap_interval
from searchlab.library.ingest import index_photos
from searchlab.library.library import Library, create_library
from searchlab.library.roots import check_root
from searchlab.models.shipped_calibration import calibrate
from searchlab.studies.paging.history import DIM, history
from searchlab.studies.paging.library_walks import library_walks
from searchlab.studies.paging.walks import (
    Turn,
    Walk,
    after_score,
    after_score_and_id,
    growing_k,
    make_pinned_turn,
    offset,
    presence,
    walk_history,
)

PEERS: dict[str, Turn] = {
    "offset": offset,
    "after score": after_score,
    "after score and id": after_score_and_id,
    "growing k": growing_k,
}
OURS = ("searchlab, exact", "searchlab, graph")
SCENARIOS = (
    *((changes, 0.0) for changes in (0.0, 0.001, 0.005, 0.01, 0.02, 0.05)),
    (0.0, 0.1),
    (0.01, 0.1),
)
"""Share of the photos that change between two pages, and chance that the model changes."""
LIBRARY_SCENARIOS = ((), (2,), (2, 7), tuple(range(1, 18)))
"""Pages after which a library has a new snapshot: never, once, twice, after every page."""
LIBRARY_TEXTS = ("animal", "flower", "a tree", "water", "red", "food", "a car", "house")
_RATES = ("duplicates", "gaps", "gone", "new")


def measure_churn(
    *,
    n_photos: int = 600,
    per_page: int = 20,
    n_histories: int = 20,
    n_queries: int = 10,
    scenarios: Sequence[Sequence[float]] = SCENARIOS,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure duplicates and gaps of every way of paging.

    Args:
        n_photos: Number of photos in each collection.
        per_page: Results per page.
        n_histories: Number of collections, each with its own changes, for each scenario.
        n_queries: Number of readers of each collection.
        scenarios: Pairs of `changes` and `swaps` for `history`.
        seed: Seed of all random choices.

    Returns:
        `parameters`, `metrics`, and `rows`: one for each scenario and way, with rates as means over
        walks and 95 % intervals that draw the walks of one collection together.
    """
    rows = []
    for changes, swaps in scenarios:
        walks: dict[str, list[dict[str, float]]] = {}
        for number in range(n_histories):
            rates_of = _walk(n_photos, per_page, n_queries, changes, swaps, seed=seed + number)
            for name, rates in rates_of.items():
                walks.setdefault(name, []).extend(rates)
        clusters = [str(number) for number in range(n_histories) for _ in range(n_queries)]
        for name, rates in walks.items():
            rows.append({"way": name, "changes": changes, "swaps": swaps, **_row(rates, clusters)})
    metrics: dict[str, float] = {"n_walks": n_histories * n_queries}
    for row in rows:
        case = f"{row['way']}, changes {row['changes']:g}, swaps {row['swaps']:g}"
        metrics |= {f"{rate}: {case}": row[rate]["mean"] for rate in ("duplicates", "gaps")}
    ours = [row for row in rows if row["way"] in OURS]
    n_collections = n_histories * len(scenarios)
    metrics |= {
        "searchlab walks": sum(row["n_walks"] for row in ours),
        "searchlab walks with a fault": sum(row["n_faulty"] for row in ours),
        # Upper bound, at 95 %, of the share of collections with a fault if none of these has one;
        # walks over one collection are not independent evidence.
        "faulty at most where none was": round(1 - 0.05 ** (1 / n_collections), 6),
    }
    return {
        "parameters": {
            "kind": "churn",
            "n_photos": n_photos,
            "per_page": per_page,
            "n_histories": n_histories,
            "n_queries": n_queries,
            "scenarios": [list(scenario) for scenario in scenarios],
            "seed": seed,
        },
        "metrics": metrics,
        "rows": rows,
    }


def _walk(
    n_photos: int, per_page: int, n_queries: int, changes: float, swaps: float, *, seed: int
) -> dict[str, list[dict[str, float]]]:
    n_states = -(-n_photos // per_page)
    states, centres = history(n_photos, n_states, changes=changes, swaps=swaps, seed=seed)
    rng = np.random.default_rng([seed, 1])
    nearest = centres[rng.integers(len(centres), size=n_queries)]
    looks = nearest + 0.5 * rng.standard_normal((n_queries, DIM))
    indexes = zip(OURS, ("exact", "hnsw"), strict=True)
    ways = {
        name: make_pinned_turn(states[0], looks, index=index) for name, index in indexes
    } | PEERS
    present = presence([state.photos for state in states])
    walks = walk_history(states, looks, ways, per_page=per_page)
    return {name: [walk.rates(present) for walk in some] for name, some in walks.items()}


def _row(rates: Sequence[Mapping[str, float]], clusters: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"n_walks": len(rates)}
    row["n_faulty"] = sum(1 for one in rates if one["duplicates"] or one["gaps"] or one["gone"])
    for rate in _RATES:
        interval = bootstrap_interval([one[rate] for one in rates], clusters=clusters)
        row[rate] = {part: round(value, 6) for part, value in interval._asdict().items()}
    return row


def measure_library(
    *,
    texts: Sequence[str] = LIBRARY_TEXTS,
    per_page: int = 20,
    leave: float = 0.1,
    scenarios: Sequence[Sequence[int]] = LIBRARY_SCENARIOS,
    seed: int = 0,
    library: Library | None = None,
) -> dict[str, Any]:
    """Measure duplicates and gaps of walks over a real library.

    Args:
        texts: Queries; each has a reader.
        per_page: Results per page.
        leave: Share of the photos that each new snapshot lacks.
        scenarios: For each scenario, the pages after which there is a new snapshot.
        seed: Seed of the photos that leave.
        library: A library to experiment on; one of the bundled photos in a temporary folder if left
            out.

    Returns:
        `parameters`, `metrics`, and `rows`: one for each scenario and way. `gaps` are those of the
        walks that came to an end, None if all were cut short.
    """
    with ExitStack() as stack:
        if library is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            library = _bundled_library(Path(folder))
        rows = []
        for changed_after in scenarios:
            walks, present = library_walks(
                library,
                texts,
                changed_after=changed_after,
                leave=leave,
                per_page=per_page,
                seed=seed,
            )
            for way, some in walks.items():
                row = {"way": way, "new_states": len(changed_after)}
                rows.append(row | _library_row(some, present))
    ours = [row for row in rows if row["way"] == "searchlab"]
    return {
        "parameters": {
            "kind": "library",
            "texts": list(texts),
            "per_page": per_page,
            "leave": leave,
            "scenarios": [list(pages) for pages in scenarios],
            "seed": seed,
        },
        "metrics": {
            "searchlab walks": sum(row["n_walks"] for row in ours),
            "searchlab walks cut short": sum(row["n_cut_short"] for row in ours),
            "searchlab walks with a fault": sum(row["n_faulty"] for row in ours),
        },
        "rows": rows,
    }


def _library_row(walks: Sequence[Walk], present: NDArray[np.bool_]) -> dict[str, Any]:
    rates = [walk.rates(present) for walk in walks]
    whole = [one for one, walk in zip(rates, walks, strict=True) if not walk.cut_short]
    return {
        "n_walks": len(walks),
        "n_cut_short": len(walks) - len(whole),
        "n_faulty": sum(1 for one in rates if one["duplicates"] or one["gone"])
        + sum(1 for one in whole if one["gaps"] and not (one["duplicates"] or one["gone"])),
        "duplicates": round(float(np.mean([one["duplicates"] for one in rates])), 6),
        "gaps": round(float(np.mean([one["gaps"] for one in whole])), 6) if whole else None,
    }


def _bundled_library(folder: Path) -> Library:
    library = create_library(folder)
    root = bundled_root() / "demo"
    photos = check_root(root / "images", records=root / "photos.jsonl")
    index_photos(library, [photos], config=calibrate(Config()))
    return library


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the figures of a record again, with the recorded parameters."""
    parameters = dict(measurement["parameters"])
    if parameters.pop("kind") == "library":
        return measure_library(**parameters)
    return measure_churn(**parameters)
