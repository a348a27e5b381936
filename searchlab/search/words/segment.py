"""Segment: some photos' words, written once and never changed, and what a query's words find there.

Terms are numbered, words in the order in which they were first met, then what has a digit. The
postings of a term are the documents that have it, ascending, each with the fields as bits.
Everything else is found by 64-bit hashes in sorted arrays: terms, stems, what is left of a term
without one character, and whole texts. What a query finds is added up in numpy; large segments use
the kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.photos.columns import Texts, open_columns
from searchlab.search.filters.bitmaps import COMPILED_FROM, Bitmap
from searchlab.search.words.fields import ALL_FIELDS, WEIGHTS
from searchlab.search.words.terms import LANGUAGES, deletions, hash_of, one_edit_apart, stem_key

ARRAYS = {
    "post_starts": np.int64,  # (n_terms + 1,)
    "post_docs": np.uint32,  # (n_postings,)
    "post_fields": np.uint8,
    "term_hashes": np.uint64,  # (n_terms,) sorted
    "term_numbers": np.uint32,
    "stem_hashes": np.uint64,  # (n_stems,) sorted
    "stem_terms": np.uint32,
    "typo_hashes": np.uint64,  # (n_typos,) sorted
    "typo_terms": np.uint32,
    "whole_hashes": np.uint64,  # (n_wholes,) sorted
    "whole_docs": np.uint32,
    "whole_fields": np.uint8,
    "digests": np.uint64,  # (n_docs,) of all that is written about a photo, and of which
    "lengths": np.uint8,  # (2 * n_docs,) words of the title and of the description in turn
    "languages": np.uint32,  # places in LANGUAGES that words were stemmed in
}
MIN_TYPO = 5
"""Letters from which on a word of a query may be misspelt."""


class Segment:
    """The words of some photos.

    Attributes:
        path: Its file; None where it is in memory.
        arrays: By the names of `ARRAYS`.
    """

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], terms: Texts, path: Path | None = None
    ) -> None:
        """Take the parts.

        Raises:
            DataError: They do not fit together.
        """
        self.path = path
        self.arrays = {name: arrays[name] for name in ARRAYS}
        self.terms = terms
        self._check()

    @classmethod
    def open(cls, path: Path) -> Segment:
        """Open a segment by memory map.

        Raises:
            DataError: The file is missing, cut short, or of another kind.
        """
        columns = open_columns(path)
        try:
            return cls(columns, columns.texts("terms"), path)
        except (KeyError, ValueError, DataError) as error:
            msg = f"{path} must hold words, got: {error}; index the photos again to rebuild it"
            raise DataError(msg) from error

    def __len__(self) -> int:
        return len(self.arrays["digests"])

    @property
    def size_bytes(self) -> int:
        """Bytes of all its arrays."""
        arrays = (*self.arrays.values(), self.terms.data, self.terms.starts)
        return sum(int(array.nbytes) for array in arrays)

    def _check(self) -> None:
        parts = self.arrays
        for name, dtype in ARRAYS.items():
            if parts[name].dtype != dtype or parts[name].ndim != 1:
                msg = f"{name} of {parts[name].dtype}"
                raise DataError(msg)
        starts, n_docs, n_terms = parts["post_starts"], len(self), len(self.terms)
        sound = (
            len(starts) == n_terms + 1 == len(parts["term_numbers"]) + 1
            and starts[0] == 0
            and starts[-1] == len(parts["post_docs"]) == len(parts["post_fields"])
            and bool((np.diff(starts) >= 0).all())
            and len(parts["lengths"]) == 2 * n_docs
            and all(
                len(parts[f"{kind}_hashes"]) == len(parts[names])
                for kind, names in (
                    ("term", "term_numbers"),
                    ("stem", "stem_terms"),
                    ("typo", "typo_terms"),
                    ("whole", "whole_docs"),
                )
            )
            and len(parts["whole_fields"]) == len(parts["whole_docs"])
            and bool((parts["languages"] < len(LANGUAGES)).all())
        )
        numbers = (parts["term_numbers"], parts["stem_terms"], parts["typo_terms"])
        sound = sound and all(int(some.max(initial=0)) < max(1, n_terms) for some in numbers)
        documents = (parts["whole_docs"], parts["post_docs"])
        sound = sound and all(int(some.max(initial=0)) < max(1, n_docs) for some in documents)
        if not sound:
            msg = "arrays that do not fit together"
            raise DataError(msg)

    # -- looking up ----------------------------------------------------------------------------

    def term(self, term: str) -> int | None:
        """Return the number of a term; None if no photo has it."""
        places = self._at("term_hashes", hash_of(term))
        numbers = self.arrays["term_numbers"][places].tolist()
        return next((number for number in numbers if self.terms[number] == term), None)

    def forms(self, word: str) -> list[int]:
        """Return the terms that have a stem in common with a word, in a language of theirs."""
        hashes = (_stem_hash(word, language) for language in self.arrays["languages"].tolist())
        return self._all("stem", [hashed for hashed in hashes if hashed is not None])

    def misspelt(self, term: str) -> list[int]:
        """Return the terms that are one edit apart from a term; only words, no numbers."""
        near = self._all("typo", [hash_of(rest) for rest in deletions(term)])
        return [number for number in near if one_edit_apart(term, self.terms[number])]

    def wholes(self, whole: str) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Return the documents with a text that is all of `whole`, and its fields as bits."""
        places = self._at("whole_hashes", hash_of(whole))
        return self.arrays["whole_docs"][places], self.arrays["whole_fields"][places]

    def documents(self, term: int, read: int = ALL_FIELDS) -> NDArray[np.uint32]:
        """Return the documents that have a term in one of some fields, as bits."""
        start, end = self.arrays["post_starts"][term : term + 2].tolist()
        docs = np.asarray(self.arrays["post_docs"][start:end])
        if read == ALL_FIELDS:
            return docs
        return np.asarray(docs[(self.arrays["post_fields"][start:end] & np.uint8(read)) > 0])

    def count(self, term: int, read: int = ALL_FIELDS) -> int:
        """Count the documents that have a term in one of some fields, as bits."""
        start, end = self.arrays["post_starts"][term : term + 2].tolist()
        if read == ALL_FIELDS:
            return int(end - start)
        return int(np.count_nonzero(self.arrays["post_fields"][start:end] & np.uint8(read)))

    def _all(self, kind: str, wanted_hashes: list[int]) -> list[int]:
        hashes = self.arrays[f"{kind}_hashes"]
        wanted = np.array(wanted_hashes, dtype=np.uint64)
        firsts = np.searchsorted(hashes, wanted)
        lasts = np.searchsorted(hashes, wanted, side="right")
        numbers: set[int] = set()
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            numbers.update(self.arrays[f"{kind}_terms"][first:last].tolist())
        return sorted(numbers)

    def _at(self, name: str, hashed: int) -> slice:
        hashes, key = self.arrays[name], np.uint64(hashed)
        first = int(hashes.searchsorted(key))
        return slice(first, first + int(hashes[first:].searchsorted(key, side="right")))


@lru_cache(maxsize=2**16)
def _stem_hash(word: str, language: int) -> int | None:
    key = stem_key(word, language)
    return None if key is None else hash_of(key)


# -- what the words of a query find -------------------------------------------------------------

_HITS = np.dtype("<u2")
_HITS_OF = np.array([bits & 1 | (bits >> 1 & 1) << 8 for bits in range(256)], dtype=_HITS)
"""Two bytes for each set of fields: whether the title is one of them, and the description."""


class PostingLists(NamedTuple):
    """Lists of postings that a query reads in a segment; those of one word stand together.

    Attributes:
        terms: (n_lists,) int64 numbers of terms.
        words: (n_lists,) int64 which word of the query each is for, ascending.
        quality: (n_lists,) float32 how well the term fits the word, above 0 to 1.
        n_leading: Words, the first ones, that a photo must have one of; the others only add to it.
        read: Fields that are read, as bits.
    """

    terms: NDArray[np.int64]
    words: NDArray[np.int64]
    quality: NDArray[np.float32]
    n_leading: int
    read: int = ALL_FIELDS


class Matched(NamedTuple):
    """Photos with words of a query.

    Attributes:
        rows: (n,) int64, ascending.
        coverage: (n,) float32, sum over the words of idf times the weight of the best field.
        precision: (n,) float32, share of the title or of the description, whichever is larger, that
            is words of the query, 0 to 1.
    """

    rows: NDArray[np.int64]
    coverage: NDArray[np.float32]
    precision: NDArray[np.float32]


def add_up(
    segment: Segment,
    lists: PostingLists,
    idf: NDArray[np.float32],
    doc_rows: NDArray[np.int32],
    allowed: Bitmap | None,
) -> Matched:
    """Add up what each photo of a segment matches.

    Args:
        segment: The words.
        lists: What is read.
        idf: (n_words,) float32.
        doc_rows: (n_docs,) row of each document, ascending; -1 where its photo has left. Empty
            where each document is the row of its number.
        allowed: Rows that may be found; all if left out.
    """
    add = _compiled if len(segment) >= COMPILED_FROM else _plain
    return add(segment, lists, idf, doc_rows, allowed)


def _compiled(
    segment: Segment,
    lists: PostingLists,
    idf: NDArray[np.float32],
    doc_rows: NDArray[np.int32],
    allowed: Bitmap | None,
) -> Matched:
    from searchlab.search.words._kernels import postings

    parts = segment.arrays
    begins, ends = parts["post_starts"][lists.terms], parts["post_starts"][lists.terms + 1]
    leading = lists.words < lists.n_leading
    room = min(int((ends - begins)[leading].sum()), len(segment))
    rows = np.empty(room, dtype=np.int32)
    coverage, precision = np.empty(room, dtype=np.float32), np.empty(room, dtype=np.float32)
    bits = np.zeros(0, dtype=np.uint64) if allowed is None else allowed.words
    count = postings.add_up(
        parts["post_docs"],
        parts["post_fields"],
        doc_rows,
        parts["lengths"],
        bits,
        begins,
        ends,
        lists.words,
        lists.quality,
        idf,
        lists.n_leading,
        lists.read,
        WEIGHTS,
        rows,
        coverage,
        precision,
    )
    if count < 0:
        msg = (
            f"{segment.path} must hold postings in ascending order, got others; index again with "
            "`searchlab index --data DIR --rebuild`, nothing is embedded twice"
        )
        raise DataError(msg)
    return Matched(rows[:count].astype(np.int64), coverage[:count], precision[:count])


def _plain(
    segment: Segment,
    lists: PostingLists,
    idf: NDArray[np.float32],
    doc_rows: NDArray[np.int32],
    allowed: Bitmap | None,
) -> Matched:
    n = len(segment)
    coverage, hits = np.zeros(n, dtype=np.float32), np.zeros(n, dtype=_HITS)
    of_words = lists.words.tolist()
    touched = None
    for word, places in itertools.groupby(range(len(of_words)), of_words.__getitem__):
        if word >= lists.n_leading and touched is None:
            touched = coverage > 0
        postings = [_postings(segment, lists, place) for place in places]
        docs, weights, fields = postings[0] if len(postings) == 1 else _best_of(postings, n)
        coverage[docs] += idf[word] * weights
        hits[docs] += _HITS_OF[fields]
    touched = coverage > 0 if touched is None else touched
    docs = np.flatnonzero(touched & (doc_rows >= 0) if len(doc_rows) else touched)
    rows = doc_rows[docs].astype(np.int64) if len(doc_rows) else docs
    if allowed is not None:
        passes = allowed.holds(rows)
        docs, rows = docs[passes], rows[passes]
    counts = hits[docs].view(np.uint8).reshape(-1, 2).astype(np.float32)
    lengths = segment.arrays["lengths"].reshape(-1, 2)[docs]
    shares = counts / np.maximum(lengths, 1).astype(np.float32)
    precision = np.minimum(np.maximum(shares[:, 0], shares[:, 1]), np.float32(1))
    return Matched(rows, coverage[docs], precision)


class _Postings(NamedTuple):
    """Documents that have a word, each once, how much it counts there, and its fields as bits."""

    docs: NDArray[np.integer]
    weights: NDArray[np.float32]
    fields: NDArray[np.uint8]


def _postings(segment: Segment, lists: PostingLists, place: int) -> _Postings:
    start, end = segment.arrays["post_starts"][lists.terms[place] :][:2].tolist()
    docs = segment.arrays["post_docs"][start:end]
    fields = segment.arrays["post_fields"][start:end]
    if lists.read != ALL_FIELDS:
        fields = fields & np.uint8(lists.read)
        docs, fields = docs[fields > 0], fields[fields > 0]
    return _Postings(docs, WEIGHTS[fields] * lists.quality[place], fields)


def _best_of(postings: list[_Postings], n: int) -> _Postings:
    """Put the postings of a word's terms together: the best weight and all fields of a document."""
    best, bits = np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.uint8)
    for docs, weights, fields in postings:
        best[docs] = np.maximum(best[docs], weights)
        bits[docs] |= fields
    docs = np.flatnonzero(bits)
    return _Postings(docs, best[docs], bits[docs])
