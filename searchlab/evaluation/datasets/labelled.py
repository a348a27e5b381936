"""LabelledQuery: a query of a dataset, and the photo fields to withhold when it is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from searchlab.search.filters.photo_filter import EVERY_PHOTO, PhotoFilter
from searchlab.search.queries import DEFAULT_TEXT_ALPHA, Query

Task: TypeAlias = Literal["text", "photo", "photo+text"]
"""What a query consists of: words, a reference photo, or a reference photo and words."""

NO_LANGUAGE = "zxx"
"""BCP 47 for no linguistic content: the language of a query that is a photo alone."""

TEXT_FIELDS = frozenset({"source_description", "title", "alt_description", "description"})

# Kind -> photo fields that its queries were taken from: a model that reads them knows the answer.
WITHHELD: Mapping[str, frozenset[str]] = {
    "label": frozenset({"source_description", "title"}),
    "title": frozenset({"source_description", "title"}),
    "category": frozenset({"source_description", "title"}),
    "alt": frozenset({"alt_description"}),
    "everyday": frozenset(),
    "graded": frozenset(),
    "caption": frozenset(),
    "written": frozenset(),
}


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query whose relevant photos are known.

    Attributes:
        query_id: Unique in its dataset.
        lang: BCP 47 tag such as `pt-BR` or `sr-Latn`; `zxx` if there is no text.
        kind: Origin of the query and its judgments, such as a key of `WITHHELD`.
        text: The words; None for a photo alone.
        photo_id: The reference photo, which is never its own answer; None for words alone.
        filter: Conditions on the photos to find.
        text_alpha: Weight of the text beside the reference photo, 0 to 10.
    """

    query_id: str
    lang: str
    kind: str
    text: str | None = None
    photo_id: str | None = None
    filter: PhotoFilter = field(default_factory=lambda: EVERY_PHOTO)  # hashed with the query
    text_alpha: float = DEFAULT_TEXT_ALPHA

    @property
    def task(self) -> Task:
        """What the query consists of: `text`, `photo` or `photo+text`."""
        if self.photo_id is None:
            return "text"
        return "photo" if self.text is None else "photo+text"

    def query(self) -> Query:
        """Return the query for the engine.

        Raises:
            InputError: It is not valid, for example longer than 500 characters.
        """
        return Query(
            text=self.text,
            photo_id=self.photo_id,
            text_alpha=self.text_alpha,
            filter=self.filter,
        )
