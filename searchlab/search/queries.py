"""Query, QueryPlan, Ranking and Page: a query, how it is answered, and its results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.config.calibration import QueryKind
from searchlab.errors import InputError, count, quote
from searchlab.files import write_parquet
from searchlab.search.filters.photo_filter import EVERY_PHOTO, PhotoFilter
from searchlab.search.hits import Hit
from searchlab.search.page_frames import hits_frame, ranked_rows

if TYPE_CHECKING:
    import pandas as pd

MAX_QUERY_LENGTH = 500
MAX_LIMIT = 100
MAX_PER_PAGE = 100
MAX_TEXT_ALPHA = 10.0
DEFAULT_PER_PAGE = 20
DEFAULT_TEXT_ALPHA = 1.7
SORT_ORDERS = ("relevance", "newest")
_NO_TEXT = re.compile("[\\0\\ud800-\\udfff]")

Picture: TypeAlias = Image.Image | bytes | Path
"""A picture in memory, its file's bytes, or the path of its file."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query: words, a picture, conditions, or any of them together.

    Attributes:
        text: Up to 500 code points in any language; empty is the same as none.
        image: A picture; not together with `photo_id`.
        photo_id: An indexed photo, which is never in its own results.
        text_alpha: 0 to 10, how much the text counts beside the picture; 0 ignores the text.
        filter: Conditions on the photos.
        sort_by: `relevance` or `newest`. By date, words without a `score_threshold` show what
            is relevant, from `Config.newest_score` on.
        score_threshold: Least `relevance_score`, 0 to 1.
        limit: Most results over all pages, 1 to 100. These are the nearest photos, however they
            are sorted; where there are only conditions, the first photos in the chosen order.
        min_recall: Share of the true nearest photos that the plan must be expected to find, above 0
            to 1; where the recall of a search was not measured, every photo is scored.

    Raises:
        InputError: A value out of range, image and photo_id at once, or nothing to search by.
    """

    text: str | None = None
    image: Picture | str | None = None
    photo_id: str | None = None
    text_alpha: float = DEFAULT_TEXT_ALPHA
    filter: PhotoFilter = EVERY_PHOTO
    sort_by: str = "relevance"
    score_threshold: float | None = None
    limit: int | None = None
    min_recall: float | None = None

    def __post_init__(self) -> None:
        if self.text is not None:
            object.__setattr__(self, "text", _check_text(self.text))
        if isinstance(self.image, str):
            object.__setattr__(self, "image", Path(self.image))
        if not isinstance(self.image, Image.Image | bytes | Path | None):
            msg = f"image must be a picture, bytes or a path, got {quote(self.image)}"
            raise InputError(msg)
        if not isinstance(self.photo_id, str | None):
            msg = f"photo_id must be a string, got {quote(self.photo_id)}"
            raise InputError(msg)
        if self.image is not None and self.photo_id is not None:
            shown = quote(self.photo_id)
            msg = f"image and photo_id cannot be combined, got photo_id {shown}; keep one"
            raise InputError(msg)
        if not isinstance(self.filter, PhotoFilter):
            msg = f"filter must be a PhotoFilter, got {quote(self.filter)}"
            raise InputError(msg)
        _check_number("text_alpha", self.text_alpha, 0, MAX_TEXT_ALPHA)
        if self.score_threshold is not None:
            _check_number("score_threshold", self.score_threshold, 0, 1)
        if self.limit is not None:
            check_count("limit", self.limit, MAX_LIMIT)
        if self.min_recall is not None:
            _check_number("min_recall", self.min_recall, 0, 1, above=True)
        if self.sort_by not in SORT_ORDERS:
            msg = f"sort_by must be relevance or newest, got {quote(self.sort_by)}"
            raise InputError(msg)
        if not self.has_reference and self.text is None and self.filter.is_empty:
            msg = "a query must have a text, an image, a photo_id or a filter, got none of them"
            raise InputError(msg)

    @property
    def has_reference(self) -> bool:
        """Whether the query has a picture, uploaded or indexed."""
        return self.image is not None or self.photo_id is not None

    @property
    def kind(self) -> QueryKind | None:
        """What the query is ranked by; None where there are only conditions."""
        if self.has_reference:
            return "both" if self.text is not None and self.text_alpha > 0 else "image"
        return "text" if self.text is not None else None


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    """How a query is answered, and why.

    Attributes:
        mode: `browse` (no ranking by content), `exact` (no allowed photo missed), or what a search
            of the index is called: `graph`, `clustered`.
        n_photos: Photos in the snapshot.
        n_allowed: Photos that the filter lets through.
        reason: Why this mode.
        scored_by: Model and calibration behind the scores.
        effort: The `ef` of a graph search, or the recall target of the clustered index; None for
            the index's own setting.
        expected_recall: Share of the true nearest photos that it is expected to find, 0 to 1; None
            where it was not measured.
        recall_basis: What was measured, in words.
        newest_score: Least score of what is shown by date; None where all is shown, or where the
            query names a threshold itself.
        filter: What photos must meet.
        describe_words: Returns `words`. Made only when read, as few plans are.
        describe_reading: Returns `reading`.
    """

    mode: str
    n_photos: int
    n_allowed: int
    reason: str
    scored_by: str
    effort: float | None = None
    expected_recall: float | None = None
    recall_basis: str = ""
    newest_score: float | None = None
    filter: PhotoFilter = EVERY_PHOTO
    describe_words: Callable[[], str] = field(default=str, compare=False, repr=False)
    describe_reading: Callable[[], str] = field(default=str, compare=False, repr=False)

    @property
    def conditions(self) -> str:
        """The filter in words."""
        return self.filter.describe()

    @property
    def words(self) -> str:
        """What the words of the query found among the texts; empty where they are not read."""
        return self.describe_words()

    @property
    def reading(self) -> str:
        """Words of the query that the model does not know; empty if it knows them all."""
        return self.describe_reading()

    @property
    def selectivity(self) -> float:
        """Share of photos that the filter lets through, 0 to 1."""
        return self.n_allowed / self.n_photos if self.n_photos else 1.0

    def __str__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """Say what is done and why; for an approximate search also what it may miss."""
        photos = count(self.n_photos, "photo")
        share = f"{self.n_allowed:,} of {photos} ({100 * self.selectivity:.2f} %)"
        lines = [
            f"{self.mode}: {self.reason}",
            f"filter: {self.conditions}: {share}; {self.scored_by}",
        ]
        if self.mode not in ("browse", "exact"):
            recall = "not measured; run `searchlab tune`"
            if self.expected_recall is not None:
                recall = f"{self.expected_recall:.3f}, {self.recall_basis}"
            lines.append(f"expected recall: {recall}")
        if words := self.words:
            lines.append(f"texts: {words}")
        if self.newest_score is not None:
            lines.append(
                f"newest: of the photos that score {self.newest_score:g} and more; "
                "another score_threshold counts instead, 0 for all"
            )
        if reading := self.reading:
            lines.append(f"words: {reading}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Ranking:
    """The head of a ranking, or all of it.

    Attributes:
        rows: (m,) int64 positions, best first, from the requested place on.
        scores: (m,) float64 relevance scores, 0 to 1.
        total: Photos in the whole ranking.
        plan: How it was made.
        timings: Milliseconds by part: `filter`, `embed`, `search`.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    total: int
    plan: QueryPlan
    timings: dict[str, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Slice:
    """A page before its records are read.

    Attributes:
        rows: (n,) int64 positions in the engine's table.
        scores: (n,) float64 relevance scores, 0 to 1.
        query: What it answers; of a cursor, without the picture.
        start: Place of the first one in the ranking, counted from 1.
        total: Photos in the whole ranking.
        per_page: Page size in effect.
        next_cursor: Asks for the next page; None exactly on the last.
        plan: How the query was answered.
        timings: Milliseconds by part: `filter`, `embed`, `search`.
        picture: That of the query; None where a cursor asked for the page.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    query: Query
    start: int
    total: int
    per_page: int
    next_cursor: str | None
    plan: QueryPlan
    timings: Mapping[str, float]
    picture: Picture | str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Page:
    """A slice of one ranking.

    Attributes:
        hits: Results in order.
        query: What it answers; on a page that a cursor asked for, without the picture.
        start: Place of the first one in the ranking, counted from 1.
        total: Photos in the whole ranking.
        per_page: Page size in effect, also on a short last page.
        next_cursor: Asks for the next page; None exactly on the last.
        plan: How the query was answered.
        picture: What was searched by, where it can be shown: the query's picture, or the small
            picture of its photo.
    """

    hits: tuple[Hit, ...]
    query: Query
    start: int
    total: int
    per_page: int
    next_cursor: str | None
    plan: QueryPlan
    picture: Picture | str | None = None

    @property
    def has_more(self) -> bool:
        """Whether at least one more page exists."""
        return self.next_cursor is not None

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __repr__(self) -> str:
        lines = [f"{hit.relevance_score:.3f}  {hit.caption}" for hit in self]
        more = "more follow" if self.has_more else "the last page"
        return "\n".join([f"<Page of {count(len(self), 'result')}, {more}>", *lines])

    @property
    def extent(self) -> str:
        """Say how much of the ranking this is: `12 of 602`, `13 to 24 of 602`."""
        if self.start == 1 or not self.hits:
            return f"{len(self):,} of {self.total:,}"
        return f"{self.start:,} to {self.start + len(self) - 1:,} of {self.total:,}"

    def frame(self) -> pd.DataFrame:
        """Return a row for each photo: rank, score, file and every field, one value a cell."""
        return hits_frame(self.hits, start=self.start)

    def to_parquet(self, path: Path | str) -> Path:
        """Write the rows of `frame` as Parquet, for which pandas is not needed.

        Raises:
            MissingExtraError: pyarrow is not installed.
            InputError: There are no results, or the file cannot be written.
        """
        return write_parquet(Path(path), ranked_rows(self.hits, start=self.start))

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(
        self, *, title: str | None = None, files: bool = False, document: bool = False
    ) -> str:
        """Render the page as HTML that needs no other file.

        Args:
            title: Heading; what was searched for if left out.
            files: Link each photo to its file on this machine, and show the file's name. That is
                for oneself: what is passed on should not tell where one's photos lie.
            document: A whole document for a browser; a piece for a notebook if left out.
        """
        from searchlab.photos.cards import document_html, embed_picture, photo_card, sheet_html

        cards = [
            photo_card(
                hit.photo,
                place=place,
                score=hit.relevance_score,
                thumbnail=hit.thumbnail,
                file=hit.file if files else None,
            )
            for place, hit in enumerate(self, start=self.start)
        ]
        picture = "" if self.picture is None else embed_picture(self.picture)
        if title is None:
            by_what = (
                "Photos like the query's picture"
                if self.query.has_reference
                else self.plan.conditions
            )
            title = self.query.text or by_what
        sheet = sheet_html(
            cards,
            title=title,
            picture=picture,
            summary=self.extent,
            details=self.plan.explain(),
            level=1 if document else 4,
        )
        if not document:
            return sheet
        return document_html(sheet, title=f"{title} · searchlab", style="body{margin:0}")


def check_count(name: str, value: int, most: int) -> int:
    """Check an integer from 1 to `most`.

    Raises:
        InputError: It is another value.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        msg = f"{name} must be an integer from 1 to {most}, got {quote(value)}"
        raise InputError(msg)
    return value


def _check_text(text: str) -> str | None:
    if not isinstance(text, str):
        msg = f"text must be a string, got {type(text).__name__}"
        raise InputError(msg)
    if len(text) > MAX_QUERY_LENGTH:
        msg = f"text must have at most {MAX_QUERY_LENGTH} characters, got {len(text)}"
        raise InputError(msg)
    if _NO_TEXT.search(text):
        msg = "text must be Unicode without NUL and lone surrogates, got one of them"
        raise InputError(msg)
    return text if text.strip() else None


def _check_number(name: str, value: float, low: float, high: float, *, above: bool = False) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or (above and value == low):  # NaN is in no range
        limits = f"above {low:g}, up to {high:g}" if above else f"from {low:g} to {high:g}"
        msg = f"{name} must be a number {limits}, got {quote(value)}"
        raise InputError(msg)
