"""Languages, lengths and postings of the words of a block of texts, as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.search.words.languages import DOUBLE, LANGUAGES, OF_DOUBLE, OF_SCRIPT
from searchlab.search.words.vocabulary import Known

DESCRIPTION = 1
"""The last of the fields that are sentences."""

FIELD_BITS = 3
"""Bits that tell a field."""

_DOC_BITS = 24
_MOST_WORDS = 255


class Postings(NamedTuple):
    """Postings of a block, by term and document, each with all its fields as bits."""

    terms: NDArray[np.int64]
    docs: NDArray[np.int64]
    fields: NDArray[np.uint8]


def tell_languages(
    known: Known,
    text_docs: NDArray[np.int64],
    text_fields: NDArray[np.int64],
    text_of: NDArray[np.int64],
    n_docs: int,
) -> NDArray[np.int64]:
    """Return the language of each photo's sentences, -1 where none tells, as `choose_language`."""
    in_sentence = text_fields[text_of] <= DESCRIPTION
    languages, owners = known.languages.of(known.words[in_sentence])
    docs = text_docs[text_of[in_sentence]][owners]
    weights = np.where(languages < 0, OF_SCRIPT, np.where(languages < DOUBLE, 1.0, OF_DOUBLE))
    places = docs * len(LANGUAGES) + np.where(languages < 0, ~languages, languages % DOUBLE)
    votes = np.bincount(places, weights, minlength=n_docs * len(LANGUAGES))
    votes[(votes >= OF_DOUBLE) & (votes < 1)] = 0
    votes = votes.reshape(n_docs, len(LANGUAGES))
    return np.where(votes.max(axis=1) > 0, votes.argmax(axis=1), -1)


def content_lengths(
    known: Known,
    told: NDArray[np.int64],
    text_docs: NDArray[np.int64],
    text_fields: NDArray[np.int64],
    text_sizes: NDArray[np.int64],
) -> NDArray[np.uint8]:
    """Return how many words of the title and of the description of each photo have a meaning."""
    texts = np.repeat(np.arange(len(text_sizes)), text_sizes)
    languages, owners = known.languages.of(known.words)
    of_text = texts[owners]
    is_function = languages % DOUBLE == told[text_docs[of_text]]
    is_function &= languages >= 0
    n_content = text_sizes - np.bincount(of_text[is_function], minlength=len(text_sizes))
    n_content = np.minimum(np.where(n_content > 0, n_content, text_sizes), _MOST_WORDS)
    lengths = np.zeros((len(told), DESCRIPTION + 1), dtype=np.uint8)
    sentences = text_fields <= DESCRIPTION
    # Of two descriptions the second one stays.
    lengths[text_docs[sentences], text_fields[sentences]] = n_content[sentences]
    return lengths.reshape(-1)


def gather(
    terms: NDArray[np.int64],
    owners: NDArray[np.int64],
    doc_of: NDArray[np.int64],
    field_of: NDArray[np.int64],
) -> Postings:
    """Return the postings of the terms of words, which have their documents and fields."""
    keys = (terms << _DOC_BITS | doc_of[owners]) << FIELD_BITS | field_of[owners]
    keys.sort()
    pairs = keys >> FIELD_BITS
    begins = firsts(pairs)
    if not len(begins):
        return Postings(pairs, pairs, np.zeros(0, dtype=np.uint8))
    bits = np.left_shift(1, keys & (1 << FIELD_BITS) - 1).astype(np.uint8)
    pairs = pairs[begins]
    return Postings(
        pairs >> _DOC_BITS, pairs & ((1 << _DOC_BITS) - 1), np.bitwise_or.reduceat(bits, begins)
    )


def firsts(ordered: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each value begins among ordered ones."""
    begins = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return np.flatnonzero(begins)
