"""Walks through all pages of a query while the collection changes, in several ways of paging.

Photos come and go between pages, and sometimes another version of the model embeds everything
again. A *duplicate* is a result that the reader got before; a *gap* is a photo that was in the
collection at every page and that the reader never got. Beside searchlab's cursors, over exact
search and over the graph, the walks use the ways of paging that are common elsewhere:

- `offset`: page n is the places from n x size on of the current ranking;
- `after score`: the photos that score below the last result of the page before;
- `after score and id`: the same, and of equal scores the photos with a higher id;
- `growing k`: the graph returns k = 20, then 40 photos, of which the first 20 are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.photos.table import CODED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, PhotoTable
from searchlab.search.engine import SearchEngine
from searchlab.search.indexes import HnswIndex, build_index
from searchlab.search.indexes.exact import nearest_rows
from searchlab.search.queries import Query
from searchlab.studies.paging.history import DIM, CollectionState, Photos

# Small on purpose: so sparse a graph shows with 600 photos what others show with millions.
_GRAPH: dict[str, Any] = {"M": 6, "ef_construction": 40, "ef_search": 20, "step_rows": 0}


@dataclass(frozen=True, eq=False)
class Moment:
    """The first state of a collection, the current one, and the graph of the current one."""

    first: CollectionState
    now: CollectionState
    graph: HnswIndex


Turn = Callable[[Moment, NDArray[np.float64], int, Any], tuple[Photos, Any]]
"""A way of paging: returns a page, and the token of the next page, None after the last.

Takes the moment, the (dim,) look to search for, results per page, and a token, None at first.
"""


def offset(
    moment: Moment, look: NDArray[np.float64], per_page: int, token: int | None
) -> tuple[Photos, int | None]:
    """Return a range of places of the current exact ranking."""
    start = token or 0
    ranked, _ = _rank(moment.now, look)
    end = start + per_page
    return ranked[start:end], end if end < len(ranked) else None


def after_score(
    moment: Moment, look: NDArray[np.float64], per_page: int, token: float | None
) -> tuple[Photos, float | None]:
    """Go on below the last score, in the current exact ranking."""
    ranked, scores = _rank(moment.now, look)
    is_later = np.ones(len(ranked), dtype=np.bool_) if token is None else scores < token
    page, later_scores = ranked[is_later][:per_page], scores[is_later]
    return page, float(later_scores[per_page - 1]) if len(later_scores) > per_page else None


def after_score_and_id(
    moment: Moment,
    look: NDArray[np.float64],
    per_page: int,
    token: tuple[float, int] | None,
) -> tuple[Photos, tuple[float, int] | None]:
    """Go on below the last score, and among equal scores after the last id."""
    ranked, scores = _rank(moment.now, look)
    is_later = np.ones(len(ranked), dtype=np.bool_)
    if token is not None:
        is_later = (scores < token[0]) | ((scores == token[0]) & (ranked > token[1]))
    page, later_scores = ranked[is_later][:per_page], scores[is_later]
    if len(later_scores) <= per_page:
        return page, None
    return page, (float(later_scores[per_page - 1]), int(page[-1]))


def growing_k(
    moment: Moment, look: NDArray[np.float64], per_page: int, token: int | None
) -> tuple[Photos, int | None]:
    """Ask the current graph for more and more photos, and drop the first ones."""
    start = token or 0
    end = start + per_page
    rows = moment.graph.search(moment.now.embed(look[np.newaxis]), end).rows[0]
    page = rows[start:end]
    page = page[page >= 0]
    return moment.now.photos[page], end if end < len(moment.now.photos) else None


def _rank(state: CollectionState, look: NDArray[np.float64]) -> tuple[Photos, NDArray[np.float32]]:
    query = state.embed(look[np.newaxis])[0]
    rows, scores = nearest_rows(state.vectors, query, len(state.photos))
    return state.photos[rows], scores


class _LooksModel:
    """In place of a model: the vector of the text `17` is that of look 17."""

    name = "looks"
    model_id = "looks"
    reads: Literal["image", "text"] = "image"
    input_size = 0
    dim = DIM

    def __init__(self, looks: Embeddings) -> None:
        self._looks = looks

    @property
    def parts(self) -> tuple[tuple[_LooksModel, float], ...]:
        return ((self, 1.0),)

    def fingerprints(self) -> dict[str, str]:
        return {"weights": "", "preprocessing": "", "tokenizer": ""}

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        return np.ascontiguousarray(self._looks[[int(text) for text in texts]])

    def encode_images(self, images: Sequence[Any]) -> Embeddings:
        msg = f"a model of looks reads no pictures, got {len(images)}"
        raise InputError(msg)


def make_pinned_turn(first: CollectionState, looks: NDArray[np.float64], *, index: str) -> Turn:
    """Make searchlab's way of paging: through the state of page 1, without photos that have left.

    Args:
        first: State of the collection at page 1.
        looks: (n_queries, dim) all looks that will be searched for.
        index: `exact` or `hnsw`.
    """
    config = Config(model="looks", model_id="looks", index=index, depth=50, **_GRAPH)
    engine = SearchEngine(
        _table(first.photos),
        build_index(first.vectors, config),
        _LooksModel(first.embed(looks)),
        config,
    )
    texts = {look.tobytes(): str(number) for number, look in enumerate(looks)}

    def turn(
        moment: Moment, look: NDArray[np.float64], per_page: int, token: str | None
    ) -> tuple[Photos, str | None]:
        live = np.isin(first.photos, moment.now.photos)
        page = engine.slice(
            None if token else Query(text=texts[look.tobytes()]),
            per_page=per_page,
            cursor=token,
            live=None if live.all() else live,
        )
        return first.photos[page.rows], page.next_cursor

    return turn


def _table(photos: Photos) -> PhotoTable:
    plain: dict[str, Any] = dict.fromkeys((*TEXT_COLUMNS, *CODED_COLUMNS), "")
    plain |= dict.fromkeys(NUMBER_COLUMNS, 0)
    rows = [plain | {"photo_id": f"{photo:09d}", "label": photo} for photo in photos.tolist()]
    return PhotoTable.from_rows([rows])


@dataclass
class Walk:
    """The pages that one reader got.

    Attributes:
        pages: Photos of each page, in order.
        cut_short: Whether a page was refused with an error, so that the walk ended early.
    """

    pages: list[Photos] = field(default_factory=list)
    cut_short: bool = False

    def rates(self, present: NDArray[np.bool_]) -> dict[str, float]:
        """Return the rates of faults.

        Args:
            present: (n_states, n_numbers) whether each photo was there; see `presence`.

        Returns:
            `duplicates` and `gone`: shares of the results that the reader got before, or that had
            left the collection; `gaps`: the share of the photos that were there at every page and
            that the reader never got; `new`: the share that the reader got of the photos that came
            during the walk and were there at its end.
        """
        times = np.minimum(np.arange(len(self.pages)), len(present) - 1)
        times_shown = np.zeros(present.shape[1], dtype=np.int64)
        n_gone = 0
        for page, time in zip(self.pages, times, strict=True):
            np.add.at(times_shown, page, 1)
            n_gone += int(np.count_nonzero(~present[time, page]))
        at_pages = present[times] if self.pages else present[:1]
        always, new = at_pages.all(axis=0), at_pages[-1] & ~at_pages[0]
        n_results = max(1, int(times_shown.sum()))
        return {
            "duplicates": float(np.maximum(times_shown - 1, 0).sum()) / n_results,
            "gaps": int(np.count_nonzero(always & (times_shown == 0))) / max(1, int(always.sum())),
            "gone": n_gone / n_results,
            "new": int(np.count_nonzero(new & (times_shown > 0))) / max(1, int(new.sum())),
        }


def presence(states: Sequence[Photos]) -> NDArray[np.bool_]:
    """Return (n_states, n_numbers) whether the photo of each number was in each state."""
    present = np.zeros((len(states), 1 + max(int(state.max()) for state in states)), dtype=np.bool_)
    for row, photos in zip(present, states, strict=True):
        row[photos] = True
    return present


def walk_history(
    states: Sequence[CollectionState],
    looks: NDArray[np.float64],
    ways: Mapping[str, Turn],
    *,
    per_page: int,
) -> dict[str, list[Walk]]:
    """Walk through all pages of each look in every way, with one state for each page.

    Args:
        states: States of the collection; the last one stays until all walks end.
        looks: (n_queries, dim) looks to search for.
        ways: Name -> way of paging.
        per_page: Results per page.

    Returns:
        For each way, a walk for each look.
    """
    walks = {name: [Walk() for _ in looks] for name in ways}
    tokens: dict[tuple[str, int], Any] = {
        (name, i): None for name in ways for i in range(len(looks))
    }
    graph, before = _graph(states[0]), states[0]
    for time in range(4 * len(states)):
        now = states[min(time, len(states) - 1)]
        if now is not before:
            graph = _next_graph(graph, before, now)
        moment, before = Moment(states[0], now, graph), now
        for name, place in list(tokens):
            page, token = ways[name](moment, looks[place], per_page, tokens[name, place])
            walks[name][place].pages.append(page)
            tokens[name, place] = token
            if token is None:
                del tokens[name, place]
        if not tokens:
            break
    return walks


def _graph(state: CollectionState) -> HnswIndex:
    build = {name: value for name, value in _GRAPH.items() if name != "step_rows"}
    return HnswIndex(state.vectors, labels=state.photos, **build)


def _next_graph(graph: HnswIndex, before: CollectionState, now: CollectionState) -> HnswIndex:
    if now.version != before.version:
        return _graph(now)
    return graph.update(now.vectors, now.photos)
