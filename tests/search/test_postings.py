"""Postings in bytes: what is written is read again, both ways, and damage is told from it."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError
from searchlab.search.words import postings
from searchlab.search.words._kernels import postings as kernels
from searchlab.search.words.postings import BLOCK, PADDING, WORD, decode, encode, read_head
from tests.support.examples import examples

N_DOCS = 2**32 - 1

gaps = st.one_of(
    st.integers(0, 3), st.sampled_from([126, 127, 128, 2**14 - 1, 2**14, 2**21, 2**24])
)
lists = st.lists(
    st.lists(st.tuples(gaps, st.sampled_from([1, 1, 1, 2, 255])), min_size=1, max_size=20)
    | st.integers(1, 5 * BLOCK).map(lambda n: [(n % 7, 8)] * n),
    max_size=8,
)


def laid_out(some):
    """Counts, documents and fields of lists of gaps and fields."""
    counts = np.array([len(one) for one in some], dtype=np.int64)
    docs = [np.cumsum([gap + 1 for gap, _ in one]) - 1 for one in some]
    fields = [field for one in some for _, field in one]
    docs = np.concatenate([np.zeros(0), *docs]).astype(np.uint32)
    return counts, docs, np.array(fields, dtype=np.uint8)


def written(counts, docs, fields):
    """The bytes of the lists, and where each begins."""
    parts = list(encode(counts, docs, fields))
    data = np.concatenate([np.zeros(0, dtype=np.uint8), *(data for data, _ in parts)])
    sizes = np.concatenate([np.zeros(1, dtype=np.int64), *(sizes for _, sizes in parts)])
    return data, np.cumsum(sizes)


def decode_compiled(data, begin, end, n_docs):
    count = read_head(data, begin, end, n_docs).length
    docs, fields = np.empty(count, dtype=np.uint32), np.empty(count, dtype=np.uint8)
    if not kernels.decode(data, begin, end, n_docs, docs, fields):
        raise postings.damaged()
    return docs, fields


@settings(max_examples=examples(100), deadline=None)
@given(some=lists, at_once=st.sampled_from([1, 50, 2**20]))
def test_what_is_written_is_read_again(some, at_once):
    counts, docs, fields = laid_out(some)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_AT_ONCE", at_once)
        data, starts = written(counts, docs, fields)
    assert starts[-1] + PADDING <= len(data) < starts[-1] + PADDING + WORD
    assert len(data) % WORD == 0
    firsts = np.cumsum(counts) - counts
    for number, count in enumerate(counts.tolist()):
        part = slice(firsts[number], firsts[number] + count)
        begin, end = starts[number : number + 2].tolist()
        assert read_head(data, begin, end, N_DOCS).length == count
        for read in (decode, decode_compiled):
            found, where = read(data, begin, end, N_DOCS)
            assert found.tolist() == docs[part].tolist()
            assert where.tolist() == fields[part].tolist()
            with pytest.raises(DataError):
                read(data, begin, end, int(docs[part][-1]))


def test_a_short_list_takes_a_byte_a_document_and_fields_only_where_they_differ():
    docs = np.arange(0, 6_000, 100, dtype=np.uint32)
    same = np.full(60, 4, dtype=np.uint8)
    other = np.where(docs == 500, 1, 4).astype(np.uint8)
    assert written(np.array([60]), docs, same)[1][-1] == 62
    assert written(np.array([60]), docs, other)[1][-1] == 122


def test_a_block_takes_as_many_bits_a_document_as_its_largest_gap_needs():
    for largest, bits in ((0, 0), (1, 1), (15, 4), (16, 8), (255, 8), (256, 9), (2**20, 21)):
        docs = (np.cumsum(np.tile([1, largest + 1], BLOCK)) - 1).astype(np.uint32)
        fields = np.ones(len(docs), dtype=np.uint8)
        data, starts = written(np.array([len(docs)]), docs, fields)
        assert starts[-1] == 1 + 2 + 2 * 8 + 2 * BLOCK * bits // 8
        assert decode(data, 0, int(starts[-1]), N_DOCS)[0].tolist() == docs.tolist()


@settings(max_examples=examples(300), deadline=None)
@given(
    some=lists.filter(len),
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 6),
    n_docs=st.sampled_from([1, 100, 2**20, N_DOCS]),
)
def test_any_bytes_are_documents_in_order_or_refused(some, changes, cut, n_docs):
    data, starts = written(*laid_out(some))
    for place, byte in changes:
        data[place % len(data)] = byte
    for begin, end in zip(starts[:-1].tolist(), (starts[1:] - cut).tolist(), strict=True):
        found = []
        for read in (decode, decode_compiled):
            with suppress(DataError):
                docs, fields = read(data, begin, end, n_docs)
                assert (docs[1:] > docs[:-1]).all()
                assert 0 <= docs[0] <= docs[-1] < n_docs
                found.append((docs.tolist(), fields.tolist()))
        assert len(found) < 2 or found[0] == found[1]


@pytest.mark.parametrize("begin_end", [(0, 10**6), (5, 2), (3, 3), (-4, 2)])
def test_places_outside_the_bytes_are_refused(begin_end):
    data, _ = written(*laid_out([[(1, 1)] * 5]))
    with pytest.raises(DataError):
        read_head(data, *begin_end, 100)


@settings(max_examples=examples(60), deadline=None)
@given(
    n_docs=st.integers(1, 40_000),
    shares=st.lists(st.sampled_from([0.0005, 0.01, 0.2, 0.9]), min_size=1, max_size=5),
    n_leading=st.integers(1, 3),
    harm=st.none() | st.tuples(st.integers(0, 2**20), st.integers(0, 255)),
    seed=st.integers(0, 99),
)
def test_the_kernel_adds_up_what_lists_hold_and_survives_damage(
    n_docs, shares, n_leading, harm, seed
):
    rng = np.random.default_rng(seed)
    lists_of = [np.flatnonzero(rng.random(n_docs) < share) for share in shares]
    lists_of = [docs if len(docs) else np.array([n_docs - 1]) for docs in lists_of]
    fields_of = [
        rng.choice([1, 3], len(docs)) if rng.random() < 0.5 else np.ones(len(docs))
        for docs in lists_of
    ]
    n_leading = min(n_leading, len(shares))
    data, starts = written(
        np.array([len(docs) for docs in lists_of]),
        np.concatenate(lists_of).astype(np.uint32),
        np.concatenate(fields_of).astype(np.uint8),
    )
    if harm is not None:
        data[harm[0] % len(data)] = harm[1]
    idf = np.arange(1, len(shares) + 1, dtype=np.float32)
    weights = np.ones(256, dtype=np.float32)
    rows = np.empty(n_docs, dtype=np.int32)
    coverage, precision = np.empty(n_docs, dtype=np.float32), np.empty(n_docs, dtype=np.float32)
    count = kernels.add_up(
        data,
        np.zeros(0, dtype=np.int32),
        np.ones(2 * n_docs, dtype=np.uint8),
        np.zeros(0, dtype=np.uint64),
        starts[:-1].astype(np.uint32),
        starts[1:].astype(np.uint32),
        np.arange(len(shares)),
        np.ones(len(shares), dtype=np.float32),
        idf,
        n_leading,
        255,
        weights,
        rows,
        coverage,
        precision,
    )
    if harm is not None:
        assert count >= -1
        assert (np.diff(rows[: max(count, 0)]) > 0).all()
        return
    total = np.zeros(n_docs, dtype=np.float32)
    leads = np.zeros(n_docs, dtype=np.bool_)
    for number, docs in enumerate(lists_of):
        total[docs] += idf[number]
        leads[docs] |= number < n_leading
    assert rows[:count].tolist() == np.flatnonzero(leads).tolist()
    assert coverage[:count].tolist() == total[leads].tolist()
