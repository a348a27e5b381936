"""LabelledQuery: a query of a dataset, and what must be withheld where it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import DEFAULT_TEXT_ALPHA, Query

Task: TypeAlias = Literal["text", "photo", "photo+text"]
"""What a query brings: words, a reference photo, or a reference photo steered by words."""

NO_LANGUAGE = "zxx"
"""BCP 47 for no linguistic content: the language of a query that is a photo alone."""

TEXT_FIELDS = frozenset({"source_description", "title", "alt_description", "description"})

# Photo fields that queries of a kind were taken from: a model that reads them knows the answer.
WITHHELD: Mapping[str, frozenset[str]] = {
    "label": frozenset({"source_description", "title"}),
    "title": frozenset({"source_description", "title"}),
    "alt": frozenset({"alt_description"}),
    "graded": frozenset(),
    "caption": frozenset(),
    "written": frozenset(),
}


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query whose relevant photos are known.

    Attributes:
        query_id: Unique in its dataset.
        lang: BCP 47 tag such as `pt-BR` or `sr-Latn`; `zxx` where there is no text.
        kind: Where the query and its judgments come from, such as one of `WITHHELD`.
        text: What is searched for; None where a photo alone is.
        photo_id: The reference photo, which is never its own answer; None for words alone.
        filter: Conditions on the photos to be found.
        text_alpha: 0 to 10, how much the text counts beside the reference photo.
    """

    query_id: str
    lang: str
    kind: str
    text: str | None = None
    photo_id: str | None = None
    filter: PhotoFilter = field(default_factory=PhotoFilter)
    text_alpha: float = DEFAULT_TEXT_ALPHA

    @property
    def task(self) -> Task:
        """What the query brings: `text`, `photo` or `photo+text`."""
        if self.photo_id is None:
            return "text"
        return "photo" if self.text is None else "photo+text"

    def query(self) -> Query:
        """Return what the engine is asked.

        Raises:
            InputError: No engine takes it, such as a text of more than 500 characters.
        """
        return Query(
            text=self.text,
            photo_id=self.photo_id,
            text_alpha=self.text_alpha,
            filter=self.filter,
        )
