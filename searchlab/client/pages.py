"""A page of results, which can fetch the next pages, blocking or awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from searchlab.api.wire.schema import AnswerMeta, Pagination
from searchlab.client.calls import Answer, PageCall
from searchlab.client.failures import ServerError
from searchlab.client.records import Photo
from searchlab.errors import count


@dataclass(frozen=True, kw_only=True, repr=False)
class Photos:
    """One page of photos; iterating over it gives its photos.

    Attributes:
        photos: The photos in order.
        pagination: Page size in effect, whether more pages follow, and the cursor of the next one.
        meta: The request's id and the milliseconds that it took.
        headers: HTTP headers of the answer, such as the configuration of the search.
    """

    photos: list[Photo]
    pagination: Pagination
    meta: AnswerMeta
    headers: Mapping[str, str] = field(compare=False)

    @property
    def has_more(self) -> bool:
        """Whether at least one more page exists."""
        return self.pagination.has_more

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, place: int) -> Photo:
        return self.photos[place]

    def __iter__(self) -> Iterator[Photo]:
        return iter(self.photos)

    def __repr__(self) -> str:
        more = "more follow" if self.has_more else "the last page"
        photos = count(len(self), "photo")
        return "\n".join([f"<{type(self).__name__} of {photos}, {more}>", *map(_line, self)])

    def _repr_html_(self) -> str:
        from searchlab.client.grids import grid_html

        more = "More pages follow." if self.has_more else "This is the last page."
        count = f"{len(self)} of up to {self.pagination.per_page} photos."
        return grid_html(self.photos, summary=f"{count} {more}")


@dataclass(frozen=True, kw_only=True, repr=False)
class Page(Photos):
    """A page that fetches the next ones on demand."""

    follow: Callable[[str], Page] = field(compare=False)

    def next_page(self) -> Page | None:
        """Get the page after this one; None after the last."""
        cursor = self.pagination.next_cursor
        return None if cursor is None else self.follow(cursor)

    def pages(self) -> Iterator[Page]:
        """Iterate over this page and all that follow, each fetched when it is reached."""
        page: Page | None = self
        while page is not None:
            yield page
            page = page.next_page()

    def all_photos(self) -> Iterator[Photo]:
        """Iterate over the photos of this page and of all that follow."""
        for page in self.pages():
            yield from page


@dataclass(frozen=True, kw_only=True, repr=False)
class AsyncPage(Photos):
    """A page that fetches the next ones on demand, to be awaited."""

    follow: Callable[[str], Awaitable[AsyncPage]] = field(compare=False)

    async def next_page(self) -> AsyncPage | None:
        """Get the page after this one; None after the last."""
        cursor = self.pagination.next_cursor
        return None if cursor is None else await self.follow(cursor)

    async def pages(self) -> AsyncIterator[AsyncPage]:
        """Iterate over this page and all that follow, each fetched when it is reached."""
        page: AsyncPage | None = self
        while page is not None:
            yield page
            page = await page.next_page()

    async def all_photos(self) -> AsyncIterator[Photo]:
        """Iterate over the photos of this page and of all that follow."""
        async for page in self.pages():
            for photo in page:
                yield photo


class PageParts(TypedDict):
    """The parts of an answer that make a page."""

    photos: list[Photo]
    pagination: Pagination
    meta: AnswerMeta
    headers: Mapping[str, str]


def page_parts(call: PageCall, answer: Answer[list[Photo]]) -> PageParts:
    """Return the parts of an answer that make a page.

    Raises:
        ServerError: The answer has no pagination.
    """
    envelope = answer.envelope
    if envelope.pagination is None:
        msg = f"{call.path} must be answered with pagination, got none"
        raise ServerError(msg, request_id=envelope.meta.request_id)
    return PageParts(
        photos=envelope.data,
        pagination=envelope.pagination,
        meta=envelope.meta,
        headers=answer.headers,
    )


def _line(photo: Photo) -> str:
    words = photo.source_description or photo.alt_description or photo.photo_id or "photo"
    return f"{photo.relevance_score:.3f}  {words}" if photo.relevance_score else str(words)
