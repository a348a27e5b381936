"""WordIndex: photos by what is written about them, beside the index of their vectors.

It is made of segments that never change. A new snapshot keeps the segments of the one before, as
links, and adds one for the photos whose texts are new; small segments are joined with it, so that
there are never many (O'Neil and others, "The log-structured merge-tree", 1996). What has left is
not found, but a segment knows the languages of words also from texts that have left it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import damaged_file
from searchlab.files import link_or_copy
from searchlab.photos.columns import open_columns, save_columns
from searchlab.photos.table import PhotoTable
from searchlab.progress import Progress
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.words.build import build_segment
from searchlab.search.words.fields import ALL_FIELDS, FIELDS, documents_of
from searchlab.search.words.languages import content_words
from searchlab.search.words.matches import FoundBefore, WordMatches, mark, rarity
from searchlab.search.words.segment import MIN_TYPO, Matched, PostingLists, Segment, add_up
from searchlab.search.words.terms import (
    Word,
    has_digit,
    terms_of,
    whole_of,
    words_of,
    words_of_query,
)

_NAMES = "words.columns"
_AS_WRITTEN, _FORM, _MISSPELT = 1.0, 0.9, 0.6
_MARKED_FROM = 20_000  # postings of a word whose photos are marked to be counted, not sorted
_COMMON, _COMMON_FROM = 0.02, 5_000  # share and number of photos above which a word is common
_KNOWN = 4_096  # words whose terms and photos are remembered
_FILTERED_AFTER = 16_384  # photos up to which all matches are found and then filtered
_WHOLE_BITS = sum(1 << number for number, field in enumerate(FIELDS) if field.whole)


class _LookedUp(NamedTuple):
    """What is computed once for each query word.

    Attributes:
        forms: For each segment, numbers of the terms that it finds and how well they fit.
        n_photos: Photos that have one of them.
        read_as: The terms, where it is misspelt.
    """

    forms: list[list[tuple[int, float]]]
    n_photos: int
    read_as: list[str]


class WordIndex:
    """The words of a snapshot's photos.

    Attributes:
        segments: Each with some of the photos.
        doc_rows: For each segment, (n_docs,) int32 row of each document; -1 where it has left.
        found_before: What queries found that were asked before.
    """

    def __init__(self, segments: Sequence[Segment], doc_rows: Sequence[NDArray[np.int32]]) -> None:
        self.segments = list(segments)
        self.doc_rows = list(doc_rows)
        self._known: dict[tuple[Word, int, bool], _LookedUp] = {}
        self.found_before = FoundBefore()

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
                (digest for digest, _ in documents_of(table, withheld)), np.uint64, len(table)
            )
            for segment, rows in before._holding(digests):
                segments.append(segment)
                doc_rows.append(rows)
                missing[rows[rows >= 0]] = False
        new = np.flatnonzero(missing)
        if len(new):
            chosen = itertools.compress(documents_of(table, withheld), missing.tolist())
            with (progress or Progress()).step("reading texts", len(new), unit="photos") as step:
                segments.append(build_segment(chosen, folder=folder, advance=step.advance))
            doc_rows.append(new.astype(np.int32))
        return cls(segments, doc_rows)

    def _holding(self, digests: NDArray[np.uint64]) -> list[tuple[Segment, NDArray[np.int32]]]:
        """Return the segments that are worth keeping, and where their photos are now."""
        if not len(digests):
            return []
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
                link_or_copy(segment.path, path)
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
        is_new = np.ones(n_photos, dtype=np.bool_)
        for number in range(len(names)):
            segment = Segment.open(folder / f"words-{number}.columns")
            rows = names.get(f"rows-{number}")
            if rows is None or len(rows) != len(segment) or not _are_rows(rows, is_new):
                must = f"hold rows of {len(segment)} documents"
                raise damaged_file(folder / _NAMES, must, "others")
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

    def match(
        self,
        text: str,
        allowed: Bitmap | None = None,
        *,
        read: int = ALL_FIELDS,
        known: frozenset[str] = frozenset(),
    ) -> WordMatches:
        """Find the photos that words of a query are written about.

        Args:
            text: The query.
            allowed: Rows that may be found; all if left out.
            read: Fields that are read, as bits; nothing is found by what stands in others.
            known: Words that are no typing errors, folded: they find what is spelt like them alone.
        """
        matches = self.found_before.get(text, read, known)
        if matches is None:
            # Of many photos those that pass are found quicker than all.
            many = allowed is not None and self._n_photos > _FILTERED_AFTER
            matches = self._find(text, allowed if many else None, read, known)
            if many:
                return matches
            self.found_before.keep(text, matches, known)
        return matches if allowed is None else matches.under(allowed)

    def _find(
        self, text: str, allowed: Bitmap | None, read: int, known: frozenset[str]
    ) -> WordMatches:
        words = words_of_query(text, lambda word: self._is_written(word, read))
        looked_up = content_words(words)
        lists, counts, read_as = self._lists(looked_up, read, known)
        idf = np.array([rarity(count, self._n_photos) for count in sorted(counts)], np.float32)
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
            whole=mark(self._wholes({*map(whole_of, (words, words_of(text)))}, read), matched.rows),
            counts={word.text: count for word, count in zip(looked_up, counts, strict=True)},
            read_as=read_as,
            n_photos=self._n_photos,
            read=read,
        )

    def _lists(
        self, words: Sequence[Word], read: int, known: frozenset[str]
    ) -> tuple[list[PostingLists], list[int], dict[str, list[str]]]:
        n_photos = self._n_photos
        found = [self._look_up(word, read, word.term not in known) for word in words]
        forms = [one.forms for one in found]
        counts = [one.n_photos for one in found]
        read_as = {
            word.text: one.read_as for word, one in zip(words, found, strict=True) if one.read_as
        }
        # Rare words lead: what common ones add is counted where a rare one is.
        order = sorted(range(len(words)), key=lambda place: (counts[place], place))
        most = max(_COMMON_FROM, _COMMON * n_photos)
        n_leading = sum(count <= most for count in counts)
        n_leading = n_leading if any(counts[place] for place in order[:n_leading]) else len(order)
        n_most = sum(counts[place] for place in order[:n_leading])
        lists = []
        for number in range(len(self.segments)):
            here = [
                (term, new, fit)
                for new, place in enumerate(order)
                for term, fit in forms[place][number]
            ]
            lists.append(
                PostingLists(
                    np.array([term for term, _, _ in here], dtype=np.int64),
                    np.array([place for _, place, _ in here], dtype=np.int64),
                    np.array([fit for _, _, fit in here], dtype=np.float32),
                    n_leading,
                    n_most,
                    read,
                )
            )
        return lists, counts, read_as

    def _look_up(self, word: Word, read: int, is_forgiven: bool) -> _LookedUp:
        """Find the terms of a word, those one edit away where it has none, and count its photos."""
        may_err = is_forgiven and _may_err(word)
        before = self._known.get((word, read, may_err))
        if before is not None:
            return before
        forms, read_as = self._forms(word, read), list[str]()
        n_photos = self._count(forms, read)
        if may_err and not n_photos:
            forms = [
                [
                    (n, _MISSPELT)
                    for n in segment.misspelt(word.term)
                    if _is_live(segment, n, rows, read)
                ]
                for segment, rows in zip(self.segments, self._moved_rows, strict=True)
            ]
            n_photos = self._count(forms, read)
            pairs = zip(self.segments, forms, strict=True)
            read_as = sorted({segment.terms[term] for segment, some in pairs for term, _ in some})
        known = _LookedUp(forms, n_photos, read_as)
        if len(self._known) >= _KNOWN:
            self._known = {}  # anew, so that nobody's reading of the old ones is disturbed
        self._known[word, read, may_err] = known
        return known

    def _forms(self, word: Word, read: int) -> list[list[tuple[int, float]]]:
        """Return, for each segment, the terms that a word finds and how well they fit."""
        terms = {word.term: _AS_WRITTEN}
        if word.spelled and len(self.segments) == 1:
            (segment,) = self.segments
            numbers = (n for n in segment.forms(word.text) if segment.count(n, read))
            fits = dict.fromkeys(numbers, _FORM) | dict(self._numbered(segment, terms, read))
            return [sorted(fits.items())]
        if word.spelled:
            for segment in self.segments:
                for number in segment.forms(word.text):
                    terms.setdefault(segment.terms[number], _FORM)
        return [self._numbered(segment, terms, read) for segment in self.segments]

    @staticmethod
    def _numbered(segment: Segment, terms: dict[str, float], read: int) -> list[tuple[int, float]]:
        numbers = ((segment.term(term), fit) for term, fit in terms.items())
        return sorted(
            (number, fit)
            for number, fit in numbers
            if number is not None and segment.count(number, read)
        )

    def _count(self, form: list[list[tuple[int, float]]], read: int) -> int:
        """Count the photos that have one of the terms of a word."""
        total = 0
        for segment, terms, rows in zip(self.segments, form, self._moved_rows, strict=True):
            if len(terms) < 2 and not len(rows):
                total += sum(segment.count(term, read) for term, _ in terms)
                continue
            lists = [segment.documents(term, read) for term, _ in terms]
            if sum(map(len, lists)) > _MARKED_FROM:
                marks = np.zeros(len(segment), dtype=np.bool_)
                for docs in lists:
                    marks[docs] = True
                total += int(np.count_nonzero(marks & (rows >= 0) if len(rows) else marks))
            elif lists:
                docs = np.unique(np.concatenate(lists))
                total += int((rows[docs] >= 0).sum()) if len(rows) else len(docs)
        return total

    def _is_written(self, word: str, read: int) -> bool:
        terms = terms_of(word, asked=True)
        return all(self._look_up(term, read, is_forgiven=False).n_photos for term in terms)

    def _wholes(self, wholes: Collection[str], read: int) -> NDArray[np.int64]:
        rows = [np.zeros(0, dtype=np.int64)]
        for segment, places in zip(self.segments, self.doc_rows, strict=True):
            for docs, fields in map(segment.wholes, wholes):
                rows.append(places[docs[(fields & read & _WHOLE_BITS) > 0]].astype(np.int64))
        return np.concatenate(rows)


def _is_live(segment: Segment, term: int, rows: NDArray[np.int32], read: int) -> bool:
    """Say whether a photo that is still there has a term."""
    if not len(rows):
        return segment.count(term, read) > 0
    return bool((rows[segment.documents(term, read)] >= 0).any())


def _may_err(word: Word) -> bool:
    return word.spelled and len(word.term) >= MIN_TYPO and not has_digit(word.term)


def _join(parts: list[Matched]) -> Matched:
    """Put what was matched in each segment together, by row."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.zeros(0, dtype=np.float32)
    parts = [Matched(np.zeros(0, dtype=np.int64), nothing, nothing), *parts]
    rows, coverage, precision = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(rows, kind="stable")
    return Matched(rows[order], coverage[order], precision[order])


def _are_rows(rows: NDArray[np.int32], is_new: NDArray[np.bool_]) -> bool:
    """Say whether documents have rows of their own, ascending or -1, and mark these as taken."""
    if rows.dtype != np.int32:
        return False
    live = rows[rows != -1]
    if not 0 <= live.min(initial=0) <= live.max(initial=-1) < len(is_new) and len(live):
        return False
    if (np.diff(live) <= 0).any() or not is_new[live].all():
        return False
    is_new[live] = False
    return True


def _is_range(rows: NDArray[np.int32]) -> bool:
    return np.array_equal(rows, np.arange(len(rows), dtype=np.int32))
