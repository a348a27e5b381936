"""WordIndex: photos by what is written about them, beside the index of their vectors.

It is made of segments that never change. A new snapshot keeps the segments of the one before, as
links, and adds one for the photos whose texts are new; small segments are joined with it, so that
there are never many (O'Neil and others, "The log-structured merge-tree", 1996).
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.photos.columns import open_columns, save_columns
from searchlab.photos.table import PhotoTable
from searchlab.progress import Progress
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.words.build import build_segment
from searchlab.search.words.fields import FIELDS, Written, texts_of
from searchlab.search.words.languages import is_function_word, language_of
from searchlab.search.words.matching import Lists, Matched, add_up
from searchlab.search.words.segment import MIN_TYPO, Segment
from searchlab.search.words.terms import Word, hash_of, terms_of, whole_of, words_of

_NAMES = "words.columns"
_AS_WRITTEN, _FORM, _MISSPELT = 1.0, 0.9, 0.6
_MAX_WORDS = 32
_COUNTED_ONCE = 20_000  # postings of a word up to which its photos are counted, not they
_COMMON, _COMMON_FROM = 0.02, 5_000  # share and number of photos above which a word is common
_WHOLE_BITS = sum(1 << number for number, field in enumerate(FIELDS) if field.whole)


@dataclass(frozen=True, eq=False)
class WordMatches:
    """What the words of a query found.

    Attributes:
        rows: (n,) int64, ascending; photos with at least one of the words.
        coverage: (n,) float32, 0 to 1: the share of the query that the photo has, where rare words
            count more, and words in a title more than those in a folder's name. In a large library
            words of very many photos count only beside a rarer one, unless there is none.
        precision: (n,) float32, 0 to 1: the share of the title, or of the description, that is
            words of the query.
        whole: (n,) bool, whether a title, description or file name is just the query.
        counts: Photos for each word of the query, filter and all.
        read_as: Words that no photo has -> what they were taken for.
    """

    rows: NDArray[np.int64]
    coverage: NDArray[np.float32]
    precision: NDArray[np.float32]
    whole: NDArray[np.bool_]
    counts: dict[str, int]
    read_as: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.rows)

    def describe(self) -> str:
        """Say in words what was found."""
        if not self.counts:
            return "no words to look up"
        parts = [f"{word} {count:,}" for word, count in self.counts.items()]
        read = [f"{word} read as {', '.join(terms)}" for word, terms in self.read_as.items()]
        whole = int(self.whole.sum())
        named = f"; {whole:,} with just these words as a title or name" if whole else ""
        return f"{len(self):,} photos by words ({'; '.join(parts + read)}){named}"


class WordIndex:
    """The words of a snapshot's photos.

    Attributes:
        segments: Each with some of the photos.
        doc_rows: For each segment, (n_docs,) int32 row of each document; -1 where it has left.
    """

    def __init__(self, segments: Sequence[Segment], doc_rows: Sequence[NDArray[np.int32]]) -> None:
        self.segments = list(segments)
        self.doc_rows = list(doc_rows)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments and of the rows of their documents."""
        return sum(segment.size_bytes for segment in self.segments) + sum(
            rows.nbytes for rows in self.doc_rows
        )

    # -- building, on disk, and back -----------------------------------------------------------

    @classmethod
    def build(
        cls,
        table: PhotoTable,
        *,
        withheld: Collection[str] = (),
        before: WordIndex | None = None,
        folder: Path | None = None,
        progress: Progress | None = None,
    ) -> WordIndex:
        """Index what is written about photos.

        Args:
            table: The photos.
            withheld: Columns that must not be read, because judgments were made from them.
            before: The index of the state before, whose segments are kept where they hold.
            folder: Where blocks are laid down while building; the system's folder if left out.
            progress: Told about every photo that is read.
        """
        segments: list[Segment] = []
        doc_rows: list[NDArray[np.int32]] = []
        missing = np.ones(len(table), dtype=np.bool_)
        if before is not None:
            digests = np.fromiter(
                (digest for digest, _ in _documents(table, withheld)), np.uint64, len(table)
            )
            for segment, rows in before._holding(digests):
                segments.append(segment)
                doc_rows.append(rows)
                missing[rows[rows >= 0]] = False
        new = np.flatnonzero(missing)
        if len(new):
            chosen = itertools.compress(_documents(table, withheld), missing.tolist())
            with (progress or Progress()).step("reading texts", len(new), unit="photos") as step:
                segments.append(build_segment(chosen, folder=folder, advance=step.advance))
            doc_rows.append(new.astype(np.int32))
        return cls(segments, doc_rows)

    def _holding(self, digests: NDArray[np.uint64]) -> list[tuple[Segment, NDArray[np.int32]]]:
        """Return the segments that are worth keeping, and where their photos are now."""
        order = np.argsort(digests, kind="stable")
        ordered = digests[order]
        missing = np.ones(len(digests), dtype=np.bool_)
        holding: list[tuple[Segment, NDArray[np.int32]]] = []
        for segment in sorted(self.segments, key=lambda some: -len(some)):
            theirs = segment.arrays["digests"]
            places = np.minimum(np.searchsorted(ordered, theirs), len(ordered) - 1)
            rows = np.where(ordered[places] == theirs, order[places], -1).astype(np.int32)
            live = rows[rows >= 0]
            n_left = int(np.count_nonzero(missing)) - len(live)
            # What is smaller than all that would be written anew is written anew with it.
            if len(live) >= max(1, n_left) and 2 * len(live) > len(theirs):
                holding.append((segment, rows))
                missing[live] = False
        return holding

    def save(self, folder: Path) -> None:
        """Write the index into the folder of a snapshot; segments that lie on disk are linked."""
        names: dict[str, NDArray[np.int32]] = {}
        for number, (segment, rows) in enumerate(zip(self.segments, self.doc_rows, strict=True)):
            path = folder / f"words-{number}.columns"
            if segment.path is not None:
                _link(segment.path, path)
            else:
                arrays = dict(segment.arrays)
                arrays |= {"terms.starts": segment.terms.starts, "terms.data": segment.terms.data}
                save_columns(path, arrays)
            names[f"rows-{number}"] = rows
        save_columns(folder / _NAMES, names)

    @classmethod
    def open(cls, folder: Path, n_photos: int) -> WordIndex:
        """Open what `save` wrote, by memory map.

        Args:
            folder: Of the snapshot.
            n_photos: Photos in its table.

        Raises:
            DataError: A file is missing, damaged or of other photos.
        """
        names = open_columns(folder / _NAMES)
        segments, doc_rows = [], []
        for number in range(len(names)):
            segment = Segment.open(folder / f"words-{number}.columns")
            rows = names.get(f"rows-{number}")
            if rows is None or len(rows) != len(segment) or int(rows.max(initial=-1)) >= n_photos:
                msg = (
                    f"{folder / _NAMES} must hold rows of {len(segment)} documents, got others; "
                    "index the photos again to rebuild it"
                )
                raise DataError(msg)
            segments.append(segment)
            doc_rows.append(rows)
        return cls(segments, doc_rows)

    # -- searching -----------------------------------------------------------------------------

    @cached_property
    def _n_photos(self) -> int:
        return sum(int((rows >= 0).sum()) for rows in self.doc_rows)

    @cached_property
    def _moved_rows(self) -> list[NDArray[np.int32]]:
        """For each segment its `doc_rows`, empty where each document is the row of its number."""
        none = np.zeros(0, dtype=np.int32)
        return [none if _is_range(rows) else rows for rows in self.doc_rows]

    def match(self, text: str, allowed: Bitmap | None = None) -> WordMatches:
        """Find the photos that words of a query are written about.

        Args:
            text: The query.
            allowed: Rows that may be found; all if left out.
        """
        words = words_of(text)
        looked_up = _content_words(words)
        lists, counts, read_as = self._lists(looked_up)
        n = max(1, self._n_photos)
        # As in BM25 (Robertson and Zaragoza, 2009): never below 0, largest where no photo has it.
        idf = np.array(
            [math.log1p((n - count + 0.5) / (count + 0.5)) for count in sorted(counts)], np.float32
        )
        parts = [
            add_up(segment, some, idf, rows, allowed)
            for segment, some, rows in zip(self.segments, lists, self._moved_rows, strict=True)
            if len(some.terms)
        ]
        matched = _join(parts)
        total = float(idf.sum()) or 1.0
        return WordMatches(
            rows=matched.rows,
            coverage=np.minimum(matched.coverage / np.float32(total), np.float32(1)),
            precision=matched.precision,
            whole=np.isin(matched.rows, self._wholes(whole_of(words))),
            counts={word.text: count for word, count in zip(looked_up, counts, strict=True)},
            read_as=read_as,
        )

    def _lists(self, words: Sequence[Word]) -> tuple[list[Lists], list[int], dict[str, list[str]]]:
        n_photos = self._n_photos
        forms = [self._forms(word) for word in words]
        read_as: dict[str, list[str]] = {}
        for place, word in enumerate(words):
            may_err = word.spelled and len(word.term) >= MIN_TYPO and word.term.isalpha()
            if may_err and not any(forms[place]):
                forms[place] = [
                    [(number, _MISSPELT) for number in segment.misspelt(word.term)]
                    for segment in self.segments
                ]
                terms = {
                    segment.terms[number]
                    for segment, some in zip(self.segments, forms[place], strict=True)
                    for number, _ in some
                }
                if terms:
                    read_as[word.text] = sorted(terms)
        counts = [min(self._count(form), n_photos) for form in forms]
        # Rare words lead: what common ones add is counted where a rare one is.
        order = sorted(range(len(words)), key=lambda place: (counts[place], place))
        most = max(_COMMON_FROM, _COMMON * n_photos)
        n_leading = sum(count <= most for count in counts)
        n_leading = n_leading if any(counts[place] for place in order[:n_leading]) else len(order)
        lists = []
        for number in range(len(self.segments)):
            here = [
                (term, new, fit)
                for new, place in enumerate(order)
                for term, fit in forms[place][number]
            ]
            lists.append(
                Lists(
                    np.array([term for term, _, _ in here], dtype=np.int64),
                    np.array([place for _, place, _ in here], dtype=np.int64),
                    np.array([fit for _, _, fit in here], dtype=np.float32),
                    n_leading,
                )
            )
        return lists, counts, read_as

    def _forms(self, word: Word) -> list[list[tuple[int, float]]]:
        """Return, for each segment, the terms that a word finds and how well they fit."""
        terms = {word.term: _AS_WRITTEN}
        if word.spelled:
            for segment in self.segments:
                for number in segment.forms(word.text):
                    terms.setdefault(segment.terms[number], _FORM)
        return [self._numbered(segment, terms) for segment in self.segments]

    @staticmethod
    def _numbered(segment: Segment, terms: dict[str, float]) -> list[tuple[int, float]]:
        numbers = ((segment.term(term), fit) for term, fit in terms.items())
        return sorted((number, fit) for number, fit in numbers if number is not None)

    def _count(self, form: list[list[tuple[int, float]]]) -> int:
        """Count the photos that have one of the terms of a word.

        Of very many postings each counts, also where a photo has several of the terms.
        """
        postings = [
            [segment.documents(term) for term, _ in terms]
            for segment, terms in zip(self.segments, form, strict=True)
        ]
        n_postings = sum(len(docs) for lists in postings for docs in lists)
        total = 0
        for lists, rows in zip(postings, self._moved_rows, strict=True):
            if len(lists) > 1:
                docs = np.concatenate(lists)
                docs = np.unique(docs) if n_postings <= _COUNTED_ONCE else docs
            else:
                docs = lists[0] if lists else np.zeros(0, dtype=np.uint32)
            total += int((rows[docs] >= 0).sum()) if len(rows) else len(docs)
        return total

    def _wholes(self, whole: str) -> NDArray[np.int64]:
        rows = [np.zeros(0, dtype=np.int64)]
        for segment, places in zip(self.segments, self.doc_rows, strict=True):
            docs, fields = segment.wholes(whole)
            rows.append(places[docs[(fields & _WHOLE_BITS) > 0]].astype(np.int64))
        return np.concatenate(rows)


def _content_words(words: list[str]) -> list[Word]:
    language = language_of(words)
    content = [word for word in words if not is_function_word(word, language)] or words
    terms = (term for word in dict.fromkeys(content) for term in terms_of(word, asked=True))
    return list(dict.fromkeys(terms))[:_MAX_WORDS]


def _join(parts: list[Matched]) -> Matched:
    if len(parts) == 1:
        return parts[0]
    nothing = np.zeros(0, dtype=np.float32)
    parts = [Matched(np.zeros(0, dtype=np.int64), nothing, nothing), *parts]
    rows, coverage, precision = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(rows, kind="stable")
    return Matched(rows[order], coverage[order], precision[order])


def _is_range(rows: NDArray[np.int32]) -> bool:
    return np.array_equal(rows, np.arange(len(rows), dtype=np.int32))


def _documents(table: PhotoTable, withheld: Collection[str]) -> Iterator[tuple[int, list[Written]]]:
    """Yield for each photo a digest of its id and its texts, and the texts."""
    for photo_id, written in zip(table.texts("photo_id"), texts_of(table, withheld), strict=True):
        whole = "\0".join([photo_id, *(f"{field}{text}" for field, text, _ in written)])
        yield hash_of(whole), written


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)
