"""Segment: some photos' words, written once and never changed.

Terms are numbered by their hashes, words before what has a digit. The postings of a term are the
documents that have it, ascending, each with the fields as bits, packed into bytes
(`searchlab.search.words.postings`). Everything is found by hashes
(`searchlab.search.words.hashed`): terms, stems, what is left of a term without one character, and
whole texts. Cameras give every photo a number of its own, so what has a digit is known by its hash
alone, and only words have their text here too.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, damaged_file
from searchlab.photos.columns import Texts, open_columns
from searchlab.search.filters.bitmaps import COMPILED_FROM, Bitmap
from searchlab.search.words.fields import ALL_FIELDS, FIELDS, WEIGHTS
from searchlab.search.words.hashed import Hashed
from searchlab.search.words.languages import LANGUAGES, stem_key
from searchlab.search.words.postings import PADDING, WORD, ListHead, damaged, decode, read_head
from searchlab.search.words.terms import deletions, has_digit, hash_of, one_edit_apart

ARRAYS = {
    "post_starts": np.uint32,  # (n_terms + 1,) where the postings of each term begin
    "post_bytes": np.uint8,
    "word_firsts": np.uint32,  # by hash: terms without a digit, in the order of their numbers
    "word_rests": np.uint32,
    "numeral_firsts": np.uint32,  # by hash: terms with one, whose numbers follow
    "numeral_rests": np.uint32,
    "stem_firsts": np.uint32,  # by hash
    "stem_rests": np.uint32,
    "stem_terms": np.uint32,
    "typo_firsts": np.uint32,  # by hash
    "typo_rests": np.uint32,
    "typo_terms": np.uint32,
    "whole_firsts": np.uint32,  # by hash
    "whole_rests": np.uint32,
    "whole_docs": np.uint32,  # documents, and in the lowest bits the place in `WHOLES`
    "digests": np.uint64,  # (n_docs,) of all that is written about a photo, and of which
    "lengths": np.uint8,  # (2 * n_docs,) words of the title and of the description in turn
    "languages": np.uint32,  # places in LANGUAGES that words were stemmed in
}
KINDS = ("word", "numeral", "stem", "typo", "whole")
"""Kinds of hash lookups."""

WHOLES = np.array(
    [1 << number for number, field in enumerate(FIELDS) if field.whole], dtype=np.uint8
)
"""Bits of the fields whose texts may be a query's whole."""

WHOLE_BITS = 2
"""Low bits of `whole_docs` that tell the field."""

MIN_TYPO = 5
"""Letters from which on a word of a query may be misspelt."""

_SOUND = "sound postings"

_HITS = np.dtype("<u2")
_HITS_OF = np.array([bits & 1 | (bits >> 1 & 1) << 8 for bits in range(256)], dtype=_HITS)
"""Two bytes for each set of fields: whether the title is one of them, and the description."""


class Segment:
    """The words of some photos.

    Attributes:
        path: Its file; None where it is in memory.
        arrays: By the names of `ARRAYS`.
        terms: The words by number.
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
        for name, dtype in ARRAYS.items():
            if self.arrays[name].dtype != dtype or self.arrays[name].ndim != 1:
                msg = f"{name} of {self.arrays[name].dtype}"
                raise DataError(msg)
        self._hashed = {
            kind: Hashed(self.arrays[f"{kind}_firsts"], self.arrays[f"{kind}_rests"])
            for kind in KINDS
        }
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
            raise damaged_file(path, "hold words", error) from error

    def __len__(self) -> int:
        return len(self.arrays["digests"])

    @property
    def size_bytes(self) -> int:
        """Bytes of all its arrays."""
        arrays = (*self.arrays.values(), self.terms.data, self.terms.starts)
        return sum(int(array.nbytes) for array in arrays)

    def _check(self) -> None:
        """Check what can be checked without reading all; the rest is checked where it is read."""
        parts, n_words = self.arrays, len(self.terms)
        sound = (
            len(self._hashed["word"]) == n_words
            and len(parts["post_starts"]) == n_words + len(self._hashed["numeral"]) + 1
            and int(parts["post_starts"][-1]) + PADDING <= len(parts["post_bytes"])
            and len(parts["post_bytes"]) % WORD == 0
            and len(parts["lengths"]) == 2 * len(self)
            and all(
                len(self._hashed[kind]) == len(parts[values])
                for kind, values in (
                    ("stem", "stem_terms"),
                    ("typo", "typo_terms"),
                    ("whole", "whole_docs"),
                )
            )
            and bool((parts["languages"] < len(LANGUAGES)).all())
        )
        if not sound:
            msg = "arrays that do not fit together"
            raise DataError(msg)

    # -- looking up ----------------------------------------------------------------------------

    def term(self, term: str) -> int | None:
        """Return the number of a term; None if no photo has it."""
        kind = "numeral" if has_digit(term) else "word"
        places = self._hashed[kind].places(hash_of(term))
        if kind == "word":
            numbers = range(places.start, places.stop)
            return next((number for number in numbers if self.terms[number] == term), None)
        return len(self.terms) + places.start if places.start < places.stop else None

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
        places = self._hashed["whole"].places(hash_of(whole))
        coded = self.arrays["whole_docs"][places]
        docs, fields = np.divmod(coded, np.uint32(1 << WHOLE_BITS))
        if len(coded) and (docs.max() >= len(self) or fields.max() >= len(WHOLES)):
            wanted = "whole texts of its documents"
            raise self.refused(wanted)
        return docs, np.asarray(WHOLES[fields])

    def postings(self, term: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Return the documents that have a term, ascending, and their fields as bits."""
        begin, end = self.arrays["post_starts"][term : term + 2].tolist()
        data, n_docs = self.arrays["post_bytes"], len(self)
        try:
            if n_docs < COMPILED_FROM:
                return decode(data, begin, end, n_docs)
            from searchlab.search.words._kernels import postings

            count = read_head(data, begin, end, n_docs).length
            docs, fields = np.empty(count, dtype=np.uint32), np.empty(count, dtype=np.uint8)
            if not postings.decode(data, begin, end, n_docs, docs, fields):
                raise damaged()
        except DataError as error:
            raise self.refused() from error
        return docs, fields

    def documents(self, term: int, read: int = ALL_FIELDS) -> NDArray[np.uint32]:
        """Return the documents that have a term in one of some fields, as bits."""
        docs, fields = self.postings(term)
        return docs if read == ALL_FIELDS else docs[(fields & np.uint8(read)) > 0]

    def count(self, term: int, read: int = ALL_FIELDS) -> int:
        """Count the documents that have a term in one of some fields, as bits."""
        begin, end = self.arrays["post_starts"][term : term + 2].tolist()
        head = self._head(begin, end)
        if read == ALL_FIELDS or head.fields & read:
            return head.length
        if head.fields:
            return 0
        return int(np.count_nonzero(self.arrays["post_bytes"][head.stop : end] & np.uint8(read)))

    def _head(self, begin: int, end: int) -> ListHead:
        try:
            return read_head(self.arrays["post_bytes"], begin, end, len(self))
        except DataError as error:
            raise self.refused() from error

    def _all(self, kind: str, hashes: list[int]) -> list[int]:
        numbers: set[int] = set()
        for hashed in hashes:
            numbers.update(self.arrays[f"{kind}_terms"][self._hashed[kind].places(hashed)].tolist())
        if numbers and max(numbers) >= len(self.terms):
            wanted = "terms that it has"
            raise self.refused(wanted)
        return sorted(numbers)

    def refused(self, wanted: str = _SOUND) -> DataError:
        """Return the error that says what the file must hold."""
        return damaged_file(self.path or Path("words"), f"hold {wanted}", "others")


@lru_cache(maxsize=2**16)
def _stem_hash(word: str, language: int) -> int | None:
    key = stem_key(word, language)
    return None if key is None else hash_of(key)


# -- adding up ------------------------------------------------------------------------------------


class PostingLists(NamedTuple):
    """Lists of postings that a query reads in a segment; those of one word stand together.

    Attributes:
        terms: (n_lists,) int64 numbers of terms.
        words: (n_lists,) int64 which word of the query each is for, ascending.
        quality: (n_lists,) float32 how well the term fits the word, above 0 to 1.
        n_leading: Words, the first ones, that a photo must have one of; the others only add to it.
        n_most: Photos that have one of these words, or more.
        read: Fields that are read, as bits.
    """

    terms: NDArray[np.int64]
    words: NDArray[np.int64]
    quality: NDArray[np.float32]
    n_leading: int
    n_most: int
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

    starts = segment.arrays["post_starts"]
    room = min(lists.n_most, len(segment))
    rows = np.empty(room, dtype=np.int32)
    coverage, precision = np.empty(room, dtype=np.float32), np.empty(room, dtype=np.float32)
    bits = np.zeros(0, dtype=np.uint64) if allowed is None else allowed.words
    count = postings.add_up(
        segment.arrays["post_bytes"],
        doc_rows,
        segment.arrays["lengths"],
        bits,
        starts[lists.terms],
        starts[lists.terms + 1],
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
        raise segment.refused()
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
    docs, fields = segment.postings(int(lists.terms[place]))
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
