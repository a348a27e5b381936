"""SearchEngine: the one ranking code path, from notebook to endpoint.

A ranking is fixed by query, configuration and snapshot, and a page is a slice of it. The index
ranks the first `Config.depth` photos; what comes behind is ranked by exact score, so that every
photo that meets the filter can be paged to.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config, Curve
from searchlab.cursors import Cursor
from searchlab.errors import ExpiredCursorError, InputError, MismatchError
from searchlab.indexes import VectorIndex
from searchlab.indexes.exact import nearest_rows
from searchlab.models.canaries import Witness
from searchlab.models.protocol import Embedder, Embeddings, unit_rows
from searchlab.paging import Ranking, cut_page
from searchlab.photos import Photo
from searchlab.planner import make_plan
from searchlab.queries import (
    DEFAULT_PER_PAGE,
    MAX_PER_PAGE,
    Hit,
    Page,
    Query,
    QueryPlan,
    Slice,
    check_count,
)
from searchlab.tables import PhotoTable
from searchlab.text_vectors import TextVectors

_PARTS = ("filter", "embed", "search")


class SearchEngine:
    """Ranks the photos of one snapshot under one configuration.

    Attributes:
        table: The photos.
        index: Their vectors, in the order of the table.
        model: What embeds the queries.
        config: Every choice that can change a ranking.
        snapshot_id: Named by cursors.
        build_s: Seconds that building the index took, where it was built in memory.
    """

    def __init__(
        self,
        table: PhotoTable,
        index: VectorIndex,
        model: Embedder,
        config: Config,
        *,
        snapshot_id: str = "memory",
        key: bytes | None = None,
        thumbnail: Callable[[Photo], Path | None] | None = None,
        witness: Witness | None = None,
        texts: TextVectors | None = None,
    ) -> None:
        """Put together what belongs together.

        Args:
            table: The photos.
            index: Their vectors.
            model: The model that made the vectors.
            config: With the `model_id` of the model.
            snapshot_id: Name of this state of the library.
            key: Secret that signs cursors; one that nobody knows if left out.
            thumbnail: Finds the small picture of a photo.
            witness: What the model embedded when the photos were.
            texts: Vectors of query texts by the same model, to share with other engines.

        Raises:
            MismatchError: The parts are not of one library and one model.
        """
        if len(table) != len(index) or index.vectors.shape[1] != model.dim:
            msg = (
                f"table, index and model must agree, got {len(table)} photos, "
                f"vectors {index.vectors.shape} and dim {model.dim} of {model.name}"
            )
            raise MismatchError(msg)
        if config.model_id != model.model_id:
            msg = (
                f"queries must be embedded by the model of the photos, {config.model_id!r}, "
                f"got {model.model_id!r}; index the photos again with this model, or load that one"
            )
            raise MismatchError(msg)
        self.table = table
        self.index = index
        self.model = model
        self.config = config
        self.snapshot_id = snapshot_id
        self._key = key or secrets.token_bytes(32)
        self._thumbnail = thumbnail
        self._witness = witness or Witness({})
        self.build_s = 0.0
        self._texts = TextVectors(model) if texts is None else texts

    def warm(self, texts: Sequence[str]) -> None:
        """Embed query texts in one batch and keep their vectors."""
        self._witness.check(self.model, "text")
        self._texts.warm(texts)

    def _text_vector(self, text: str) -> Embeddings:
        self._witness.check(self.model, "text")
        return self._texts.of(text)

    def reference_vector(self, query: Query) -> Embeddings | None:
        """Return the (dim,) embedding of the query's picture; None if it brings none.

        Raises:
            NotFoundError: `photo_id` is not indexed.
            ImageError: The picture is refused.
        """
        if query.photo_id is not None:
            return _row(self.index.vectors, self.table.row_of(query.photo_id))
        if query.image is None:
            return None
        from searchlab.images import WORKING_SIDE, as_rgb, for_model

        self._witness.check(self.model, "image")
        side = self.model.input_size
        picture = for_model(as_rgb(query.image, min_side=max(WORKING_SIDE, side)), side)
        return _row(self.model.encode_images([picture]), 0)

    def query_vector(
        self, query: Query, *, reference: Embeddings | None = None
    ) -> Embeddings | None:
        """Return the (dim,) embedding that photos are ranked by; None if there are only conditions.

        Args:
            query: What is asked.
            reference: (dim,) embedding of the query's picture, if it is known already.
        """
        if query.kind is None:
            return None
        if query.kind == "text":
            return self._text_vector(query.text or "")
        picture = self.reference_vector(query) if reference is None else reference
        if picture is None or query.kind == "image":
            return picture
        weight = self.config.steering * query.text_alpha
        mixed = picture + weight * self._text_vector(query.text or "")
        return _row(unit_rows(mixed[np.newaxis]), 0)

    def allowed(self, query: Query) -> NDArray[np.bool_]:
        """Return (n_photos,) bool: the photos that a query may find."""
        mask = query.filter.mask(self.table)
        if query.photo_id is not None:
            mask[self.table.row_of(query.photo_id)] = False
        return mask

    def plan(self, query: Query) -> QueryPlan:
        """Say how a query would be answered, without answering it."""
        return make_plan(query, self.index, self.config, int(np.count_nonzero(self.allowed(query))))

    def rank(
        self, query: Query, k: int | None = None, *, reference: Embeddings | None = None
    ) -> Ranking:
        """Rank the photos for a query; this is what is evaluated and what is served.

        Args:
            query: What is asked.
            k: How much of the ranking is wanted; all of it if left out. The order of the first
                photos does not depend on it.
            reference: (dim,) embedding of the query's picture, if it is known already.

        Returns:
            min(k, total) photos, and the total.

        Raises:
            InputError: A value that the library does not know.
            NotFoundError: `photo_id` is not indexed.
        """
        if k is not None and k < 0:
            msg = f"k must be 0 or more, got {k}"
            raise InputError(msg)
        clock = [time.perf_counter()]
        mask = self.allowed(query)
        rows = np.flatnonzero(mask)
        plan = make_plan(query, self.index, self.config, len(rows))
        clock.append(time.perf_counter())
        vector = self.query_vector(query, reference=reference)
        clock.append(time.perf_counter())
        if vector is None:
            scores = np.ones(len(rows))
        else:
            kind = query.kind or "text"
            curve = self.config.calibration.curve(kind, text_alpha=query.text_alpha)
            wanted = query.limit if query.sort_by == "newest" else k
            wanted = wanted if query.score_threshold is None else None
            rows, scores = self._ranked(vector, curve, plan, mask, rows, wanted)
        total = plan.n_allowed
        if query.score_threshold is not None:
            near = scores >= query.score_threshold
            rows, scores, total = rows[near], scores[near], int(np.count_nonzero(near))
        if query.limit is not None and query.kind is not None:
            # The same results in either order: the nearest ones, however they are sorted.
            rows, scores = rows[: query.limit], scores[: query.limit]
        if query.sort_by == "newest":
            newest = np.lexsort((rows, -self.table.uploaded_days[rows].astype(np.int64)))
            rows, scores = rows[newest], scores[newest]
        total = total if query.limit is None else min(total, query.limit)
        stop = total if k is None else min(k, total)
        clock.append(time.perf_counter())
        passed = [1e3 * (end - start) for start, end in itertools.pairwise(clock)]
        timings = dict(zip(_PARTS, passed, strict=True))
        return Ranking(rows[:stop], scores[:stop], total, plan, timings)

    def _ranked(
        self,
        vector: Embeddings,
        curve: Curve,
        plan: QueryPlan,
        mask: NDArray[np.bool_],
        rows: NDArray[np.int64],
        k: int | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        wanted = plan.n_allowed if k is None else min(k, plan.n_allowed)
        if plan.mode == "exact" or not wanted:
            some = rows if len(rows) < len(mask) else None
            found, similar = nearest_rows(self.index.vectors, vector, wanted, rows=some)
        else:
            found, similar = self._graph_ranked(vector, mask, wanted)
        return found, np.round(curve(similar), 6)

    def _graph_ranked(
        self, vector: Embeddings, mask: NDArray[np.bool_], wanted: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        # Always the same depth, so that page one is the same however far a reader pages.
        head = self.index.search(vector[np.newaxis], self.config.depth, allowed=mask)
        found, similar = head.rows[0][head.rows[0] >= 0], head.scores[0][head.rows[0] >= 0]
        if wanted > len(found):
            behind = mask.copy()
            behind[found] = False
            rows = np.flatnonzero(behind)
            tail, tail_similar = nearest_rows(self.index.vectors, vector, len(rows), rows=rows)
            found = np.concatenate([found, tail])
            # A photo that the graph missed stands behind the head, and scores no more than it.
            similar = np.minimum.accumulate(np.concatenate([similar, tail_similar]))
        return found[:wanted], similar[:wanted]

    def slice(
        self,
        query: Query | str | None = None,
        *,
        per_page: int = DEFAULT_PER_PAGE,
        cursor: str | Cursor | None = None,
        audience: str = "",
        live: NDArray[np.bool_] | None = None,
        reference: Embeddings | None = None,
    ) -> Slice:
        """Answer a query page by page, as rows of the table; see `search`.

        Args:
            query: What is asked, or just its words; ignored where a cursor is given.
            per_page: 1 to 100 results a page; with a cursor the size of page 1 stays.
            cursor: `next_cursor` of the page before.
            audience: Account and operation that the cursors are bound to.
            live: (n_photos,) photos that are still there, all if left out; the others are passed
                over, and take no place of a page.
            reference: (dim,) embedding of the query's picture, if it is known already.
        """
        if cursor is not None:
            here = self._opened(cursor, audience)
        elif query is None:
            msg = "search must be given a query or a cursor, got neither"
            raise InputError(msg)
        else:
            asked = Query(text=query) if isinstance(query, str) else query
            if asked.image is not None and reference is None:
                reference = self.reference_vector(asked)
            here = Cursor(
                query=asked,
                vector=reference,
                position=0,
                per_page=check_count("per_page", per_page, MAX_PER_PAGE),
                snapshot_id=self.snapshot_id,
                config_id=self.config.config_id,
                audience=audience,
            )
        return cut_page(self.rank, here, live, key=self._key)

    def search(
        self,
        query: Query | str | None = None,
        *,
        per_page: int = DEFAULT_PER_PAGE,
        cursor: str | Cursor | None = None,
        audience: str = "",
    ) -> Page:
        """Answer a query page by page.

        Args:
            query: What is asked, or just its words; ignored where a cursor is given.
            per_page: 1 to 100 results a page; with a cursor the size of page 1 stays.
            cursor: `next_cursor` of the page before.
            audience: Account and operation that the cursors are bound to.

        Raises:
            InputError: A value out of range, or neither query nor cursor.
            CursorError: A cursor of another library, snapshot, configuration or audience.
            NotFoundError: `photo_id` is not indexed.
        """
        return self.page(self.slice(query, per_page=per_page, cursor=cursor, audience=audience))

    def page(self, found: Slice) -> Page:
        """Read the records of a slice."""
        pairs = zip(found.rows.tolist(), found.scores.tolist(), strict=True)
        return Page(
            hits=tuple(self.hit(row, score) for row, score in pairs),
            start=found.start,
            per_page=found.per_page,
            next_cursor=found.next_cursor,
            plan=found.plan,
        )

    def _opened(self, cursor: str | Cursor, audience: str) -> Cursor:
        if isinstance(cursor, str):
            cursor = Cursor.unseal(cursor, self._key, audience=audience)
        ours = (self.snapshot_id, self.config.config_id)
        if (cursor.snapshot_id, cursor.config_id) != ours:
            theirs = (cursor.snapshot_id, cursor.config_id)
            msg = (
                f"cursor must belong to snapshot and configuration {' '.join(ours)}, "
                f"got one of {' '.join(theirs)}; the library has changed since, search again"
            )
            raise ExpiredCursorError(msg)
        return cursor

    def hit(self, row: int, score: float) -> Hit:
        """Build the result at a row."""
        photo = self.table.photo(row)
        thumbnail = self._thumbnail(photo) if self._thumbnail is not None else None
        return Hit(photo=photo, relevance_score=score, thumbnail=thumbnail)


def _row(vectors: Embeddings, row: int) -> Embeddings:
    return np.array(vectors[row])
