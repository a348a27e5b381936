"""Query sets: the judged queries of one collection, of all kinds, and their halves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from searchlab.config import Config
from searchlab.evaluation.calibration.scored_queries import halves
from searchlab.evaluation.datasets import Dataset, load_dataset

if TYPE_CHECKING:
    from searchlab.library.library import Library
    from searchlab.search.engine import SearchEngine


@dataclass(frozen=True, kw_only=True)
class QuerySet:
    """The judged queries of a collection.

    Attributes:
        text: Queries by words.
        similar: Queries by a photo; None if there are none.
        steered: Queries by a photo and words; None if there are none.
    """

    text: Dataset
    similar: Dataset | None = None
    steered: Dataset | None = None

    @classmethod
    def load(cls, name: str, *, least: int, most: int, seed: int) -> QuerySet:
        """Load a collection whose image queries are called `<name>-similar` and `<name>-steered`.

        Args:
            name: Name of the dataset of the text queries.
            least: Least number of text queries of a language; languages with fewer are left out.
            most: Most text queries to draw of each language.
            seed: Seed of the drawing.
        """
        everything = load_dataset(name)
        counts = Counter(query.lang for query in everything.queries)
        langs = sorted(lang for lang, count in counts.items() if count >= least)
        return cls(
            text=everything.sample(langs, most, seed=seed),
            similar=load_dataset(f"{name}-similar"),
            steered=load_dataset(f"{name}-steered"),
        )

    def halves(self, seed: int) -> tuple[QuerySet, QuerySet]:
        """Divide all queries into two halves, keeping queries about the same photo together."""
        text = halves(self.text, seed=seed)
        similar = (None, None) if self.similar is None else halves(self.similar, seed=seed)
        steered = (None, None) if self.steered is None else halves(self.steered, seed=seed)
        first, second = (
            QuerySet(text=text[side], similar=similar[side], steered=steered[side])
            for side in (0, 1)
        )
        return first, second

    def each(self) -> Iterator[Dataset]:
        """Yield the datasets that are not None: text, similar, steered."""
        yield from (one for one in (self.text, self.similar, self.steered) if one is not None)


def engine_of(library: Library, config: Config, query_set: QuerySet) -> SearchEngine:
    """Build an engine over the photos of a collection, without the fields that queries are from."""
    return library.engine_for(
        config, withheld=query_set.text.unread, photo_ids=query_set.text.photo_ids
    )
