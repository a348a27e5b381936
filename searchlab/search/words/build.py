"""Building a segment: photos are read in blocks, whose postings are sorted and laid down on disk.

Memory holds the vocabulary, one block, and some bytes a photo. A block of texts is numbered word by
word, and all else is done with arrays of its words.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.photos.columns import pack_texts
from searchlab.search.words.blocks import (
    FIELD_BITS,
    Postings,
    content_lengths,
    firsts,
    gather,
    tell_languages,
)
from searchlab.search.words.fields import Written
from searchlab.search.words.hashed import Hashed
from searchlab.search.words.languages import LANGUAGES, UNTOLD, stem_key
from searchlab.search.words.postings import encode
from searchlab.search.words.segment import MIN_TYPO, WHOLE_BITS, WHOLES, Segment
from searchlab.search.words.terms import deletions, hash_of, whole_of, words_of, words_of_name
from searchlab.search.words.vocabulary import WordVocabulary

_WORDS_AT_ONCE, _DOCS_AT_ONCE = 2**20, 2**16  # in a block
_MAX_WHOLE = 500  # characters of a text that somebody may type as a whole
_MAX_TYPO = 24  # letters of a word that is looked for when misspelt
_MOST_BYTES = 2**32  # of the postings of a segment
_SENTENCES = np.uint8(0b11)
_UNTOLD = np.uint64(1 << UNTOLD)  # of texts that do not tell their language
_REMEMBERED = 100_000  # texts of names, places and folders
_PLACE_OF_WHOLE = {int(bits).bit_length() - 1: place for place, bits in enumerate(WHOLES)}


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

    Raises:
        InputError: Their postings take more than 4 GiB.
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


class _Numerals(NamedTuple):
    """Postings of terms with a digit."""

    hashes: NDArray[np.uint64]
    docs: NDArray[np.uint32]
    fields: NDArray[np.uint8]


class _TextBlock:
    """The texts of some photos, as numbers of their words."""

    def __init__(self) -> None:
        self.words = array("i")
        self.texts = array("Q")  # how many words each has, and its field in the lowest bits
        self.doc_sizes = array("I")  # texts of each photo


class _Writer:
    """Numbers words, lays down postings in blocks, and puts them together."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._vocabulary = WordVocabulary()
        self._again: dict[Written, array[int]] = {}  # words of texts that come again
        self._languages = np.zeros(0, dtype=np.uint64)  # term -> languages as bits
        self._block, self._n_blocks = _TextBlock(), 0
        self._n_docs = 0
        self._digests = array("Q")
        self._lengths: list[NDArray[np.uint8]] = []
        self._whole_hashes, self._whole_docs = array("Q"), array("I")
        self._numerals: list[_Numerals] = []

    def add(self, digest: int, written: list[Written]) -> None:
        block, again = self._block, self._again
        for one in written:
            words: Sequence[int] | None = again.get(one)
            if words is None:
                words = self._read(one)
            block.words.extend(words)
            block.texts.append(len(words) << FIELD_BITS | one[0])
        block.doc_sizes.append(len(written))
        self._digests.append(digest)
        if len(block.words) >= _WORDS_AT_ONCE or len(block.doc_sizes) >= _DOCS_AT_ONCE:
            self._lay_down()

    def _read(self, one: Written) -> Sequence[int]:
        """Return the numbers of a text's words; keep what a whole query finds it by."""
        field, text, is_name = one
        cut = words_of(text)
        spellings = [cut]
        if is_name and (parts := words_of_name(text)) != cut:
            spellings.append(parts)
            cut = [*cut, *(part for part in parts if part not in cut)]
        words = self._vocabulary.read(cut)
        if field in _PLACE_OF_WHOLE:
            place = len(self._digests) << WHOLE_BITS | _PLACE_OF_WHOLE[field]
            for one_way in filter(None, spellings):
                whole = " ".join(one_way) if text.isascii() else whole_of(one_way)
                if len(whole) <= _MAX_WHOLE:
                    self._whole_hashes.append(hash_of(whole))
                    self._whole_docs.append(place)
        elif len(self._again) < _REMEMBERED and min(words, default=0) >= 0:
            self._again[one] = array("i", words)
        return words

    def _lay_down(self) -> None:
        block, self._block = self._block, _TextBlock()
        known = self._vocabulary.finish_block(np.array(block.words, dtype=np.int64))
        texts = np.array(block.texts, dtype=np.int64)
        text_sizes, text_fields = texts >> FIELD_BITS, texts & (1 << FIELD_BITS) - 1
        doc_sizes = np.array(block.doc_sizes, dtype=np.int64)
        text_docs = np.repeat(np.arange(len(doc_sizes)), doc_sizes)
        text_of = np.repeat(np.arange(len(text_sizes)), text_sizes)
        n_docs = len(doc_sizes)
        told = tell_languages(known, text_docs, text_fields, text_of, n_docs)
        self._lengths.append(content_lengths(known, told, text_docs, text_fields, text_sizes))
        doc_of, field_of = text_docs[text_of], text_fields[text_of]
        postings = gather(*known.terms.of(known.words), doc_of, field_of)
        self._learn_languages(postings, told)
        np.savez(
            self._block_path(self._n_blocks),
            terms=postings.terms.astype(np.uint32),
            docs=(postings.docs + self._n_docs).astype(np.uint32),
            fields=postings.fields,
        )
        numerals = gather(known.numerals, known.owners, doc_of, field_of)
        docs = (numerals.docs + self._n_docs).astype(np.uint32)
        some = _Numerals(known.hashes[numerals.terms], docs, numerals.fields)
        self._numerals.append(some)
        self._n_blocks += 1
        self._n_docs += n_docs

    def _learn_languages(self, postings: Postings, told: NDArray[np.int64]) -> None:
        """Note in which languages terms are stemmed: those that sentences with them told."""
        n_new = len(self._vocabulary.terms) - len(self._languages)
        self._languages = np.concatenate([self._languages, np.zeros(n_new, dtype=np.uint64)])
        if not len(postings.terms):
            return
        languages = np.where(
            told < 0, _UNTOLD, np.uint64(1) << np.maximum(told, 0).astype(np.uint64)
        )
        in_sentence = (postings.fields & _SENTENCES) > 0
        bits = np.where(in_sentence, languages[postings.docs], _UNTOLD)
        begins = firsts(postings.terms)
        self._languages[postings.terms[begins]] |= np.bitwise_or.reduceat(bits, begins)

    def _block_path(self, number: int) -> Path:
        return self._place / f"{number}.npz"

    # -- putting it together -------------------------------------------------------------------

    def finish(self) -> Segment:
        self._lay_down()
        terms = list(self._vocabulary.terms)
        hashes = np.fromiter(map(hash_of, terms), np.uint64, len(terms))
        order = np.argsort(hashes, kind="stable")
        ranks = np.empty(len(terms), dtype=np.int64)  # number of a term -> its place by hash
        ranks[order] = np.arange(len(terms))
        numerals = self._sort_numerals()
        begins = firsts(numerals.hashes)
        counts = np.zeros(len(terms), dtype=np.int64)
        for number in range(self._n_blocks):
            block_terms = _loaded(self._block_path(number), "terms")
            counts += np.bincount(ranks[block_terms], minlength=len(terms))
        counts = np.concatenate([counts, np.diff(begins, append=len(numerals.hashes))])
        docs, fields = self._put_in_order(ranks, counts, numerals)
        starts, data = self._encode(counts, docs, fields)
        arrays: dict[str, NDArray[Any]] = {
            "post_starts": starts,
            "post_bytes": data,
            "digests": np.array(self._digests, dtype=np.uint64),
            "lengths": np.concatenate(self._lengths),
            "languages": self._stem_languages(),
        }
        arrays |= _by_hash("word", hashes)
        arrays |= _by_hash("numeral", numerals.hashes[begins])
        arrays |= _by_hash("stem", *_hashed(self._stems(terms, ranks)), "terms")
        arrays |= _by_hash("typo", *_hashed(self._typos(terms, ranks)), "terms")
        wholes = np.array(self._whole_hashes, np.uint64), np.array(self._whole_docs, np.uint32)
        arrays |= _by_hash("whole", *wholes, "docs")
        return Segment(arrays, pack_texts(terms[number] for number in order.tolist()))

    def _sort_numerals(self) -> _Numerals:
        hashes, docs, fields = (
            np.concatenate(column) for column in zip(*self._numerals, strict=True)
        )
        self._numerals = []
        order = np.argsort(hashes, kind="stable")
        return _Numerals(hashes[order], docs[order], fields[order])

    def _put_in_order(
        self, ranks: NDArray[np.int64], counts: NDArray[np.int64], numerals: _Numerals
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Return documents and fields of all postings, by the places of their terms."""
        docs, fields = self._room(int(counts.sum()))
        n_numerals = len(numerals.docs)
        docs[len(docs) - n_numerals :] = numerals.docs
        fields[len(fields) - n_numerals :] = numerals.fields
        following = (np.cumsum(counts) - counts)[ranks]  # by number of the term
        for number in range(self._n_blocks):
            path = self._block_path(number)
            terms = _loaded(path, "terms")
            here = np.bincount(terms, minlength=len(ranks))
            places = np.repeat(following - (np.cumsum(here) - here), here) + np.arange(len(terms))
            docs[places], fields[places] = _loaded(path, "docs"), _loaded(path, "fields")
            following += here
        return docs, fields

    def _room(self, n: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        if n <= 4 * _WORDS_AT_ONCE:
            return np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint8)
        docs = np.memmap(self._place / "docs", dtype=np.uint32, mode="w+", shape=(n,))
        return docs, np.memmap(self._place / "fields", dtype=np.uint8, mode="w+", shape=(n,))

    def _encode(
        self, counts: NDArray[np.int64], docs: NDArray[np.uint32], fields: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        starts = np.zeros(len(counts) + 1, dtype=np.int64)
        n_done, path = 0, self._place / "postings"
        with path.open("wb") as file:
            for data, lengths in encode(counts, docs, fields):
                data.tofile(file)
                starts[n_done + 1 : n_done + 1 + len(lengths)] = lengths
                n_done += len(lengths)
        np.cumsum(starts, out=starts)
        if starts[-1] >= _MOST_BYTES:
            msg = (
                f"the words of a library must take less than {_MOST_BYTES:,} bytes, "
                f"got {starts[-1]:,}; index fewer folders into it"
            )
            raise InputError(msg)
        return starts.astype(np.uint32), np.fromfile(path, dtype=np.uint8)

    def _stem_languages(self) -> NDArray[np.uint32]:
        used = int(np.bitwise_or.reduce(self._languages, initial=0))
        places = [place for place in range(len(LANGUAGES)) if used >> place & 1]
        return np.array(places, dtype=np.uint32)

    def _stems(self, terms: list[str], ranks: NDArray[np.int64]) -> Iterator[tuple[str, int]]:
        places, languages = ranks.tolist(), self._languages.tolist()
        for word, term in self._vocabulary.spelled.items():
            bits, language = languages[term], 0
            while bits >> language:
                if bits >> language & 1 and (key := stem_key(word, language)):
                    yield key, places[term]
                language += 1

    def _typos(self, terms: list[str], ranks: NDArray[np.int64]) -> Iterator[tuple[str, int]]:
        places = ranks.tolist()
        for number in dict.fromkeys(self._vocabulary.spelled.values()):
            if MIN_TYPO - 1 <= len(terms[number]) <= _MAX_TYPO:
                yield from ((rest, places[number]) for rest in deletions(terms[number]))


def _hashed(pairs: Iterable[tuple[str, int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    hashes, numbers = array("Q"), array("I")
    for key, number in pairs:
        hashes.append(hash_of(key))
        numbers.append(number)
    return np.array(hashes, dtype=np.uint64), np.array(numbers, dtype=np.uint32)


def _by_hash(
    kind: str,
    hashes: NDArray[np.uint64],
    numbers: NDArray[np.uint32] | None = None,
    values: str = "",
) -> dict[str, NDArray[Any]]:
    order = np.argsort(hashes, kind="stable")
    laid_down = Hashed.of(hashes[order])
    arrays: dict[str, NDArray[Any]] = {
        f"{kind}_firsts": laid_down.firsts,
        f"{kind}_rests": laid_down.rests,
    }
    return arrays if numbers is None else arrays | {f"{kind}_{values}": numbers[order]}


def _loaded(path: Path, name: str) -> NDArray[Any]:
    with np.load(path) as arrays:
        return np.asarray(arrays[name])
