"""Kernel that walks the postings of a query and adds up what each photo matches.

Documents are taken in blocks that fit the cache, so that a word of every second photo costs a few
nanoseconds a posting and memory does not grow with the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, I64, inner, kernel, reads, writes
from searchlab.search.filters._kernels.bits import lowest

I32, U8, U32, U64 = types.int32, types.uint8, types.uint32, types.uint64
_BLOCK = 8_192
_LOOKED_UP = 32  # documents of a block up to which common words are looked up for each of them


@inner
def _hits_of(fields: Any) -> Any:
    return types.uint16(fields & 1) + types.uint16((fields & 2) << 7)


@inner
def _list_met(met: Any, listed: Any) -> Any:
    """List the bits that are set, ascending, and clear them; how many."""
    count = 0
    for number in range(met.size):
        word = met[number]
        while word:
            listed[count] = (number << 6) + types.int64(lowest(word))
            word &= word - types.uint64(1)
            count += 1
        met[number] = 0
    return count


@inner
def _end_of_word(term_of: Any, at: Any) -> Any:
    until = at + 1
    while until < len(term_of) and term_of[until] == term_of[at]:
        until += 1
    return until


@inner
def _skip_to(docs: Any, place: Any, end: Any, doc: Any) -> Any:
    """Return the first place from `place` on with a document of at least `doc`, or `end`."""
    step = 1
    while place + step < end and docs[place + step] < doc:
        place += step
        step *= 2
    last = min(place + step, end)
    while place < last:
        middle = (place + last) >> 1
        if docs[middle] < doc:
            place = middle + 1
        else:
            last = middle
    return place


@kernel(
    reads(U32),
    reads(U8),
    reads(I32),
    reads(U8),
    reads(U64),
    reads(I64),
    reads(I64),
    reads(I64),
    reads(F32),
    reads(F32),
    I64,
    I64,
    reads(F32),
    writes(I32),
    writes(F32),
    writes(F32),
)
def add_up(
    docs: Any,
    fields: Any,
    doc_rows: Any,
    lengths: Any,
    allowed: Any,
    begins: Any,
    ends: Any,
    term_of: Any,
    quality: Any,
    idf: Any,
    n_leading: Any,
    read: Any,
    weights: Any,
    rows: Any,
    coverage: Any,
    precision: Any,
) -> Any:
    """Fill rows, coverage and precision of the photos that match, by document; how many, or -1.

    Args:
        docs: Documents of all postings, ascending within a term.
        fields: Fields of all postings, as bits.
        doc_rows: (n_docs,) row of a document; -1 where its photo has left. Empty where each
            document is the row of its number.
        lengths: (2 * n_docs,) words of the title and of the description of each document in turn,
            0 where there is none.
        allowed: Rows that may be found, as bits; empty for all.
        begins: (n_lists,) where each list of postings begins; lists of one word stand together.
        ends: (n_lists,) where it ends.
        term_of: (n_lists,) the word of the query that it is of, ascending from 0.
        quality: (n_lists,) how well the term fits the word, above 0 to 1.
        idf: (n_words,) weight of each word of the query.
        n_leading: Words, the first ones, that a document must have one of.
        read: Fields that count, as bits; a posting of others alone counts as if it were not there.
        weights: (256,) weight of a set of fields.
        rows: (room,) out.
        coverage: (room,) out, sum over words of idf times the weight of the best field.
        precision: (room,) out, share of the title or of the description, whichever is larger, that
            is words of the query.
    """
    n_docs, n_lists, is_moved = len(lengths) // 2, len(begins), len(doc_rows) > 0
    cursor, following, counted = begins.copy(), begins.copy(), types.uint8(read)
    total = np.zeros(_BLOCK, dtype=np.float32)
    best = np.zeros(_BLOCK, dtype=np.float32)
    bits = np.zeros(_BLOCK, dtype=np.uint8)
    hits = np.zeros(_BLOCK, dtype=np.uint16)  # of the title, and 256 times those of the description
    is_met = np.zeros(_BLOCK, dtype=np.bool_)
    met = np.zeros(_BLOCK // 64, dtype=np.uint64)
    locals_met = np.empty(_BLOCK, dtype=np.int64)
    count = 0
    for first in range(0, n_docs, _BLOCK):
        stop = min(first + _BLOCK, n_docs)
        at = 0
        while at < n_lists and term_of[at] < n_leading:
            word = term_of[at]
            until = _end_of_word(term_of, at)
            weight = idf[word]
            for which in range(at, until):
                following[which] = _skip_to(docs, cursor[which], ends[which], stop)
                fit = quality[which]
                for place in range(cursor[which], following[which]):
                    local = types.int64(docs[place]) - first
                    if local < 0 or local >= _BLOCK:
                        return -1  # not ascending: damaged
                    where = fields[place] & counted
                    best[local] = max(best[local], weights[where] * fit)
                    bits[local] |= where
                    met[local >> 6] |= types.uint64(where != 0) << types.uint64(local & 63)
            for which in range(at, until):
                for place in range(cursor[which], following[which]):
                    local = types.int64(docs[place]) - first
                    total[local] += weight * best[local]
                    hits[local] += _hits_of(bits[local])
                    best[local], bits[local] = 0, 0
                cursor[which] = following[which]
            at = until
        n_met = _list_met(met, locals_met)
        n_passing = 0
        for number in range(n_met):
            local = locals_met[number]
            row = types.int64(doc_rows[first + local]) if is_moved else first + local
            passes = row >= 0
            if passes and len(allowed):
                passes = (allowed[row >> 6] >> types.uint64(row & 63)) & types.uint64(1) != 0
            if passes:
                is_met[local] = True
                locals_met[n_passing] = local
                n_passing += 1
            else:
                total[local] = 0
                hits[local] = 0
        n_met = n_passing
        while at < n_lists and n_met:
            # Very many photos have these words: they are read where a leading word is.
            word = term_of[at]
            until = _end_of_word(term_of, at)
            for which in range(at, until):
                place, end, fit = cursor[which], ends[which], quality[which]
                place = _skip_to(docs, place, end, first)
                if n_met > _LOOKED_UP:
                    while place < end and docs[place] < stop:
                        local = types.int64(docs[place]) - first
                        if local < 0:
                            return -1
                        if is_met[local]:
                            where = fields[place] & counted
                            best[local] = max(best[local], weights[where] * fit)
                            bits[local] |= where
                        place += 1
                else:
                    for number in range(n_met):
                        local = locals_met[number]
                        place = _skip_to(docs, place, end, first + local)
                        if place < end and docs[place] == first + local:
                            where = fields[place] & counted
                            best[local] = max(best[local], weights[where] * fit)
                            bits[local] |= where
                cursor[which] = place
            for number in range(n_met):
                local = locals_met[number]
                total[local] += idf[word] * best[local]
                hits[local] += _hits_of(bits[local])
                best[local], bits[local] = 0, 0
            at = until
        for number in range(n_met):
            local = locals_met[number]
            doc = first + local
            title, description = max(lengths[2 * doc], 1), max(lengths[2 * doc + 1], 1)
            of_title = types.float32(hits[local] & 255) / types.float32(title)
            of_description = types.float32(hits[local] >> 8) / types.float32(description)
            rows[count] = doc_rows[doc] if is_moved else doc
            coverage[count] = total[local]
            precision[count] = min(types.float32(1), max(of_title, of_description))
            count += 1
            total[local] = 0
            hits[local] = 0
            is_met[local] = False
    return count
