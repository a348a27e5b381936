"""SearchBox: type, drop a picture, filter and scroll in a notebook; two configurations at once.

The browser side is the script beside this file, which the kernel sends; nothing is fetched from
elsewhere. What is shown stays in Python: `box.pages` are the pages, and `box.kept` the queries that
were worth keeping.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from searchlab.config import Config
from searchlab.errors import InputError, count, quote, refuse_names
from searchlab.evaluation.answering_widget import AnsweringWidget, traitlets
from searchlab.evaluation.results import system_name
from searchlab.library.library import Library
from searchlab.photos.cards import STYLE, photo_card, script_of
from searchlab.photos.colors.families import FAMILIES
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.hits import Hit
from searchlab.search.queries import Page, Query

_HERE = Path(__file__).parent
_CHOICES = {"orientation": ("landscape", "portrait", "square"), "color": tuple(FAMILIES)}

_SIDE_BY_SIDE = (
    ".searchlab-both{display:flex;gap:20px}.searchlab-both>*{flex:1;min-width:0}"
    ".searchlab-both h4{margin:0 0 8px}"
)


class SearchBox(AnsweringWidget):
    """A search box over a library, for a notebook.

    Attributes:
        query: What is shown; None before anything was searched.
        pages: For each configuration the pages that are shown, in order.
        kept: Queries that were kept, in order, each once.
        columns: What the browser shows; made from `pages`.
        texts: Words of the queries that were kept.
        typed: Words that the box begins with.
    """

    _esm = script_of(_HERE / "search_box.js")
    _css = (_HERE / "search_box.css").read_text(encoding="utf-8")

    columns = traitlets.List(traitlets.Dict()).tag(sync=True)
    choices = traitlets.Dict().tag(sync=True)
    texts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    typed = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        library: Library,
        text: str = "",
        *,
        config: Config | None = None,
        other: Config | None = None,
        per_page: int = 12,
    ) -> None:
        """Open a box, and search for `text` if there is one.

        Args:
            library: Holds photos.
            text: The first query.
            config: Ranks the photos; the library's own if left out.
            other: Ranks them in a second column, if given.
            per_page: Photos that are shown at first, and that each scroll adds, 1 to 100.

        Raises:
            InputError: `per_page` is out of range.
            NotFoundError: Nothing was indexed yet.
        """
        refuse_names("open_library(folder)", library=library)
        if not 1 <= per_page <= 100:
            msg = f"per_page must be from 1 to 100, got {per_page!r}"
            raise InputError(msg)
        self._engines: list[SearchEngine] = [
            library.engine if one is None else library.engine_for(one)
            for one in (config, *([other] if other is not None else []))
        ]
        self._per_page = per_page
        self.query: Query | None = None
        self.pages: list[list[Page]] = [[] for _ in self._engines]
        self.kept: list[Query] = []
        choices = {name: list(values) for name, values in _CHOICES.items()}
        super().__init__(choices=choices, typed=text)
        if text.strip():
            self.search(Query(text=text))

    @property
    def page(self) -> Page:
        """The first page of the first configuration.

        Raises:
            InputError: Nothing was searched yet.
        """
        if not self.pages[0]:
            msg = "a box must have searched to have a page, got no query; type one"
            raise InputError(msg)
        return self.pages[0][0]

    def search(self, query: Query) -> None:
        """Show the first photos that a query finds.

        Raises:
            SearchlabError: It cannot be answered; what was shown stays.
        """
        pages = [[engine.search(query, per_page=self._per_page)] for engine in self._engines]
        self.query, self.pages = query, pages
        self._show(whole=True)

    def scroll(self) -> None:
        """Show more of what the query finds, in every column that has more."""
        if self.query is None:
            return
        further = [
            [engine.search(self.query, per_page=self._per_page, page=len(pages) + 1)]
            if pages[-1].has_more
            else []
            for engine, pages in zip(self._engines, self.pages, strict=True)
        ]
        self.pages = [pages + more for pages, more in zip(self.pages, further, strict=True)]
        self._show(whole=False)

    def keep(self) -> None:
        """Keep the query that is shown, once."""
        if self.query is not None and self.query not in self.kept:
            self.kept.append(self.query)
            self.texts = [_name_of(query) for query in self.kept]

    def answer(self, message: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        """Search, scroll, show again or keep, as the browser asks."""
        do = message.get("do")
        if do == "search":
            self.search(_read_query(message, buffers))
        elif do == "more":
            self.scroll()
        elif do == "again":  # asked by a second view of the same box
            self._show(whole=True)
        elif do == "keep":
            self.keep()
        else:
            msg = f"do must be search, more, again or keep, got {quote(do)}"
            raise InputError(msg)

    def _show(self, *, whole: bool) -> None:
        """Send what is shown; after a scroll only the photos that came, as pictures are large."""
        found = [
            [hit.photo.photo_id for page in pages for hit in page.hits] for pages in self.pages
        ]
        columns: list[dict[str, Any]] = []
        for number, (engine, pages) in enumerate(zip(self._engines, self.pages, strict=True)):
            if not pages:
                continue
            beside = found[1 - number] if len(found) > 1 else []
            others = {photo: place for place, photo in enumerate(beside, start=1)}
            first = 1 if whole else pages[-1].start
            hits = [hit for page in pages for hit in page.hits][first - 1 :]
            columns.append(
                {
                    "name": system_name(engine.config),
                    "total": pages[0].total,
                    "plan": str(pages[0].plan),
                    "more": pages[-1].has_more,
                    "first": first,
                    "photos": [_shown(hit) for hit in hits],
                    "elsewhere": [others.get(photo) for photo in found[number]],
                }
            )
        self.columns = columns

    @property
    def summary(self) -> str:
        """How many photos are shown for which query."""
        if self.query is None:
            return "SearchBox, nothing searched yet"
        n_shown = sum(len(page.hits) for page in self.pages[0])
        photos = count(self.page.total, "photo")
        return f"SearchBox: {n_shown} of {photos} for {_name_of(self.query)!r}"

    def _repr_html_(self) -> str:
        """Render what is shown, for a saved notebook."""
        columns = [
            f"<section><h4>{html.escape(system_name(engine.config))}: "
            f"{count(pages[0].total, 'photo')}</h4>"
            f'<div class="searchlab-grid">{_cards(pages)}</div></section>'
            for engine, pages in zip(self._engines, self.pages, strict=True)
            if pages
        ]
        title = html.escape("nothing searched yet" if self.query is None else _name_of(self.query))
        return (
            f'<style>{STYLE}{_SIDE_BY_SIDE}</style><div class="searchlab-page">'
            '<header class="searchlab-head">'
            f'<h4 dir="auto">{title}</h4></header>'
            f'<div class="searchlab-both">{"".join(columns)}</div></div>'
        )


def _read_query(message: Mapping[str, Any], pictures: Sequence[bytes]) -> Query:
    """Read a query as the browser sends it; what is empty is left out."""
    orientation, color = message.get("orientation"), message.get("color")
    tolerance, least = message.get("tolerance"), message.get("least")
    conditions: dict[str, Any] = {}
    if orientation:
        conditions["orientation"] = (orientation,)
    if color:
        conditions["color_hex" if str(color).startswith("#") else "color_name"] = color
        if tolerance is not None:
            conditions["color_tolerance"] = tolerance
    text = message.get("text")
    return Query(
        text=text if text else None,
        image=pictures[0] if pictures else None,
        filter=PhotoFilter(**conditions),
        sort_by=message.get("sort", "relevance"),
        score_threshold=least or None,
    )


def _shown(hit: Hit) -> dict[str, Any]:
    photo = hit.photo
    return {
        "picture": b"" if hit.thumbnail is None else hit.thumbnail.read_bytes(),
        "words": photo.title or photo.source_description or photo.alt_description,
        "score": round(hit.relevance_score, 3),
    }


def _cards(pages: Sequence[Page]) -> str:
    hits = [hit for page in pages for hit in page.hits]
    return "".join(
        photo_card(hit.photo, place=place, score=hit.relevance_score, thumbnail=hit.thumbnail)
        for place, hit in enumerate(hits, start=1)
    )


def _name_of(query: Query) -> str:
    parts = [query.text or ("" if query.image is None else "a picture")]
    if not query.filter.is_empty:
        parts.append(query.filter.describe())
    return ", ".join(part for part in parts if part)
