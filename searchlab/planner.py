"""The planner: which way of answering a query costs least, by measured costs."""

from __future__ import annotations

from searchlab.config import Config
from searchlab.indexes import VectorIndex
from searchlab.indexes.hnsw import walk_length
from searchlab.queries import Mode, Query, QueryPlan


def make_plan(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> QueryPlan:
    """Choose how a query is answered.

    Args:
        query: What is asked.
        index: What would answer it.
        config: With `step_rows`, the measured cost of a graph step in scored photos.
        n_allowed: Photos that the filter lets through.
    """
    mode, reason = _mode(query, index, config, n_allowed)
    scored_by = f"{config.model}, calibration {config.calibration.source}"
    return QueryPlan(
        mode=mode,
        n_photos=len(index),
        n_allowed=n_allowed,
        conditions=query.filter.describe(),
        reason=reason,
        scored_by="every photo scores 1" if mode == "browse" else scored_by,
    )


def _mode(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> tuple[Mode, str]:
    if query.kind is None:
        order = "date, then photo_id" if query.sort_by == "newest" else "photo_id"
        return "browse", f"no text and no picture, so photos come by {order}"
    if not index.approximate:
        return "exact", f"the {config.index} index scores every allowed photo"
    dated = query.sort_by == "newest" and query.limit is None
    if query.score_threshold is not None or dated:
        return "exact", "a threshold or a date order needs the score of every photo"
    steps = walk_length(config.depth, n_allowed / max(len(index), 1))
    if n_allowed <= steps * config.step_rows:
        return "exact", f"scoring {n_allowed:,} photos costs less than {steps:,} graph steps"
    return "graph", f"{steps:,} graph steps cost less than scoring {n_allowed:,} photos"
