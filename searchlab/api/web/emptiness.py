"""Why a search has no results: what each condition leaves when it is dropped."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from litestar import Request

from searchlab.api.http.context import services_of
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.web.conditions import list_conditions
from searchlab.api.web.search_state import SearchState
from searchlab.models.protocol import Embeddings
from searchlab.search.queries import Query


class Way(NamedTuple):
    """A way out of an empty result: the condition to drop, and how many photos there are then."""

    label: str
    address: str
    n_photos: int


async def find_ways_out(
    request: Request[Any, Any, Any],
    snapshot: ServedSnapshot,
    state: SearchState,
    query: Query,
    reference: Embeddings | None,
) -> list[Way]:
    """Drop each condition of an empty search in turn; the most photos come first.

    These are no searches of the visitor's, so they are not counted.

    Args:
        request: The request for the page.
        snapshot: The snapshot that was searched.
        state: What the page shows.
        query: Its query.
        reference: (dim,) embedding of the query's picture, if it was uploaded.
    """

    def count(without: SearchState) -> int:
        if not without.is_search:
            return len(snapshot.engine.table)
        wider = dataclasses.replace(
            query, filter=without.filter, score_threshold=without.score_threshold
        )
        return snapshot.engine.rank(wider, 0, reference=reference).total

    def count_all() -> list[Way]:
        ways = [
            Way(condition.label, condition.without.address, count(condition.without))
            for condition in list_conditions(state, snapshot.engine.config)
        ]
        return sorted((way for way in ways if way.n_photos), key=lambda way: -way.n_photos)

    return await services_of(request).search_threads.run(count_all)
