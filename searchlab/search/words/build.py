"""Building a segment: photos are read one after the other, postings sorted in blocks on disk.

Memory holds the vocabulary, one block of postings, and some bytes a photo. Terms with a digit are
no part of the vocabulary, since cameras give every photo a number of its own: they are known by
their hashes and put in order at the end.
"""

from __future__ import annotations

import functools
import operator
import re
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.photos.columns import Texts, pack_texts
from searchlab.search.words.fields import FIELDS, Written
from searchlab.search.words.segment import MIN_TYPO, Segment
from searchlab.search.words.terms import (
    LANGUAGES,
    UNTOLD,
    Word,
    choose_language,
    deletions,
    fold,
    hash_of,
    languages_of_word,
    stem_key,
    terms_of,
    words_of,
    words_of_name,
)

_BLOCK = 2**22  # postings that are sorted at once
_MAX_WHOLE = 500  # characters of a text that somebody may type as a whole
_MAX_TYPO = 24  # letters of a word that is looked for when misspelt
_MOST = 255
_DESCRIPTION = 1  # the last of the fields that are sentences
_SENTENCES = 0b11
_UNTOLD = 1 << UNTOLD  # of texts that do not tell their language
_REMEMBERED = 100_000  # texts of names, places and folders, and words with digits
_HAS_DIGIT = re.compile(r"\d").search


def build_segment(
    documents: Iterable[tuple[int, list[Written]]],
    *,
    folder: Path | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Segment:
    """Build a segment in memory or from blocks on disk.

    Args:
        documents: Digest and texts of each photo.
        folder: Where blocks are laid down while building; the system's folder if left out.
        advance: Told how many photos were read.
    """
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        writer = _Writer(place)
        n = 0
        for n, (digest, written) in enumerate(documents, start=1):
            writer.add(digest, written)
            if n % 1_000 == 0:
                advance(1_000)
        advance(n % 1_000)
        return writer.finish()


class _KnownWord(NamedTuple):
    """What is worked out once for a word, however many photos have it."""

    terms: tuple[int, ...]
    numerals: tuple[str, ...]  # terms with a digit
    folded: str
    languages: tuple[int, ...]


class _Numerals:
    """Postings of terms with a digit, in the order of the photos until they are sorted."""

    def __init__(self) -> None:
        self._hashes, self._docs, self._fields = array("Q"), array("I"), array("B")
        self._texts, self._ends = bytearray(), array("Q", [0])

    def add(self, term: str, doc: int, fields: int) -> None:
        self._hashes.append(hash_of(term))
        self._docs.append(doc)
        self._fields.append(fields)
        self._texts += term.encode()
        self._ends.append(len(self._texts))

    def sort(self) -> _SortedNumerals:
        hashes = np.array(self._hashes, dtype=np.uint64)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        firsts = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        return _SortedNumerals(
            self._texts_at(order[firsts]),
            hashes[firsts],
            np.diff(firsts, append=len(hashes)),
            np.array(self._docs, dtype=np.uint32)[order],
            np.array(self._fields, dtype=np.uint8)[order],
        )

    def _texts_at(self, places: NDArray[np.int64]) -> Texts:
        # Without a string for each, of which there may be as many as photos.
        begins = np.array(self._ends, dtype=np.int64)
        lengths = (begins[1:] - begins[:-1])[places]
        starts = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        texts, data = np.frombuffer(self._texts, np.uint8), np.empty(int(starts[-1]), np.uint8)
        for first in range(0, len(places), _BLOCK // 4):
            some = slice(first, first + _BLOCK // 4)
            shifts = np.repeat(begins[places[some]] - starts[:-1][some], lengths[some])
            stop = starts[first] + len(shifts)
            data[starts[first] : stop] = texts[shifts + np.arange(starts[first], stop)]
        return Texts(starts, data)


class _SortedNumerals(NamedTuple):
    """Terms with a digit by hash, their hashes and counts of postings, and the postings."""

    texts: Texts
    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]
    docs: NDArray[np.uint32]
    fields: NDArray[np.uint8]


class _Writer:
    """Numbers terms, lays down postings in blocks, and puts them together."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._numbers: dict[str, int] = {}
        self._words: dict[str, _KnownWord] = {}
        self._texts: dict[tuple[str, bool], list[_KnownWord]] = {}  # those that come again
        self._spelled: dict[int, str] = {}  # term -> the word that it came from
        self._languages: list[int] = []  # term -> languages as bits
        self._numerals = _Numerals()
        self._n_remembered = 0  # words with a digit
        self._terms, self._docs, self._fields = array("I"), array("I"), array("B")
        self._digests = array("Q")
        self._lengths = array("B")
        self._wholes: list[tuple[int, int, int]] = []
        self._whole_blocks: list[NDArray[Any]] = []
        self._blocks: list[Path] = []

    def add(self, digest: int, written: list[Written]) -> None:
        doc = len(self._digests)
        cut = [(field, self._cut(field, text, is_name)) for field, text, is_name in written]
        language = choose_language(
            word.languages for field, words in cut if field <= _DESCRIPTION for word in words
        )
        stemmed = _UNTOLD if language is None else 1 << language
        fields_by_term: dict[int, int] = {}
        fields_by_numeral: dict[str, int] = {}
        lengths = [0, 0]
        for field, words in cut:
            bit = 1 << field
            for word in words:
                for term in word.terms:
                    fields_by_term[term] = fields_by_term.get(term, 0) | bit
                for numeral in word.numerals:
                    fields_by_numeral[numeral] = fields_by_numeral.get(numeral, 0) | bit
            if field <= _DESCRIPTION:
                content = sum(language not in word.languages for word in words)
                lengths[field] = min(_MOST, content or len(words))
            if FIELDS[field].whole and words:
                self._keep_whole(" ".join([word.folded for word in words]), doc, bit)
        languages = self._languages
        for term, bits in fields_by_term.items():
            languages[term] |= stemmed if bits & _SENTENCES else _UNTOLD
        for numeral, bits in fields_by_numeral.items():
            self._numerals.add(numeral, doc, bits)
        self._terms.extend(fields_by_term)
        self._docs.extend([doc] * len(fields_by_term))
        self._fields.extend(fields_by_term.values())
        self._digests.append(digest)
        self._lengths.extend(lengths)
        if len(self._terms) >= _BLOCK:
            self._lay_down()

    def _cut(self, field: int, text: str, is_name: bool) -> list[_KnownWord]:
        """Return what is known of the words of a text."""
        comes_again = field > _DESCRIPTION and FIELDS[field].name != "file"
        if comes_again and (text, is_name) in self._texts:
            return self._texts[text, is_name]
        words = words_of_name(text) if is_name else words_of(text)
        known = [self._words.get(word) or self._learn(word) for word in words]
        if comes_again and len(self._texts) < _REMEMBERED:
            self._texts[text, is_name] = known
        return known

    def _learn(self, word: str) -> _KnownWord:
        # What is ASCII is a single term: the word itself.
        is_plain = word.isascii()
        known_terms = (Word(word, word, spelled=True),) if is_plain else terms_of(word)
        terms, numerals = [], []
        for _, term, spelled in known_terms:
            if _HAS_DIGIT(term):
                numerals.append(term)
                continue
            number = self._numbers.setdefault(term, len(self._numbers))
            if number == len(self._languages):
                self._languages.append(0)
                if spelled:
                    self._spelled[number] = word
            terms.append(number)
        folded = word if is_plain else fold(word)
        known = _KnownWord(tuple(terms), tuple(numerals), folded, languages_of_word(word))
        if self._n_remembered < _REMEMBERED or not numerals:
            self._words[word] = known
            self._n_remembered += bool(numerals)
        return known

    def _keep_whole(self, whole: str, doc: int, field: int) -> None:
        if len(whole) <= _MAX_WHOLE:
            self._wholes.append((hash_of(whole), doc, field))
        if len(self._wholes) >= _BLOCK // 4:
            self._whole_blocks.append(_packed(self._wholes))
            self._wholes = []

    def _lay_down(self) -> None:
        terms = np.frombuffer(self._terms, dtype=np.uint32)
        order = np.argsort(terms, kind="stable")
        path = self._place / f"{len(self._blocks)}.npz"
        docs = np.frombuffer(self._docs, dtype=np.uint32)[order]
        np.savez(
            path, terms=terms[order], docs=docs, fields=np.frombuffer(self._fields, np.uint8)[order]
        )
        self._blocks.append(path)
        self._terms, self._docs, self._fields = array("I"), array("I"), array("B")

    def finish(self) -> Segment:
        self._lay_down()
        numerals = self._numerals.sort()
        n_words = len(self._numbers)
        counts = np.zeros(n_words, dtype=np.int64)
        for path in self._blocks:
            counts += np.bincount(_loaded(path, "terms"), minlength=n_words)
        n_terms = n_words + len(numerals.hashes)
        starts = np.zeros(n_terms + 1, dtype=np.int64)
        np.cumsum(np.concatenate([counts, numerals.counts]), out=starts[1:])
        docs, fields = self._room(int(starts[-1]))
        docs[starts[n_words] :], fields[starts[n_words] :] = numerals.docs, numerals.fields
        ends = starts[:n_words].copy()
        for path in self._blocks:
            terms = _loaded(path, "terms")
            here = np.bincount(terms, minlength=n_words)
            firsts = np.repeat(ends - (np.cumsum(here) - here), here)
            places = firsts + np.arange(len(terms))
            docs[places], fields[places] = _loaded(path, "docs"), _loaded(path, "fields")
            ends += here
        arrays: dict[str, NDArray[Any]] = {
            "post_starts": starts,
            "post_docs": docs,
            "post_fields": fields,
            "digests": np.array(self._digests, dtype=np.uint64),
            "lengths": np.array(self._lengths, dtype=np.uint8),
        }
        hashes = [np.array([hash_of(term) for term in self._numbers], np.uint64), numerals.hashes]
        arrays |= _by_hash("term", np.concatenate(hashes), np.arange(n_terms), "numbers")
        arrays |= _by_hash("stem", *_hashed(self._stems()))
        arrays |= _by_hash("typo", *_hashed(self._typos()))
        arrays["languages"] = self._stem_languages()
        wholes = np.concatenate([*self._whole_blocks, _packed(self._wholes)])
        wholes = wholes[np.argsort(wholes["hash"], kind="stable")]
        for name, dtype in (("hash", np.uint64), ("doc", np.uint32), ("field", np.uint8)):
            key = {"hash": "whole_hashes", "doc": "whole_docs", "field": "whole_fields"}[name]
            arrays[key] = np.ascontiguousarray(wholes[name], dtype=dtype)
        words = pack_texts(self._numbers)
        texts = Texts(
            np.concatenate([words.starts, words.starts[-1] + numerals.texts.starts[1:]]),
            np.concatenate([words.data, numerals.texts.data]),
        )
        return Segment(arrays, texts)

    def _room(self, n: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        if n <= _BLOCK:
            return np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint8)
        docs = np.memmap(self._place / "docs", dtype=np.uint32, mode="w+", shape=(n,))
        return docs, np.memmap(self._place / "fields", dtype=np.uint8, mode="w+", shape=(n,))

    def _stem_languages(self) -> NDArray[np.uint32]:
        used = functools.reduce(operator.or_, self._languages, 0)
        places = [place for place in range(len(LANGUAGES)) if used >> place & 1]
        return np.array(places, dtype=np.uint32)

    def _stems(self) -> Iterator[tuple[str, int]]:
        for term, word in self._spelled.items():
            bits = self._languages[term]
            language = 0
            while bits >> language:
                if bits >> language & 1 and (key := stem_key(word, language)):
                    yield key, term
                language += 1

    def _typos(self) -> Iterator[tuple[str, int]]:
        numbers = self._numbers
        for term, number in numbers.items():
            spelled = MIN_TYPO - 1 <= len(term) <= _MAX_TYPO and number in self._spelled
            if spelled:
                yield from ((rest, number) for rest in deletions(term))


def _hashed(pairs: Iterable[tuple[str, int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    hashes, numbers = array("Q"), array("I")
    for key, number in pairs:
        hashes.append(hash_of(key))
        numbers.append(number)
    return np.array(hashes, dtype=np.uint64), np.array(numbers, dtype=np.uint32)


def _by_hash(
    kind: str, hashes: NDArray[np.uint64], numbers: NDArray[Any], values: str = "terms"
) -> dict[str, NDArray[Any]]:
    order = np.argsort(hashes, kind="stable")
    return {
        f"{kind}_hashes": hashes[order],
        f"{kind}_{values}": numbers[order].astype(np.uint32, copy=False),
    }


def _packed(wholes: list[tuple[int, int, int]]) -> NDArray[Any]:
    return np.array(wholes, dtype=[("hash", "<u8"), ("doc", "<u4"), ("field", "u1")])


def _loaded(path: Path, name: str) -> NDArray[Any]:
    with np.load(path) as arrays:
        return np.asarray(arrays[name])
