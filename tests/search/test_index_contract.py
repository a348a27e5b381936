"""Every index of the registry keeps one contract."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation.metrics import recall_at_k
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import ExactIndex, VectorIndex, build_index, open_index, update_index
from searchlab.search.indexes.scoring import cosines
from tests.support import index_kinds
from tests.support.examples import examples
from tests.support.index_kinds import N
from tests.support.neighbor_checks import by_sorting, check_answers, check_nearest, check_same, only

kind = index_kinds.kind
build = index_kinds.build
vectors = index_kinds.vectors
queries = index_kinds.queries
index = index_kinds.index


@pytest.mark.slow
def test_only_a_clustered_index_needs_numba(kind):
    code = (
        "import sys, numpy as np\n"
        "from searchlab.config import Config\n"
        "from searchlab.search.indexes import build_index\n"
        "rows = np.eye(16, dtype=np.float32)\n"
        f"index = build_index(rows, Config(index={kind!r}), np.arange(16))\n"
        "index.search(rows, 3)\n"
        "index.nearest(rows[0], 3)\n"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(kind == "clustered")]


def test_an_index_offers_the_protocol(index, vectors):
    assert isinstance(index, VectorIndex)
    assert len(index) == N
    assert index.dim == vectors.shape[1]
    some = np.array([N - 1, 0, 600, 3, 3])
    assert index.read_rows(some).tobytes() == vectors[some].tobytes()
    assert index.size_bytes >= vectors.nbytes
    for rows in (some, some[:0], np.arange(N)):
        scores = index.score_rows(vectors[7], rows)
        assert scores.tobytes() == cosines(vectors, vectors[7])[rows].tobytes()
    assert isinstance(index.approximate, bool)


# -- what is filled ---------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 7, 299, 300, 301, N - 1, N, N + 1, 3 * N])
def test_min_of_k_and_n_slots_are_filled(index, vectors, queries, k):
    check_answers(index.search(queries[:5], k), vectors, queries[:5], k)


def test_pads_with_minus_one_where_fewer_than_k_are_allowed(index, vectors, queries):
    neighbors = index.search(queries[:3], 4, allowed=only(N, 3, 8))
    check_answers(neighbors, vectors, queries[:3], 4, only(N, 3, 8))
    assert sorted(neighbors.rows[0].tolist()) == [-1, -1, 3, 8]


def test_nothing_is_found_where_nothing_is_allowed(index, queries):
    neighbors = index.search(queries[:2], 3, allowed=np.zeros(N, dtype=bool))
    assert neighbors.rows.tolist() == [[-1, -1, -1]] * 2
    assert neighbors.scores.tolist() == [[-np.inf] * 3] * 2


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.01])
def test_only_allowed_rows_are_found_and_never_too_few(index, vectors, queries, share):
    allowed = np.random.default_rng(3).random(N) < share
    check_answers(index.search(queries, 10, allowed=allowed), vectors, queries, 10, allowed)


def test_a_filter_against_the_query_still_fills_every_slot(index, vectors, queries):
    query = queries[:1]
    allowed = vectors @ query[0] < np.median(vectors @ query[0])
    neighbors = index.search(query, 10, allowed=allowed)
    check_answers(neighbors, vectors, query, 10, allowed)
    assert recall_at_k(neighbors, ExactIndex(vectors).search(query, 10, allowed=allowed)) >= 0.9


def test_all_allowed_is_the_same_as_no_filter(index, queries):
    every = index.search(queries, 9, allowed=np.ones(N, dtype=bool))
    check_same(every, index.search(queries, 9), equal=not index.approximate)


def test_the_mask_given_is_not_changed(index, queries):
    allowed = only(N, 1, 2, 3)
    index.search(queries[:1], 2, allowed=allowed)
    assert np.flatnonzero(allowed).tolist() == [1, 2, 3]


def test_no_queries_have_no_answers(index, vectors):
    neighbors = index.search(vectors[:0], 3)
    assert neighbors.rows.shape == neighbors.scores.shape == (0, 3)


def test_one_row_is_found_by_everything(build, queries):
    index = build(queries[:1].copy())
    check_answers(index.search(queries, 2), queries[:1], queries, 2)
    assert index.search(queries[:1], 1).scores[0, 0] == pytest.approx(1)


def test_an_empty_index_answers_with_padding(build, queries):
    index = build(queries[:0])
    assert len(index) == 0
    assert index.search(queries[:2], 3).rows.tolist() == [[-1, -1, -1]] * 2
    allowed = np.zeros(0, dtype=bool)
    assert index.search(queries[:1], 1, allowed=allowed).rows.tolist() == [[-1]]


# -- order and scores -------------------------------------------------------------------------


def test_duplicates_come_in_the_order_of_rows(build, vectors):
    twice = np.concatenate([vectors[:100]] * 3)
    neighbors = build(twice).search(vectors[40:41], 300)
    assert neighbors.rows[0, :3].tolist() == [40, 140, 240]
    check_answers(neighbors, twice, vectors[40:41], 300)


def test_many_copies_of_few_photos_hide_none_of_them(build, unit_vectors, queries):
    copies = unit_vectors(60)[np.random.default_rng(0).integers(60, size=N)]
    neighbors = build(copies).search(queries, 10)
    check_answers(neighbors, copies, queries, 10)
    assert recall_at_k(neighbors, ExactIndex(copies).search(queries, 10)) >= 0.95


def test_zero_vectors_score_zero_and_stand_in_the_way_of_nothing(build, vectors, queries):
    with_zeros = vectors.copy()
    with_zeros[::2] = 0
    neighbors = build(with_zeros).search(queries, 10)
    check_answers(neighbors, with_zeros, queries, 10)
    assert recall_at_k(neighbors, ExactIndex(with_zeros).search(queries, 10)) >= 0.95
    last = build(with_zeros).search(queries[:1], N)
    assert np.count_nonzero(last.scores == 0) == N // 2


def test_a_zero_query_scores_every_row_zero(index, vectors):
    zero = np.zeros((1, 16), dtype=np.float32)
    neighbors = index.search(zero, 20)
    check_answers(neighbors, vectors, zero, 20)
    assert neighbors.scores.tolist() == [[0.0] * 20]


def test_a_row_scores_the_same_to_the_last_bit_whatever_else_is_looked_at(index, vectors, queries):
    rng = np.random.default_rng(5)
    row = int(index.search(queries[:1], 1).rows[0, 0])
    scores = {index.search(queries[:1], 1).scores[0, 0].tobytes()}
    for share, k in ((0.9, 3), (0.5, 50), (0.1, 7), (0.01, 1000), (0.0, 1)):
        allowed = rng.random(N) < share
        allowed[row] = True
        neighbors = index.search(queries[:7], k, allowed=allowed)
        assert neighbors.rows[0, 0] == row
        scores.add(neighbors.scores[0, 0].tobytes())
    scores.add(cosines(vectors, queries[0])[row].tobytes())
    assert len(scores) == 1


def test_a_batch_is_answered_as_its_queries_one_by_one(index, queries):
    allowed = np.random.default_rng(6).random(N) < 0.7
    batch = index.search(queries, 8, allowed=allowed)
    singles = [index.search(query[np.newaxis], 8, allowed=allowed) for query in queries]
    assert batch.rows.tolist() == [single.rows[0].tolist() for single in singles]
    assert batch.scores.tolist() == [single.scores[0].tolist() for single in singles]
    backwards = index.search(queries[::-1], 8, allowed=allowed)
    assert backwards.rows[::-1].tolist() == batch.rows.tolist()


def test_asking_again_or_building_again_gives_the_same_answers(build, index, vectors, queries):
    first = index.search(queries, 10)
    check_same(index.search(queries, 10), first)
    check_same(build(vectors.copy()).search(queries, 10), first)


def test_vectors_in_a_memory_map_give_the_same_answers(tmp_path, build, index, vectors, queries):
    np.save(tmp_path / "v.npy", vectors)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    check_same(build(mapped).search(queries, 10), index.search(queries, 10))


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_small_indexes_keep_the_contract(build, data):
    # Whole numbers have exact products, so ties are real and the oracle rounds like the index.
    n, dim = data.draw(st.integers(0, 60)), data.draw(st.integers(1, 6))
    seed, k = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.integers(1, 70))
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, size=(n, dim)).astype(np.float32)
    queries = rng.integers(-2, 3, size=(2, dim)).astype(np.float32)
    allowed = data.draw(st.none() | st.floats(0, 1).map(lambda share: rng.random(n) < share))
    index = build(rows, M=4, ef_construction=20, ef_search=10)
    neighbors = index.search(queries, k, allowed=allowed)
    check_answers(neighbors, rows, queries, k, allowed)
    for exact in (index.search(queries, k, allowed=allowed, recall=1.0), neighbors):
        for given_rows, query in zip(exact.rows.tolist(), queries, strict=True):
            expected = by_sorting(rows, query, k, allowed)
            assert given_rows == expected + [-1] * (k - len(expected))
        if index.approximate:
            break


# -- photos come and go -----------------------------------------------------------------------


def test_an_index_of_a_changed_library_finds_what_is_there_now(kind, tmp_path, vectors, queries):
    rng = np.random.default_rng(12)
    config, labels = Config(index=kind), np.arange(800)
    index = build_index(vectors[labels], config, labels)
    for first in (800, 950, 1_100):
        stay = rng.permutation(labels)[: len(labels) - 60]
        labels = rng.permutation(np.concatenate([stay, np.arange(first, min(first + 150, N))]))
        rows = vectors[labels]
        index = update_index(index, rows, config, labels=labels)
        assert len(index) == len(labels)
        allowed = rng.random(len(labels)) < 0.3
        neighbors = index.search(queries, 10, allowed=allowed)
        check_answers(neighbors, rows, queries, 10, allowed)
        assert recall_at_k(neighbors, ExactIndex(rows).search(queries, 10, allowed=allowed)) >= 0.95
        check_nearest(index.nearest(queries[0], 40), rows, queries[0], 40)
        check_nearest(index.nearest(queries[0], 9, allowed=allowed), rows, queries[0], 9, allowed)
    index.save(tmp_path)
    opened = open_index(tmp_path, rows, config, labels=labels)
    check_same(opened.search(queries, 10), index.search(queries, 10))


def test_an_index_may_lose_all_photos_and_gain_others(kind, vectors, queries):
    config = Config(index=kind)
    index = build_index(vectors[:90], config, np.arange(90))
    index = update_index(index, vectors[:0], config, labels=np.zeros(0, dtype=np.int64))
    assert index.search(queries[:1], 2).rows.tolist() == [[-1, -1]]
    index = update_index(index, vectors[90:150], config, labels=np.arange(90, 150))
    check_answers(index.search(queries, 5), vectors[90:150], queries, 5)
    check_nearest(index.nearest(queries[0], 7), vectors[90:150], queries[0], 7)


# -- bits and masks, recall -------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.8, 1.0])
def test_a_bitmap_is_answered_as_its_mask(index, queries, share):
    mask = np.random.default_rng(7).random(N) < share
    bits = Bitmap.of_mask(mask)
    check_same(index.search(queries, 9, allowed=bits), index.search(queries, 9, allowed=mask))
    one, other = (index.nearest(queries[0], 50, allowed=allowed) for allowed in (bits, mask))
    assert one.rows.tolist() == other.rows.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()


@pytest.mark.parametrize("share", [1.0, 0.4, 0.02])
@pytest.mark.parametrize("k", [1, 30, N])
def test_a_recall_of_1_misses_nothing(index, vectors, queries, k, share):
    allowed = np.random.default_rng(8).random(N) < share
    neighbors = index.search(queries[:10], k, allowed=allowed, recall=1)
    check_answers(neighbors, vectors, queries[:10], k, allowed)
    for rows, query in zip(neighbors.rows.tolist(), queries, strict=False):
        assert [row for row in rows if row >= 0] == by_sorting(vectors, query, k, allowed)


def test_a_recall_asked_for_is_reached(index, vectors, queries):
    exact = ExactIndex(vectors).search(queries, 10)
    assert recall_at_k(index.search(queries, 10, recall=0.9), exact) >= 0.9


# -- refused arguments ------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_query_that_is_not_finite_is_refused(index, queries, bad):
    broken = queries[:3].copy()
    broken[2, 5] = bad
    with pytest.raises(InputError, match="queries must be finite"):
        index.search(broken, 3)


@pytest.mark.parametrize("shape", [(16,), (1, 15), (1, 17), (1, 0), (1, 1, 16), ()])
def test_queries_of_another_shape_are_refused(index, shape):
    with pytest.raises(InputError, match=r"shape \(n_queries, 16\), got"):
        index.search(np.zeros(shape, dtype=np.float32), 3)


@pytest.mark.parametrize("k", [0, -1, -(10**30)])
def test_k_below_1_is_refused(index, queries, k):
    with pytest.raises(InputError, match="k must be at least 1"):
        index.search(queries[:1], k)


@pytest.mark.parametrize(
    "allowed",
    [
        np.ones(N - 1, dtype=bool),
        np.ones(N + 1, dtype=bool),
        np.ones((1, N), dtype=bool),
        np.ones(N, dtype=np.int64),
        np.ones(N, dtype=np.uint8),
        np.arange(5),
    ],
)
def test_a_mask_of_another_shape_or_type_is_refused(index, queries, allowed):
    with pytest.raises(InputError, match=rf"allowed must be bool of shape \({N},\), got"):
        index.search(queries[:1], 3, allowed=allowed)


@pytest.mark.parametrize("n", [0, N - 1, N + 1, N + 64])
def test_bits_over_other_rows_are_refused(index, queries, n):
    bits = Bitmap.full(n)
    with pytest.raises(InputError, match=f"allowed must be over {N} rows, got Bitmap"):
        index.search(queries[:1], 3, allowed=bits)
    with pytest.raises(InputError, match=f"allowed must be over {N} rows, got Bitmap"):
        index.nearest(queries[0], 3, allowed=bits)


@pytest.mark.parametrize("recall", [0, -0.1, 1.001, np.nan, np.inf])
def test_a_recall_out_of_range_is_refused(index, queries, recall):
    with pytest.raises(InputError, match="recall must be above 0 and at most 1"):
        index.search(queries[:1], 3, recall=recall)


def test_a_wrong_query_is_refused_by_an_empty_index_too(build, queries):
    with pytest.raises(InputError, match="shape"):
        build(queries[:0]).search(queries[:1, :5], 1)


# -- persistence and threads ------------------------------------------------------------------


@pytest.mark.parametrize("ef_search", [10, 100])
def test_a_saved_index_gives_the_same_answers(kind, tmp_path, unit_vectors, ef_search):
    # Few links and a short walk, so that another `ef` would be seen in the answers.
    spread = unit_vectors(N, 32, clusters=N)
    queries = unit_vectors(40, 32, clusters=N, seed=99)
    config = Config(index=kind, M=4, ef_construction=10, ef_search=ef_search)
    labels = np.random.default_rng(0).permutation(N)
    index = build_index(spread, config, labels)
    index.save(tmp_path)
    opened = open_index(tmp_path, spread, config, labels=labels)
    assert len(opened) == N
    assert opened.approximate == index.approximate
    if kind.startswith("milvus:"):  # its graph is built anew when a collection is loaded
        check_answers(opened.search(queries, 5), spread, queries, 5)
        return
    check_same(opened.search(queries, 5), index.search(queries, 5))
    allowed = np.random.default_rng(1).random(N) < 0.6
    check_same(
        opened.search(queries, 5, allowed=allowed), index.search(queries, 5, allowed=allowed)
    )


def test_an_empty_index_can_be_saved_and_opened(kind, tmp_path, queries):
    config, labels = Config(index=kind), np.zeros(0, dtype=np.int64)
    build_index(queries[:0], config, labels).save(tmp_path)
    opened = open_index(tmp_path, queries[:0], config, labels=labels)
    assert opened.search(queries[:1], 2).rows.tolist() == [[-1, -1]]


@pytest.mark.slow
def test_eight_threads_get_the_same_answers(index, queries):
    allowed = np.random.default_rng(2).random(N) < 0.8
    expected = index.search(queries, 10, allowed=allowed)

    def ask(number):
        query = queries[number % 40][np.newaxis]
        return index.search(query, 10, allowed=allowed)

    with ThreadPoolExecutor(8) as pool:
        for number, neighbors in enumerate(pool.map(ask, range(400))):
            assert neighbors.rows[0].tolist() == expected.rows[number % 40].tolist()
            assert neighbors.scores[0].tobytes() == expected.scores[number % 40].tobytes()
