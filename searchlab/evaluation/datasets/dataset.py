"""Dataset: photos, queries and judgments that fit together, and ways to select parts of them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from searchlab.errors import InputError, quote
from searchlab.evaluation.datasets.checks import check_dataset, check_run
from searchlab.evaluation.datasets.labelled import TEXT_FIELDS, WITHHELD, LabelledQuery, Task
from searchlab.photos.photo import photo_id_of
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.words.fields import NAMES

if TYPE_CHECKING:
    from searchlab.photos.table import PhotoTable


@dataclass(frozen=True, repr=False)
class Dataset:
    """Photos, queries and judgments that fit together, checked when it is made.

    Attributes:
        name: The name that `load_dataset` knows.
        revision: 12 hex digits of the hash over photos, queries and judgments. For a part, the hash
            of the whole and the queries that it keeps, however they were selected.
        folder: Folder of its files.
        photos: The JSONL sidecar that `searchlab index` reads; None if there are only `records`.
        queries: The queries in the order of the file.
        qrels: query_id -> photo_id -> grade; 1 and above is relevant, a missing pair is unjudged.
        records: The sidecar's fields of each photo to search, with an absolute path as `file`.
        withholds: Kind of query -> the photo fields that its queries were taken from. For a kind
            that is not named, every text of a photo is withheld, so that no model reads the answer.
        n_dropped: Number of queries that `under` left out, because none of their relevant photos
            passes the filter.
        part_of: Revision of the dataset that this is a part of; empty for a whole one.
        origins: query_id -> photo_id -> where the judgment comes from, such as `"eye"`; empty if
            that is not recorded.
        rewritten: Whether the records have other texts than those that their photos came with, so
            that no library but one that is made of these records can be measured.

    Raises:
        InputError: Figures would have no meaning: there is no query or no judgment, a query_id or a
            photo occurs twice, a query has neither text nor photo or no relevant photo, a judgment
            is of an unknown query or photo or of a query's own reference photo, an id is padding,
            or a grade is no whole number from 0.
    """

    name: str
    revision: str
    folder: Path
    photos: Path | None
    queries: tuple[LabelledQuery, ...]
    qrels: dict[str, dict[str, int]]
    records: tuple[Mapping[str, str | None], ...]
    withholds: Mapping[str, frozenset[str]] = field(default_factory=lambda: WITHHELD)
    n_dropped: int = 0
    part_of: str = ""
    origins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rewritten: bool = False

    def __post_init__(self) -> None:
        check_dataset(self.name, self.queries, self.qrels, self.ids_of_records)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name}@{self.revision}: {len(self.photo_ids):,} photos, "
            f"{len(self.queries):,} queries in {', '.join(self.languages)}; task {self.task})"
        )

    @cached_property
    def ids_of_records(self) -> tuple[str, ...]:
        """The `photo_id` of each record, in their order."""
        return tuple(
            photo_id_of(record["source"] or "", record["source_photo_id"] or "")
            for record in self.records
        )

    @cached_property
    def photo_ids(self) -> frozenset[str]:
        """The photos to search; other photos of a library are not searched."""
        return frozenset(self.ids_of_records)

    @property
    def task(self) -> Task | Literal["mixed"]:
        """What the queries consist of: `text`, `photo`, `photo+text`, or `mixed`."""
        tasks = {query.task for query in self.queries}
        return tasks.pop() if len(tasks) == 1 else "mixed"

    @property
    def withheld(self) -> frozenset[str]:
        """Photo fields that the queries were taken from, for an evaluation to withhold."""
        kinds = {query.kind for query in self.queries}
        return frozenset[str]().union(*(self.withholds.get(kind, TEXT_FIELDS) for kind in kinds))

    @property
    def unread(self) -> frozenset[str]:
        """Photo fields that an engine must not read while it is measured.

        They are those that are `withheld` and the names of files and folders: whoever put the
        dataset together chose these, often as the answer itself.
        """
        return self.withheld | NAMES

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the queries, sorted."""
        return tuple(sorted({query.lang for query in self.queries}))

    @property
    def judged_by(self) -> dict[str, int]:
        """How many judgments of a relevant photo come from where; empty where nobody recorded it.

        >>> from searchlab.evaluation.datasets import load_dataset
        >>> sorted(load_dataset("demo").judged_by)
        ['category', 'eye', 'kind', 'name']
        """
        counts = Counter(
            self.origins[query_id][photo_id]
            for query_id, grades in self.qrels.items()
            if query_id in self.origins
            for photo_id, grade in grades.items()
            if grade >= 1
        )
        return dict(sorted(counts.items()))

    def only_judged_by(self, name: str, origins: Collection[str]) -> Dataset:
        """Keep the judgments of some origins, and the queries that they leave an answer.

        Args:
            name: Of the new dataset.
            origins: Some of `judged_by`, such as `["name"]`.

        Raises:
            InputError: No judgment comes from there.
        """
        kept = {
            query_id: {photo: grade for photo, grade in grades.items() if by[photo] in origins}
            for query_id, grades in self.qrels.items()
            if (by := self.origins.get(query_id))
        }
        qrels = {i: grades for i, grades in kept.items() if max(grades.values(), default=0) >= 1}
        if not qrels:
            known = ", ".join(self.judged_by) or "nothing recorded"
            msg = f"origins must be some of those of {self.name!r}, {known}, got {quote(origins)}"
            raise InputError(msg)
        made = self.derive(name, [q for q in self.queries if q.query_id in qrels], qrels)
        return replace(made, origins=self.origins)

    def check_run(self, run: Mapping[str, Sequence[str]]) -> None:
        """Check that a run can be an answer to these queries.

        Args:
            run: query_id -> photo_ids, best first; queries may be missing.

        Raises:
            InputError: It has unknown queries or photos, padding, a photo twice for one query, or a
                query's own reference photo among its answers.
        """
        check_run(self.name, self.queries, run, self.photo_ids)

    def select(
        self, *, languages: Sequence[str] | None = None, kinds: Collection[str] | None = None
    ) -> Dataset:
        """Keep the queries of some languages and kinds, with their judgments, and all photos.

        Raises:
            InputError: A language or a kind has no query, or no query is left.
        """
        for what, chosen, known in (
            ("languages", languages, self.languages),
            ("kinds", kinds, sorted({query.kind for query in self.queries})),
        ):
            if isinstance(chosen, str) or not set(chosen or ()) <= set(known):
                msg = f"{what} must be a list of some of {', '.join(known)}, got {quote(chosen)}"
                raise InputError(msg)
        return self._keep(
            lambda query: (
                (languages is None or query.lang in languages)
                and (kinds is None or query.kind in kinds)
            )
        )

    def only(self, query_ids: Iterable[str]) -> Dataset:
        """Keep some queries, in the order of the file, with their judgments, and all photos.

        Raises:
            InputError: No query is named, or one that is not in the dataset.
        """
        chosen = set(query_ids)
        unknown = sorted(chosen - self.qrels.keys())
        if unknown or not chosen:
            msg = f"query_ids must be ids of queries of {self.name!r}, got {unknown[:5] or 'none'}"
            raise InputError(msg)
        return self._keep(lambda query: query.query_id in chosen)

    def sample(self, languages: Sequence[str], per_language: int, seed: int) -> Dataset:
        """Keep a few queries of each language, for a quick evaluation.

        Queries are drawn by the hash of seed and query_id, so a larger sample holds the smaller.

        Args:
            languages: Tags, such as `["en", "zh-CN"]`.
            per_language: Most queries of each language, at least 1; fewer if it has fewer.
            seed: Seed of the sample.

        Raises:
            InputError: A language has no query, or `per_language` is no integer from 1.
        """
        if isinstance(per_language, bool) or not isinstance(per_language, int) or per_language < 1:
            msg = f"per_language must be an integer from 1, got {quote(per_language)}"
            raise InputError(msg)
        missing = sorted(set(languages) - set(self.languages))
        if missing or not languages:
            msg = f"languages must be among {', '.join(self.languages)}, got {missing}"
            raise InputError(msg)
        sampled: set[str] = set()
        for language in set(languages):
            ids = [query.query_id for query in self.queries if query.lang == language]
            sampled |= set(sorted(ids, key=lambda i: _sha256(f"{seed}:{i}"))[:per_language])
        return self._keep(lambda query: query.query_id in sampled)

    def under(self, filter: PhotoFilter, table: PhotoTable) -> Dataset:
        """Make the dataset of the same queries with a filter, whose answers must pass it.

        Queries whose relevant photos all fail the filter have no answer left; they are dropped, and
        `n_dropped` of the new dataset says how many.

        Args:
            filter: The filter; an empty one returns this dataset.
            table: Table of every judged photo, such as a library's `engine.table`.

        Raises:
            InputError: No query is left, a query has a filter already, the table lacks a judged
                photo, or the filter names a source or licence that the table does not know.
        """
        if filter.is_empty:
            return self
        if not all(query.filter.is_empty for query in self.queries):
            msg = f"queries of {self.name!r} must have no filter yet; put all conditions into one"
            raise InputError(msg)
        judged = {photo_id for grades in self.qrels.values() for photo_id in grades}
        missing = sorted(judged.difference(table.texts("photo_id")))
        if missing:
            msg = (
                f"the table must hold every judged photo of {self.name!r}, got none of "
                f"{len(missing)} such as {missing[0]!r}; index {self.folder} first"
            )
            raise InputError(msg)
        passing = judged.intersection(table.photo_ids(np.flatnonzero(filter.mask(table))))
        filtered = {
            query_id: {photo: grade for photo, grade in grades.items() if photo in passing}
            for query_id, grades in self.qrels.items()
        }
        qrels = {
            query_id: grades
            for query_id, grades in filtered.items()
            if max(grades.values(), default=0) >= 1
        }
        if not qrels:
            msg = f"a filter must let a relevant photo of {self.name!r} through, got {filter}"
            raise InputError(msg)
        conditions = json.dumps(filter.to_dict(), sort_keys=True)
        return replace(
            self,
            revision=_sha256(f"{self.revision}{conditions}{contents((), qrels)}")[:12],
            queries=tuple(replace(q, filter=filter) for q in self.queries if q.query_id in qrels),
            qrels=qrels,
            n_dropped=len(self.qrels) - len(qrels),
            part_of="",
        )

    def derive(
        self,
        name: str,
        queries: Iterable[LabelledQuery],
        qrels: Mapping[str, Mapping[str, int]],
    ) -> Dataset:
        """Make a dataset of the same photos with other queries and judgments.

        Raises:
            InputError: They do not fit together.
        """
        listed = tuple(queries)
        return replace(
            self,
            name=name,
            revision=_sha256(f"{self.revision}{contents(listed, qrels)}")[:12],
            queries=listed,
            qrels={query_id: dict(grades) for query_id, grades in qrels.items()},
            n_dropped=0,
            part_of="",
            origins={},
        )

    def _keep(self, is_chosen: Callable[[LabelledQuery], bool]) -> Dataset:
        chosen = tuple(query for query in self.queries if is_chosen(query))
        if len(chosen) == len(self.queries):
            return self
        whole = self.part_of or self.revision
        return replace(
            self,
            revision=_sha256(f"{whole}{[query.query_id for query in chosen]}")[:12],
            queries=chosen,
            qrels={query.query_id: self.qrels[query.query_id] for query in chosen},
            part_of=whole,
        )


def contents(queries: Iterable[LabelledQuery], qrels: Mapping[str, Mapping[str, int]]) -> str:
    """Return queries and judgments as one text, for a revision.

    Fields that were added later are part of it only if they are set, so that older datasets keep
    their revision.
    """
    parts = []
    for query in queries:
        parts.append(repr((query.query_id, query.lang, query.kind, query.text)))
        if query.photo_id is not None:
            steering = None if query.text is None else query.text_alpha
            parts.append(repr((query.photo_id, steering)))
        if not query.filter.is_empty:
            parts.append(repr(query.filter.to_dict()))
    parts += [
        repr((query_id, sorted(grades.items()))) for query_id, grades in sorted(qrels.items())
    ]
    return "".join(parts)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
