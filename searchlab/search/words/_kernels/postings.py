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
_BLOCK = 32_768


@kernel(
    reads(U32),
    reads(U8),
    reads(I32),
    reads(U8),
    reads(U8),
    reads(U64),
    reads(I64),
    reads(I64),
    reads(I64),
    reads(F32),
    reads(F32),
    reads(F32),
    writes(I32),
    writes(F32),
    writes(F32),
)
def add_up(
    docs: Any,
    fields: Any,
    doc_rows: Any,
    title_lengths: Any,
    description_lengths: Any,
    allowed: Any,
    begins: Any,
    ends: Any,
    term_of: Any,
    quality: Any,
    idf: Any,
    weights: Any,
    rows: Any,
    coverage: Any,
    precision: Any,
) -> Any:
    """Fill rows, coverage and precision of the photos that match; returns how many, or -1.

    Args:
        docs: Documents of all postings, ascending within a term.
        fields: Fields of all postings, as bits.
        doc_rows: (n_docs,) row of a document; -1 where its photo has left.
        title_lengths: (n_docs,) words of the title, 0 where there is none.
        description_lengths: (n_docs,) words of the description.
        allowed: Rows that may be found, as bits; empty for all.
        begins: (n_lists,) where each list of postings begins; lists of one word stand together.
        ends: (n_lists,) where it ends.
        term_of: (n_lists,) the word of the query that it is of, ascending from 0.
        quality: (n_lists,) how well the term fits the word, above 0 to 1.
        idf: (n_words,) weight of each word of the query.
        weights: (256,) weight of a set of fields.
        rows: (room,) out.
        coverage: (room,) out, sum over words of idf times the weight of the best field.
        precision: (room,) out, share of the title or of the description, whichever is larger, that
            is words of the query.
    """
    n_docs, n_lists = len(doc_rows), len(begins)
    cursor = begins.copy()
    row_of = np.empty(_BLOCK, dtype=np.int32)
    seen = np.zeros(_BLOCK, dtype=np.uint8)
    total = np.zeros(_BLOCK, dtype=np.float32)
    best = np.zeros(_BLOCK, dtype=np.float32)
    bits = np.zeros(_BLOCK, dtype=np.uint8)
    hits = np.zeros((_BLOCK, 2), dtype=np.uint8)
    touched = np.empty(_BLOCK, dtype=np.int32)
    count = 0
    for first in range(0, n_docs, _BLOCK):
        stop = min(first + _BLOCK, n_docs)
        n_touched = 0
        at = 0
        while at < n_lists:
            word = term_of[at]
            until = at
            while until < n_lists and term_of[until] == word:
                place = cursor[until]
                while place < ends[until]:
                    doc = types.int64(docs[place])
                    if doc >= stop:
                        break
                    if doc < first:
                        return -1  # not ascending: damaged
                    local = doc - first
                    if seen[local] == 0:
                        row = doc_rows[doc]
                        passes = row >= 0
                        if passes and len(allowed):
                            passes = (allowed[row >> 6] >> types.uint64(row & 63)) & 1 != 0
                        seen[local] = 1 if passes else 2
                        row_of[local] = row
                        touched[n_touched] = local
                        n_touched += 1
                    if seen[local] == 1:
                        value = weights[fields[place]] * quality[until]
                        if value > best[local]:
                            best[local] = value
                        bits[local] |= fields[place]
                    place += 1
                until += 1
            for which in range(at, until):
                for place in range(cursor[which], ends[which]):
                    doc = types.int64(docs[place])
                    if doc >= stop:
                        break
                    local = doc - first
                    total[local] += idf[word] * best[local]
                    hits[local, 0] += bits[local] & 1
                    hits[local, 1] += (bits[local] >> 1) & 1
                    best[local] = 0
                    bits[local] = 0
                    cursor[which] = place + 1
            at = until
        for step in range(n_touched):
            local = touched[step]
            if seen[local] == 1:
                doc = first + local
                of_title = types.float32(hits[local, 0]) / max(title_lengths[doc], 1)
                of_description = types.float32(hits[local, 1]) / max(description_lengths[doc], 1)
                rows[count] = row_of[local]
                coverage[count] = total[local]
                precision[count] = min(1.0, max(of_title, of_description))
                count += 1
            seen[local] = 0
            total[local] = 0
            hits[local, 0] = 0
            hits[local, 1] = 0
    return count
