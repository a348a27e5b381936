"""Kernel that walks the postings of a query and adds up what each photo matches.

Documents are taken in blocks that fit the cache, so that a word of every second photo costs a few
nanoseconds a posting and memory does not grow with the library. Postings are read as they lie on
disk (`searchlab.search.words.postings`); of a common word only those that skips lead to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, I64, inner, kernel, reads, writes
from searchlab.search.filters._kernels.bits import lowest
from searchlab.search.words._kernels.lists import (
    COMMON,
    COUNT,
    DOC,
    FIELDS,
    LISTED,
    N_KEPT,
    PLACE,
    begin_list,
    block_end_of,
    bytes_before,
    fields_at,
    next_block,
    skip_to,
)

I32, U8, U32, U64 = types.int32, types.uint8, types.uint32, types.uint64
_BLOCK = 8_192


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


@kernel(reads(U8), I64, I64, I64, writes(U32), writes(U8))
def decode(data: Any, begin: Any, end: Any, n_docs: Any, docs: Any, fields: Any) -> Any:
    """Fill the documents of a list and their fields; whether it is sound.

    Args:
        data: Lists of postings; a multiple of 8 bytes.
        begin: Where the list begins.
        end: Where it ends.
        n_docs: Documents of the segment.
        docs: (count,) out.
        fields: (count,) out.
    """
    one, listed = np.zeros(N_KEPT, dtype=np.int64), np.zeros(LISTED, dtype=np.int64)
    if not begin_list(data, begin, end, n_docs, one, listed) or one[COUNT] != len(docs):
        return False
    doc = one[DOC]
    for place in range(len(docs)):
        docs[place], fields[place] = doc, fields_at(data, one, place)
        if (place + 1) & (LISTED - 1):
            doc = listed[(place + 1) & (LISTED - 1)]
        else:
            doc = next_block(data, one, listed, place + 1, doc, n_docs)
            if doc < 0:
                return False
    return True


@kernel(
    reads(U8),
    reads(I32),
    reads(U8),
    reads(U64),
    reads(U32),
    reads(U32),
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
    data: Any,
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
        data: Lists of postings; a multiple of 8 bytes.
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
        rows: (room,) out; if there are more, -1 comes back.
        coverage: (room,) out, sum over words of idf times the weight of the best field.
        precision: (room,) out, share of the title or of the description, whichever is larger, that
            is words of the query.
    """
    n_docs, n_lists, is_moved = len(lengths) // 2, len(begins), len(doc_rows) > 0
    counted = types.uint8(read)
    lists = np.zeros((n_lists, N_KEPT), dtype=np.int64)
    buffers = np.zeros((n_lists, LISTED), dtype=np.int64)
    for which in range(n_lists):
        begin, end = types.int64(begins[which]), types.int64(ends[which])
        if not begin_list(data, begin, end, n_docs, lists[which], buffers[which]):
            return -1  # damaged
    total = np.zeros(_BLOCK, dtype=np.float32)
    best = np.zeros(_BLOCK, dtype=np.float32)
    bits = np.zeros(_BLOCK, dtype=np.uint8)
    hits = np.zeros(_BLOCK, dtype=np.uint16)  # of the title, and 256 times those of the description
    is_met = np.zeros(_BLOCK, dtype=np.bool_)
    met = np.zeros(_BLOCK // 64, dtype=np.uint64)
    locals_met = np.empty(_BLOCK, dtype=np.int64)
    touched = np.empty(_BLOCK, dtype=np.int64)
    count = 0
    for first in range(0, n_docs, _BLOCK):
        stop = min(first + _BLOCK, n_docs)
        at = 0
        while at < n_lists and term_of[at] < n_leading:
            word = term_of[at]
            until = _end_of_word(term_of, at)
            weight = idf[word]
            n_touched = 0
            for which in range(at, until):
                one, listed, fit = lists[which], buffers[which], quality[which]
                doc, place = one[DOC], one[PLACE]
                common, at_fields = types.uint8(one[COMMON]), one[FIELDS]
                while doc < stop:
                    block_end = block_end_of(one, place)
                    while place < block_end:
                        doc = listed[U64(place & (LISTED - 1))]
                        if doc >= stop:
                            break
                        where = (data[at_fields + place] if common == 0 else common) & counted
                        place += 1
                        if where == 0:
                            continue
                        local = U64(doc - first)
                        met[local >> U64(6)] |= U64(1) << (local & U64(63))
                        if until - at == 1:
                            total[local] += weight * (weights[where] * fit)
                            hits[local] += _hits_of(where)
                            continue
                        if bits[local] == 0:
                            touched[n_touched] = local
                            n_touched += 1
                        best[local] = max(best[local], weights[where] * fit)
                        bits[local] |= where
                    if place == block_end:
                        doc = next_block(data, one, listed, place, doc, n_docs)
                        if doc < 0:
                            return -1
                one[DOC], one[PLACE] = doc, place
            for number in range(n_touched):
                local = U64(touched[number])
                total[local] += weight * best[local]
                hits[local] += _hits_of(bits[local])
                best[local], bits[local] = 0, 0
            at = until
        n_met = _list_met(met, locals_met)
        if is_moved or len(allowed) or at < n_lists:
            n_passing = 0
            for number in range(n_met):
                local = locals_met[number]
                row = types.int64(doc_rows[first + local]) if is_moved else first + local
                passes = row >= 0
                if passes and len(allowed):
                    passes = (allowed[row >> 6] >> U64(row & 63)) & U64(1) != 0
                if passes:
                    is_met[local] = True
                    locals_met[n_passing] = local
                    n_passing += 1
                else:
                    total[local] = 0
                    hits[local] = 0
            n_met = n_passing
        if count + n_met > len(rows):
            return -1
        while at < n_lists and n_met:
            # Very many photos have these words: they are read where a leading word is.
            word = term_of[at]
            until = _end_of_word(term_of, at)
            n_touched = 0
            for which in range(at, until):
                one, listed, fit = lists[which], buffers[which], quality[which]
                # Looking up so many would read as many blocks of the list as there are here.
                if n_met * LISTED * n_docs > one[COUNT] * _BLOCK:
                    if not skip_to(data, one, listed, n_docs, first):
                        return -1
                    doc, place = one[DOC], one[PLACE]
                    while doc < stop:
                        block_end = block_end_of(one, place)
                        while place < block_end:
                            doc = listed[U64(place & (LISTED - 1))]
                            if doc >= stop:
                                break
                            local = U64(doc - first)
                            if is_met[local]:
                                where = fields_at(data, one, place) & counted
                                if bits[local] == 0:
                                    touched[n_touched] = local
                                    n_touched += where != 0
                                best[local] = max(best[local], weights[where] * fit)
                                bits[local] |= where
                            place += 1
                        if place < block_end:
                            break
                        byte = bytes_before(data, one, place, stop)
                        while byte >= 0:
                            # Whole blocks of bytes are read without being listed first.
                            for number in range(LISTED):
                                doc += types.int64(data[U64(byte + number)]) + 1
                                local = U64(doc - first)
                                if local >= U64(_BLOCK):
                                    return -1
                                if is_met[local]:
                                    where = fields_at(data, one, place + number) & counted
                                    if bits[local] == 0:
                                        touched[n_touched] = local
                                        n_touched += where != 0
                                    best[local] = max(best[local], weights[where] * fit)
                                    bits[local] |= where
                            place += LISTED
                            byte = bytes_before(data, one, place, stop)
                        doc = next_block(data, one, listed, place, doc, n_docs)
                        if doc < 0:
                            return -1
                    one[DOC], one[PLACE] = doc, place
                else:
                    for number in range(n_met):
                        local = locals_met[number]
                        if not skip_to(data, one, listed, n_docs, first + local):
                            return -1
                        if one[DOC] == first + local:
                            where = fields_at(data, one, one[PLACE]) & counted
                            if bits[local] == 0:
                                touched[n_touched] = local
                                n_touched += where != 0
                            best[local] = max(best[local], weights[where] * fit)
                            bits[local] |= where
            for number in range(n_touched):
                local = touched[number]
                total[local] += idf[word] * best[local]
                hits[local] += _hits_of(bits[local])
                best[local], bits[local] = 0, 0
            at = until
        for number in range(n_met):
            local = locals_met[number]
            doc = first + local
            of_title, of_description = types.float32(0), types.float32(0)
            if hits[local] & 255:
                of_title = types.float32(hits[local] & 255) / types.float32(
                    max(lengths[2 * doc], 1)
                )
            if hits[local] >> 8:
                of_description = types.float32(hits[local] >> 8) / types.float32(
                    max(lengths[2 * doc + 1], 1)
                )
            rows[count] = doc_rows[doc] if is_moved else doc
            coverage[count] = total[local]
            precision[count] = min(types.float32(1), max(of_title, of_description))
            count += 1
            total[local] = 0
            hits[local] = 0
            is_met[local] = False
    return count
