"""The planner: which way of answering a query costs least, and what it may be expected to find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from searchlab.config import Config
from searchlab.errors import count
from searchlab.search.color_order import describe_color_order
from searchlab.search.indexes import VectorIndex
from searchlab.search.queries import Query, QueryPlan


@dataclass(frozen=True)
class _Way:
    """One way of answering, as a `QueryPlan` says it."""

    mode: str
    reason: str
    effort: float | None = None
    recall: float | None = None
    basis: str = ""


def make_plan(
    query: Query,
    index: VectorIndex,
    config: Config,
    n_allowed: int,
    *,
    words: Callable[[], str] = str,
    reading: Callable[[], str] = str,
) -> QueryPlan:
    """Choose how a query is answered.

    Args:
        query: The query.
        index: What would answer it.
        config: Gives `tuning`, what was measured of this index; where nothing was measured, a
            graph's cost is estimated by `step_rows`.
        n_allowed: Photos that the filter lets through.
        words: Says what the words of the query found, where texts are read.
        reading: Says which of them the model does not know.
    """
    bounded = bound_by_date(query, config)
    way = _choose_way(bounded, index, config, n_allowed)
    scored_by = f"{config.model}, calibration {config.calibration.source}"
    return QueryPlan(
        mode=way.mode,
        n_photos=len(index),
        n_allowed=n_allowed,
        reason=way.reason,
        scored_by="every photo scores 1" if way.mode == "browse" else scored_by,
        effort=way.effort,
        expected_recall=1.0 if way.mode in ("browse", "exact") else way.recall,
        recall_basis=way.basis,
        newest_score=None if bounded is query else bounded.score_threshold,
        filter=query.filter,
        describe_words=words,
        describe_reading=reading,
    )


def bound_by_date(query: Query, config: Config) -> Query:
    """Limit a query sorted by date to relevant photos; return any other unchanged.

    Where words are sorted by date, what was added last would come first, however little it has to
    do with them. A threshold of the query's own counts instead, and scores that are no
    probabilities bound nothing.

    Args:
        query: The query.
        config: Gives `newest_score`.
    """
    has_words = query.kind in ("text", "both")
    if query.sort_by != "newest" or not has_words or query.score_threshold is not None:
        return query
    if not (config.newest_score and config.calibration.is_fitted):
        return query
    return replace(query, score_threshold=config.newest_score)


def _choose_way(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> _Way:
    if query.kind is None:
        order = "photo_id"
        if query.sort_by == "newest":
            order = "date, then photo_id"
        elif query.filter.has_color:
            order = f"{describe_color_order(query.filter)}, then photo_id"
        return _Way("browse", f"no text and no picture, so photos come by {order}")
    if not index.approximate:
        return _Way("exact", f"the {config.index} index scores every allowed photo")
    # Every photo reaches a threshold of 0.
    if query.sort_by == "newest" and query.limit is None and not query.score_threshold:
        return _Way("exact", "a date order needs only the scores of the photos that it shows")
    if query.score_threshold is not None:
        return _Way("exact", "a threshold needs every photo that reaches it")
    if query.min_recall == 1:
        return _Way("exact", "the query requires a recall of 1")
    measured = _plan_measured(query, index, config, n_allowed)
    return measured or _plan_unmeasured(query, index, config, n_allowed)


def _plan_measured(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> _Way | None:
    if config.measured is None or query.kind is None:
        return None
    photos = count(n_allowed, "photo")
    if not config.measured.reaches and n_allowed <= config.measured.n_photos:
        return _Way("exact", f"scoring {photos} costs least")
    # A query by an indexed photo leaves that photo out of its results; that is no filter.
    n_photos = len(index)
    share = 1.0 if n_allowed >= n_photos - 1 else n_allowed / n_photos
    least = max(config.recall, query.min_recall or 0)
    point = config.measured.expected(query.kind, share, least=least)
    if point is None:
        few = share < config.measured.shares[-1]
        return _Way("exact", f"scoring {photos} costs least") if few else None
    if n_allowed <= point.exact_below:
        most = f"measured up to {point.exact_below:,}"
        return _Way("exact", f"scoring {photos} costs no more than a search, {most}")
    if query.min_recall is not None and point.recall < query.min_recall:
        most = f"the highest that was measured is {point.recall:.3f}"
        return _Way("exact", f"the query requires a recall of {query.min_recall:g}, {most}")
    reason = f"costs less than scoring {photos}, measured from {point.exact_below:,} on"
    effort = index.describe_effort(point.effort)
    return _Way(
        index.mode, f"a search, {effort}, {reason}", point.effort, point.recall, point.basis
    )


def _plan_unmeasured(query: Query, index: VectorIndex, config: Config, n_allowed: int) -> _Way:
    if query.min_recall is not None:
        target = f"the query requires a recall of {query.min_recall:g}"
        return _Way("exact", f"{target}, and what a search finds was not measured")
    pays, reason = index.estimate(config, n_allowed)
    return _Way(index.mode if pays else "exact", reason)
