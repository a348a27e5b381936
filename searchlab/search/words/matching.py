"""Matching: what a query's words find in one segment, in numpy; large segments use the kernel."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.search.filters.bitmaps import COMPILED_FROM, Bitmap
from searchlab.search.words.fields import ALL_FIELDS, WEIGHTS
from searchlab.search.words.segment import Segment

_HITS = np.dtype("<u2")
_HITS_OF = np.array([bits & 1 | (bits >> 1 & 1) << 8 for bits in range(256)], dtype=_HITS)
"""Two bytes for each set of fields: whether the title is one of them, and the description."""


class Lists(NamedTuple):
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
    lists: Lists,
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


def join_parts(parts: list[Matched]) -> Matched:
    """Put what was matched in each segment together, by row."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.zeros(0, dtype=np.float32)
    parts = [Matched(np.zeros(0, dtype=np.int64), nothing, nothing), *parts]
    rows, coverage, precision = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(rows, kind="stable")
    return Matched(rows[order], coverage[order], precision[order])


def _compiled(
    segment: Segment,
    lists: Lists,
    idf: NDArray[np.float32],
    doc_rows: NDArray[np.int32],
    allowed: Bitmap | None,
) -> Matched:
    from searchlab.errors import DataError
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
    lists: Lists,
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


def _postings(segment: Segment, lists: Lists, place: int) -> _Postings:
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
