"""The planner: which way of answering a query costs least, and what it may be expected to find."""

from __future__ import annotations

from dataclasses import dataclass

from searchlab.config import Config
from searchlab.search.indexes import VectorIndex
from searchlab.search.indexes.hnsw import walk_length
from searchlab.search.queries import Mode, Query, QueryPlan

# Photos that a clustered index scores one by one in the time of a search through its lists, where
# nobody has measured it.
_FEW = 200
# In a library of no more photos than that, scoring all takes a tenth of a millisecond or two.
_SMALL = 4_000


@dataclass(frozen=True)
class _Way:
    """One way of answering, as `QueryPlan` tells it."""

    mode: Mode
    reason: str
    effort: float | None = None
    recall: float | None = None
    basis: str = ""


def make_plan(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> QueryPlan:
    """Choose how a query is answered.

    Args:
        query: What is asked.
        index: What would answer it.
        config: With `tuning`, what was measured of this index; where nothing was, with `step_rows`,
            the cost of a graph step in scored photos.
        n_allowed: Photos that the filter lets through.
    """
    way = _way(query, index, config, n_allowed)
    scored_by = f"{config.model}, calibration {config.calibration.source}"
    return QueryPlan(
        mode=way.mode,
        n_photos=len(index),
        n_allowed=n_allowed,
        conditions=query.filter.describe(),
        reason=way.reason,
        scored_by="every photo scores 1" if way.mode == "browse" else scored_by,
        effort=way.effort,
        expected_recall=1.0 if way.mode in ("browse", "exact") else way.recall,
        recall_basis=way.basis,
    )


def _way(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> _Way:
    if query.kind is None:
        order = "date, then photo_id" if query.sort_by == "newest" else "photo_id"
        return _Way("browse", f"no text and no picture, so photos come by {order}")
    if not index.approximate:
        return _Way("exact", f"the {config.index} index scores every allowed photo")
    if query.score_threshold is not None:
        return _Way("exact", "a threshold needs every photo that reaches it")
    if query.sort_by == "newest" and query.limit is None:
        return _Way("exact", "a date order needs only the scores of the photos that it shows")
    if query.min_recall == 1:
        return _Way("exact", "a recall of 1 is asked for")
    return _tuned(query, index, config, n_allowed) or _untuned(query, index, config, n_allowed)


def _tuned(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> _Way | None:
    if config.measured is None or query.kind is None:
        return None
    if not config.measured.reaches and n_allowed <= config.measured.n_photos:
        return _Way("exact", f"scoring {n_allowed:,} photos costs least")
    # The photo that a query brings is out of its own results, and that is no filter.
    share = 1.0 if n_allowed >= len(index) - 1 else n_allowed / len(index)
    least = max(config.recall, query.min_recall or 0)
    found = config.measured.expected(query.kind, share, least=least)
    if found is None:
        few = share < config.measured.shares[-1]
        return _Way("exact", f"scoring {n_allowed:,} photos costs least") if few else None
    if n_allowed <= found.exact_below:
        most = f"measured up to {found.exact_below:,}"
        return _Way("exact", f"scoring {n_allowed:,} photos costs no more than a search, {most}")
    if query.min_recall is not None and found.recall < query.min_recall:
        most = f"the most that was measured is {found.recall:.3f}"
        return _Way("exact", f"a recall of {query.min_recall:g} is asked for and {most}")
    reason = f"costs less than scoring {n_allowed:,} photos, measured from {found.exact_below:,} on"
    effort = f"asked for a recall of {found.effort:g}"
    if config.index == "hnsw":
        effort = f"ef {found.effort:g}"
    mode: Mode = "graph" if config.index == "hnsw" else "clustered"
    return _Way(mode, f"a search, {effort}, {reason}", found.effort, found.recall, found.basis)


def _untuned(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> _Way:
    if query.min_recall is not None:
        asked = f"a recall of {query.min_recall:g} is asked for"
        return _Way("exact", f"{asked} and what a search finds was not measured")
    if config.index == "clustered":
        if n_allowed <= _FEW or len(index) <= _SMALL:
            reason = f"scoring {n_allowed:,} photos costs no more than a search of the clusters"
            return _Way("exact", reason)
        reason = f"a search of the clusters costs less than scoring {n_allowed:,} photos"
        return _Way("clustered", reason)
    steps = walk_length(config.depth, n_allowed / max(len(index), 1))
    if n_allowed <= steps * config.step_rows:
        reason = f"scoring {n_allowed:,} photos costs less than {steps:,} graph steps"
        return _Way("exact", reason)
    return _Way("graph", f"{steps:,} graph steps cost less than scoring {n_allowed:,} photos")
