"""Kernel that walks the postings of a query and adds up what each photo matches.

Documents are taken in blocks that fit the cache, so that a word of every second photo costs a few
nanoseconds a posting and memory does not grow with the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, I64, kernel, reads, writes

I32, U8, U32, U64 = types.int32, types.uint8, types.uint32, types.uint64
_BLOCK = 8_192
_SCANNED = 256  # documents of a block from which on scanning it costs less than sorting them


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
        weights: (256,) weight of a set of fields.
        rows: (room,) out.
        coverage: (room,) out, sum over words of idf times the weight of the best field.
        precision: (room,) out, share of the title or of the description, whichever is larger, that
            is words of the query.
    """
    n_docs, n_lists, is_moved = len(lengths) // 2, len(begins), len(doc_rows) > 0
    cursor = begins.copy()
    state = np.zeros(_BLOCK, dtype=np.uint8)  # 0 not met, 1 may be found, 2 may not
    total = np.zeros(_BLOCK, dtype=np.float32)
    best = np.zeros(_BLOCK, dtype=np.float32)
    bits = np.zeros(_BLOCK, dtype=np.uint8)
    title_hits = np.zeros(_BLOCK, dtype=np.uint8)
    description_hits = np.zeros(_BLOCK, dtype=np.uint8)
    touched = np.empty(_BLOCK, dtype=np.int32)
    count, is_filtered = 0, len(allowed) > 0
    for first in range(0, n_docs, _BLOCK):
        stop = min(first + _BLOCK, n_docs)
        n_touched = 0
        at = 0
        while at < n_lists:
            word = term_of[at]
            until = at + 1
            while until < n_lists and term_of[until] == word:
                until += 1
            alone, weight = until == at + 1, idf[word]
            for which in range(at, until):
                place, end, fit = cursor[which], ends[which], quality[which]
                while place < end:
                    doc = types.int64(docs[place])
                    if doc >= stop:
                        break
                    if doc < first:
                        return -1  # not ascending: damaged
                    local = doc - first
                    if state[local] == 0 and word < n_leading:
                        row = types.int64(doc_rows[doc]) if is_moved else doc
                        passes = row >= 0
                        if passes and is_filtered:
                            passes = (allowed[row >> 6] >> types.uint64(row & 63)) & 1 != 0
                        state[local] = 1 if passes else 2
                        touched[n_touched] = local
                        n_touched += 1
                    if state[local] == 1:
                        where = fields[place]
                        value = weights[where] * fit
                        if alone:
                            total[local] += weight * value
                            title_hits[local] += where & 1
                            description_hits[local] += (where >> 1) & 1
                        else:
                            best[local] = max(best[local], value)
                            bits[local] |= where
                    place += 1
                if alone:
                    cursor[which] = place
            if not alone:
                for which in range(at, until):
                    place = cursor[which]
                    while place < ends[which] and docs[place] < stop:
                        local = types.int64(docs[place]) - first
                        total[local] += weight * best[local]
                        title_hits[local] += bits[local] & 1
                        description_hits[local] += (bits[local] >> 1) & 1
                        best[local] = 0
                        bits[local] = 0
                        place += 1
                    cursor[which] = place
            at = until
        if n_touched > _SCANNED:
            n_touched = 0
            for local in range(stop - first):
                if state[local]:
                    touched[n_touched] = local
                    n_touched += 1
        elif n_lists > 1:
            touched[:n_touched].sort()
        for step in range(n_touched):
            local = touched[step]
            if state[local] == 1:
                doc = first + local
                of_title = types.float32(title_hits[local]) / max(lengths[2 * doc], 1)
                of_description = types.float32(description_hits[local]) / max(
                    lengths[2 * doc + 1], 1
                )
                rows[count] = doc_rows[doc] if is_moved else doc
                coverage[count] = total[local]
                precision[count] = min(1.0, max(of_title, of_description))
                count += 1
            state[local] = 0
            total[local] = 0
            title_hits[local] = 0
            description_hits[local] = 0
    return count
