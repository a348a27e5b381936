"""SearchEngine: the one ranking code path, from notebook to endpoint.

A ranking is fixed by query, configuration and snapshot, and a page is a slice of it. The index
ranks the first photos, `Config.depth` or more; the rest are ranked by exact score, so that paging
reaches every photo that meets the filter.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.calibration import Curve
from searchlab.errors import InputError, MismatchError
from searchlab.models.canaries import CanaryCheck
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.photos.photo import Photo
from searchlab.photos.table import PhotoTable
from searchlab.search.cursors import Cursor, check_page, check_reached
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.facets import Facets
from searchlab.search.hits import Hit
from searchlab.search.indexes import VectorIndex
from searchlab.search.mixing import Mixed
from searchlab.search.planner import bound_by_date, make_plan
from searchlab.search.queries import (
    DEFAULT_PER_PAGE,
    MAX_PER_PAGE,
    Page,
    Query,
    QueryPlan,
    Ranking,
    Slice,
    check_count,
)
from searchlab.search.query_reading import (
    QueryVectors,
    TextVectors,
    check_reader,
    curve_of,
    describe_reading,
    known_words,
)
from searchlab.search.ranked_before import RankedBefore
from searchlab.search.ranking import Ranker
from searchlab.search.words.fields import READ_FIELDS
from searchlab.search.words.index import WordIndex
from searchlab.search.words.matches import WordMatches


class SearchEngine:
    """Ranks the photos of one snapshot under one configuration.

    Attributes:
        table: The photos.
        facets: Sets of photos by value, from which filters are answered.
        index: Their vectors, in the order of the table.
        model: Embeds the queries.
        config: Every choice that can change a ranking.
        snapshot_id: Name of this state of the library; cursors carry it.
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
        canary_check: CanaryCheck | None = None,
        texts: TextVectors | None = None,
        facets: Facets | None = None,
        words: WordIndex | None = None,
    ) -> None:
        """Take the parts, which must be of one library.

        Args:
            table: The photos.
            index: Their vectors.
            model: The model that made the vectors.
            config: With the `model_id` of the model.
            snapshot_id: Name of this state of the library.
            key: Secret that signs cursors; a random one if left out.
            thumbnail: Finds the small picture of a photo.
            canary_check: Probes that the model embedded together with the photos.
            texts: Vectors of query texts by the same model, to share with other engines.
            facets: Sets of the photos of the table; computed when first needed if left out.
            words: What is written about the photos; indexed when first needed if left out.

        Raises:
            MismatchError: The parts are not of one library and one model.
        """
        if len(table) != len(index) or index.dim != model.dim:
            msg = (
                f"table, index and model must agree, got {len(table)} photos, "
                f"vectors {(len(index), index.dim)} and dim {model.dim} of {model.name}"
            )
            raise MismatchError(msg)
        if config.model_id != model.model_id:
            msg = (
                f"queries must be embedded by the model of the photos, {config.model_id!r}, "
                f"got {model.model_id!r}; index the photos again with this model, or load that one"
            )
            raise MismatchError(msg)
        check_reader(config.calibration, model)
        self.table = table
        self.facets = Facets(table) if facets is None else facets
        self.index = index
        self._words = words
        self.model = model
        self.config = config
        self.snapshot_id = snapshot_id
        self._key = key or secrets.token_bytes(32)
        self._thumbnail = thumbnail
        self._before = RankedBefore()
        self.build_s = 0.0
        texts = TextVectors(model) if texts is None else texts.of_model(model)
        self._vectors = QueryVectors(model, texts, canary_check or CanaryCheck({}), index, config)

    def warm(self, texts: Sequence[str]) -> None:
        """Embed query texts in one batch and keep their vectors."""
        self._vectors.warm(texts)

    def reference_vector(self, query: Query) -> Embeddings | None:
        """Return the (dim,) embedding of the query's picture; None if it has none.

        Raises:
            NotFoundError: `photo_id` is not indexed.
            ImageError: The picture is refused.
        """
        if query.photo_id is not None:
            return self._vectors.of_photo(self.table.row_of(query.photo_id))
        if query.image is None or isinstance(query.image, str):
            return None
        return self._vectors.of_picture(query.image)

    def query_vector(
        self, query: Query, *, reference: Embeddings | None = None
    ) -> Embeddings | None:
        """Return the (dim,) embedding that photos are ranked by; None if there are only conditions.

        Args:
            query: The query.
            reference: (dim,) embedding of the query's picture, if it was computed before.
        """
        mixed = self._embed(query, reference)
        return None if mixed is None else mixed.vector

    def _embed(self, query: Query, reference: Embeddings | None) -> Mixed | None:
        text = query.text or ""
        if query.kind is None:
            return None
        if query.kind == "text":
            return Mixed(self._vectors.of_text(text), 1.0)
        picture = self.reference_vector(query) if reference is None else reference
        if picture is None:
            return None
        if query.kind == "image":
            return Mixed(picture, 0.0)
        return self._vectors.mix(picture, text, query.text_alpha)

    def allowed(self, query: Query) -> Bitmap | None:
        """Return the photos that a query may find; None where it may find all.

        Raises:
            InputError: A value that the library does not know.
            NotFoundError: `photo_id` is not indexed.
        """
        allowed = query.filter.allowed(self.facets)
        if query.photo_id is None:
            return allowed
        row = self.table.row_of(query.photo_id)
        return (Bitmap.full(len(self.table)) if allowed is None else allowed).without(row)

    def plan(self, query: Query) -> QueryPlan:
        """Say how a query would be answered, without answering it."""
        allowed = self.allowed(query)
        return self._plan(query, allowed, self._match(query, allowed))

    def _plan(self, query: Query, allowed: Bitmap | None, matches: WordMatches | None) -> QueryPlan:
        n_allowed = len(self.table) if allowed is None else allowed.count
        texts = str if matches is None else matches.describe
        reading = partial(describe_reading, query.text or "", self.model)
        return make_plan(query, self.index, self.config, n_allowed, words=texts, reading=reading)

    def curve_of(self, query: Query, matches: WordMatches | None = None) -> Curve:
        """Return the curve of a query; see `query_reading.curve_of`."""
        has_words = query.text is not None and query.kind != "image"
        words = self._vectors.of_text(query.text or "") if has_words else None
        return curve_of(query, words, matches, self.config.calibration, self.model)

    @property
    def words(self) -> WordIndex:
        """What is written about the photos."""
        if self._words is None:
            self._words = WordIndex.build(self.table)
        return self._words

    def _match(self, query: Query, allowed: Bitmap | None) -> WordMatches | None:
        # Vectors that are merely added are searched as they were when that was measured.
        kinds = ("text",) if self.config.mixing == "sum" else ("text", "both")
        if self.config.words is None or query.kind not in kinds or query.text is None:
            return None
        read, known = READ_FIELDS[self.config.read_texts], known_words(query.text, self.model)
        return self.words.match(query.text, allowed, read=read, known=known)

    def rank(
        self,
        query: Query,
        k: int | None = None,
        *,
        start: int = 0,
        reference: Embeddings | None = None,
    ) -> Ranking:
        """Rank the photos for a query; this is what is evaluated and what is served.

        Args:
            query: The query.
            k: Length of the ranking, counted from its first photo; all of it if left out. The order
                of the first photos does not depend on it.
            start: Photos at its beginning that are left out of the answer.
            reference: (dim,) embedding of the query's picture, if it was computed before.

        Returns:
            The photos from place `start` up to min(k, total), and the total.

        Raises:
            InputError: A value that the library does not know.
            NotFoundError: `photo_id` is not indexed.
        """
        if k is not None and k < 0:
            msg = f"k must be 0 or more, got {k}"
            raise InputError(msg)
        clock = [time.perf_counter()]
        allowed = self.allowed(query)
        matches = self._match(query, allowed)
        plan = self._plan(query, allowed, matches)
        clock.append(time.perf_counter())
        embedded = self._embed(query, reference)
        vector = None if embedded is None else embedded.vector
        clock.append(time.perf_counter())
        ranker = Ranker(
            table=self.table,
            facets=self.facets,
            index=self.index,
            config=self.config,
            curve=self.curve_of(query, matches),
            query=bound_by_date(query, self.config),
            vector=vector,
            matches=matches,
            plan=plan,
            allowed=allowed,
            before=self._before,
            text_share=1.0 if embedded is None else embedded.text_share,
        )
        rows, scores, total = ranker.cut(k, start)
        if matches is not None:
            plan = replace(plan, describe_words=partial(matches.describe, rows))
        clock.append(time.perf_counter())
        elapsed_ms = [1e3 * (end - begin) for begin, end in itertools.pairwise(clock)]
        timings = dict(zip(("filter", "embed", "search"), elapsed_ms, strict=True))
        return Ranking(rows, scores, total, plan, timings)

    def slice(
        self,
        query: Query | str | None = None,
        *,
        per_page: int = DEFAULT_PER_PAGE,
        page: int = 1,
        cursor: str | Cursor | None = None,
        audience: str = "",
        live: NDArray[np.bool_] | None = None,
        reference: Embeddings | None = None,
    ) -> Slice:
        """Answer a query page by page, as rows of the table; raises what `search` does.

        Args:
            query: The query, or just its words; ignored where a cursor is given.
            per_page: 1 to 100 results a page; with a cursor the size of page 1 stays.
            page: Which page of the ranking, from 1; not together with a cursor.
            cursor: `next_cursor` of the page before.
            audience: Account and operation that the cursors are bound to.
            live: (n_photos,) bool, photos that are still in the library; all if left out. The
                others are skipped, and a page is filled without them.
            reference: (dim,) embedding of the query's picture, if it was computed before.
        """
        check_page(page, cursor)
        picture = None
        if cursor is not None:
            opened = self._open_cursor(cursor, audience)
        elif query is None:
            msg = "search must be given a query or a cursor, got neither"
            raise InputError(msg)
        else:
            query = Query(text=query) if isinstance(query, str) else query
            if query.image is not None and reference is None:
                reference = self.reference_vector(query)
            picture = query.image
            check_count("per_page", per_page, MAX_PER_PAGE)
            opened = Cursor(
                query=query,
                vector=reference,
                position=(page - 1) * per_page,
                per_page=per_page,
                snapshot_id=self.snapshot_id,
                config_id=self.config.config_id,
                audience=audience,
            )
        part = self._cut_page(opened, live)
        check_reached(page, part.total, part.per_page)
        return part if picture is None else replace(part, picture=picture)

    def _cut_page(self, cursor: Cursor, live: NDArray[np.bool_] | None) -> Slice:
        start, per_page = cursor.position, cursor.per_page
        n_ranked = per_page if live is None else per_page + 1
        while True:
            stop = start + n_ranked
            ranking = self.rank(cursor.query, stop, start=start, reference=cursor.vector)
            rows = ranking.rows
            present = np.arange(len(rows)) if live is None else np.flatnonzero(live[rows])
            end = min(stop, ranking.total)
            if len(present) > per_page:
                end = start + int(present[per_page])
            if live is None or len(present) > per_page or end == ranking.total:
                break
            n_ranked *= 4  # too many deleted photos in a row: look further
        shown = present[:per_page]
        following = replace(cursor, position=end) if end < ranking.total else None
        return Slice(
            rows=rows[shown],
            scores=ranking.scores[shown],
            query=cursor.query,
            start=start + 1,
            total=ranking.total,
            per_page=per_page,
            next_cursor=None if following is None else following.seal(self._key),
            plan=ranking.plan,
            timings=ranking.timings,
        )

    def search(
        self,
        query: Query | str | None = None,
        *,
        per_page: int = DEFAULT_PER_PAGE,
        page: int = 1,
        cursor: str | Cursor | None = None,
        audience: str = "",
    ) -> Page:
        """Answer a query page by page; the arguments are those of `slice`.

        Raises:
            InputError: A value out of range, a page behind the last, or neither query nor cursor.
            CursorError: A cursor of another library, snapshot, configuration or audience.
            NotFoundError: `photo_id` is not indexed.
        """
        part = self.slice(query, per_page=per_page, page=page, cursor=cursor, audience=audience)
        return self.page(part)

    def page(self, part: Slice) -> Page:
        """Read the records of a slice."""
        photos = self.table.photos(part.rows.tolist())
        picture = part.picture
        if part.query.photo_id is not None:
            picture = self._find_thumbnail(self.table.photo(self.table.row_of(part.query.photo_id)))
        return Page(
            hits=tuple(
                Hit(photo=photo, relevance_score=score, thumbnail=self._find_thumbnail(photo))
                for photo, score in zip(photos, part.scores.tolist(), strict=True)
            ),
            query=part.query,
            picture=picture,
            start=part.start,
            total=part.total,
            per_page=part.per_page,
            next_cursor=part.next_cursor,
            plan=part.plan,
        )

    def _find_thumbnail(self, photo: Photo) -> Path | None:
        return self._thumbnail(photo) if self._thumbnail is not None else None

    def _open_cursor(self, cursor: str | Cursor, audience: str) -> Cursor:
        if isinstance(cursor, str):
            cursor = Cursor.unseal(cursor, self._key, audience=audience)
        cursor.check_state(self.snapshot_id, self.config.config_id)
        return cursor
