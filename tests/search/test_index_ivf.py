"""The clustered index: exact where it says so, measured where it does not, and the same again."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.errors import DataError, InputError, MismatchError
from searchlab.evaluation.metrics import recall_at_k
from searchlab.models.protocol import unit_rows
from searchlab.photos.columns import open_columns, save_columns
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import ExactIndex
from searchlab.search.indexes.ivf.early_stop import STRETCHES, Stopping
from searchlab.search.indexes.ivf.index import IvfIndex
from searchlab.search.indexes.ivf.lists import choose_n_lists
from searchlab.search.indexes.ivf.search import scan_lists
from searchlab.studies.vectors.made import clustered, made_vectors, text_like
from tests.support.neighbor_checks import check_answers

N, DIM = 6_000, 48


@pytest.fixture(scope="module")
def members():
    return clustered(N + 60, DIM, clusters=40, seed=0)[1][:N]


@pytest.fixture(scope="module")
def all_vectors():
    return clustered(N + 60, DIM, clusters=40, seed=0)[0]


@pytest.fixture(scope="module")
def vectors(all_vectors):
    return all_vectors[:N].copy()


@pytest.fixture(scope="module")
def queries(all_vectors):
    return {"image": all_vectors[N:].copy(), "text": text_like(all_vectors[N:], seed=3)}


@pytest.fixture(scope="module")
def index(vectors):
    return IvfIndex(vectors)


@pytest.fixture(scope="module")
def exact(vectors):
    return ExactIndex(vectors)


def check_equal(one, other):
    assert one.rows.tolist() == other.rows.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()


def masks(members):
    rng = np.random.default_rng(8)
    clusters = rng.permutation(40)
    return {
        "half at random": rng.random(N) < 0.5,
        "a twentieth at random": rng.random(N) < 0.05,
        "clusters": np.isin(members, clusters[:8]),
        "all but clusters": ~np.isin(members, clusters[:30]),
    }


# -- recall -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["image", "text"])
def test_recall_without_a_filter(index, exact, queries, kind):
    neighbors = index.search(queries[kind], 20)
    assert recall_at_k(neighbors, exact.search(queries[kind], 20)) >= 0.98


@pytest.mark.parametrize("kind", ["image", "text"])
@pytest.mark.parametrize(
    "name", ["half at random", "a twentieth at random", "clusters", "all but clusters"]
)
def test_recall_under_filters_that_go_with_the_clusters_or_do_not(
    index, exact, queries, members, kind, name
):
    mask = masks(members)[name]
    neighbors = index.search(queries[kind], 20, allowed=mask)
    assert recall_at_k(neighbors, exact.search(queries[kind], 20, allowed=mask)) >= 0.98


def test_a_filter_that_forbids_what_is_nearest_is_seen_through(index, exact, queries, vectors):
    for query in queries["image"][:10]:
        allowed = vectors @ query < np.quantile(vectors @ query, 0.6)
        neighbors = index.search(query[np.newaxis], 20, allowed=allowed)
        truth = exact.search(query[np.newaxis], 20, allowed=allowed)
        assert recall_at_k(neighbors, truth) >= 0.9


def test_smooth_vectors_are_found_too():
    made = made_vectors("smooth-5k-32", n_queries=40)
    index, exact = IvfIndex(made.photos), ExactIndex(made.photos)
    for queries in made.queries.values():
        assert recall_at_k(index.search(queries, 20), exact.search(queries, 20)) >= 0.98


def test_a_recall_of_1_is_the_exact_answer(index, exact, queries, members):
    for mask in (None, *masks(members).values()):
        neighbors = index.search(queries["text"][:20], 20, allowed=mask, recall=1.0)
        check_equal(neighbors, exact.search(queries["text"][:20], 20, allowed=mask))


def test_more_recall_reads_more_rows(index, queries):
    def read(recall):
        known = {
            "usual": index._stopping.usual,
            "bands": index._stopping.bands(recall, filtered=False),
        }
        rows = [
            scan_lists(index._lists, query, None, 20, recall=recall, **known)[1]
            for query in queries["text"]
        ]
        return sum(rows)

    counts = [read(recall) for recall in (0.5, 0.9, 0.99, 0.999)]
    assert counts == sorted(set(counts))
    assert counts[2] < 0.6 * N * len(queries["text"])


def test_the_recall_of_a_call_goes_before_that_of_the_index(vectors, exact, queries):
    careless = IvfIndex(vectors, recall=0.3)
    truth = exact.search(queries["text"], 20)
    low = recall_at_k(careless.search(queries["text"], 20), truth)
    assert low < recall_at_k(careless.search(queries["text"], 20, recall=0.99), truth)


def test_a_stretch_grows_with_the_recall_asked_for():
    easy = [0.99, 1, 1, 1, 1, 1]
    reached = np.array([[easy, [0.8, 0.9, 0.95, 0.98, 0.99, 0.995]], [easy, easy]], np.float32)
    stopping = Stopping(0.1, 0.7, 0.3, reached)
    near, stretch, far, other = stopping.bands(0.965, filtered=True)
    assert (near, far, other) == (0.7, 0.3, STRETCHES[0])
    assert STRETCHES[2] < stretch < STRETCHES[3]
    assert stopping.bands(0.965, filtered=False)[1] == STRETCHES[0]
    assert stopping.bands(0.999, filtered=True)[1] > STRETCHES[-1]
    packed = Stopping.unpack(stopping.pack(), DIM)
    assert packed.bands(0.9, filtered=True) == pytest.approx(stopping.bands(0.9, filtered=True))


# -- exact answers ----------------------------------------------------------------------------


@pytest.mark.slow
@given(
    n=st.integers(0, 300),
    dim=st.integers(1, 40),
    k=st.integers(0, 350),
    n_lists=st.integers(0, 400),
    share=st.sampled_from([None, 0.0, 0.01, 0.5, 1.0]),
    at_least=st.sampled_from([-np.inf, -0.2, 0.3, 0.999, 1.5]),
    twins=st.integers(1, 4),
    seed=st.integers(0, 5),
)
@settings(max_examples=80, deadline=None)
def test_nearest_is_the_exact_answer_bit_for_bit(n, dim, k, n_lists, share, at_least, twins, seed):
    rng = np.random.default_rng(seed)
    made = unit_rows(rng.standard_normal((n, dim))) if n else np.zeros((0, dim), dtype=np.float32)
    vectors = np.repeat(made, twins, axis=0)[:n]
    index = IvfIndex(vectors, n_lists=n_lists, threads=1)
    allowed = None if share is None else Bitmap.of_mask(rng.random(n) < share)
    for query in (unit_rows(rng.standard_normal((1, dim)))[0], np.zeros(dim, dtype=np.float32)):
        exact = ExactIndex(vectors).nearest(query, k, allowed=allowed, at_least=at_least)
        check_equal(index.nearest(query, k, allowed=allowed, at_least=at_least), exact)


@pytest.mark.parametrize("k", [1, 20, 300, 1_499, 1_500, N, 2 * N])
def test_deep_pages_are_exact(index, exact, queries, members, k):
    for mask in (None, *masks(members).values()):
        query = queries["text"][3]
        check_equal(index.nearest(query, k, allowed=mask), exact.nearest(query, k, allowed=mask))


@pytest.mark.parametrize("at_least", [-1.0, 0.2, 0.5, 0.9])
def test_thresholds_are_exact(index, exact, vectors, at_least):
    for query in vectors[:5]:
        check_equal(
            index.nearest(query, N, at_least=at_least), exact.nearest(query, N, at_least=at_least)
        )


def test_queries_that_are_no_unit_rows_are_exact_too(index, exact, queries):
    for size in (1e-30, 1e-3, 7.0, 1e4):
        query = queries["image"][0] * np.float32(size)
        check_equal(index.nearest(query, 20), exact.nearest(query, 20))


# -- what vectors and queries may be ----------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 5, 31, 33, 64])
@pytest.mark.parametrize("n_lists", [0, 1, 7, 1_000])
def test_few_rows(unit_vectors, n, n_lists):
    vectors = unit_vectors(64, dim=10)[:n]
    index = IvfIndex(vectors, n_lists=n_lists)
    queries = unit_vectors(3, dim=10, seed=5)
    for k in (1, 5, 100):
        check_answers(index.search(queries, k), vectors, queries, k)


def test_rows_that_are_all_the_same(unit_vectors):
    vectors = np.repeat(unit_vectors(1), 3_000, axis=0)
    neighbors = IvfIndex(vectors).search(vectors[:1], 5)
    assert neighbors.scores[0].tolist() == pytest.approx([1.0] * 5)


def test_twins_in_one_list_come_in_the_order_of_their_rows(vectors):
    twice = np.concatenate([vectors, vectors])
    neighbors = IvfIndex(twice).search(vectors[:20], 2)
    assert neighbors.rows.tolist() == [[row, row + N] for row in range(20)]


def test_mapped_strided_and_read_only_arrays(tmp_path, vectors, index, queries):
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    strided = np.repeat(vectors, 2, axis=0)[::2]
    strided_queries = np.repeat(queries["image"], 2, axis=1)[:, ::2]
    strided_queries.flags.writeable = False
    expected = index.search(queries["image"], 10)
    for given_vectors in (mapped, strided):
        check_equal(IvfIndex(given_vectors).search(strided_queries, 10), expected)


def test_a_bitmap_and_a_mask_allow_the_same(index, queries, members):
    for mask in masks(members).values():
        bits = Bitmap.of_mask(mask)
        check_equal(
            index.search(queries["image"], 9, allowed=bits),
            index.search(queries["image"], 9, allowed=mask),
        )


@pytest.mark.parametrize("gather_below", [1, N])
def test_gathering_and_scanning_agree(vectors, exact, queries, members, gather_below):
    index = IvfIndex(vectors, gather_below=gather_below)
    for mask in masks(members).values():
        neighbors = index.search(queries["text"], 20, allowed=mask)
        assert recall_at_k(neighbors, exact.search(queries["text"], 20, allowed=mask)) >= 0.98


@pytest.mark.parametrize(
    "arguments", [{"recall": 0.0}, {"recall": 1.1}, {"recall": float("nan")}, {"n_lists": -1}]
)
def test_settings_out_of_range_are_refused(vectors, arguments):
    with pytest.raises(InputError, match="must be"):
        IvfIndex(vectors[:10], **arguments)


def test_labels_and_lists_of_other_rows_are_refused(vectors, index):
    with pytest.raises(MismatchError, match="labels must be as many as rows"):
        IvfIndex(vectors[:10], labels=np.arange(9))
    with pytest.raises(MismatchError, match="lists must be of as many rows"):
        IvfIndex(vectors[:10], lists=index._lists)


# -- the same again ---------------------------------------------------------------------------


def test_threads_do_not_change_the_lists(vectors):
    one, two = (IvfIndex(vectors, threads=threads)._lists for threads in (1, 3))
    for name in one.__dataclass_fields__:
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def test_another_seed_makes_other_lists(vectors, index):
    other = IvfIndex(vectors, seed=1)
    assert other._lists.rows.tolist() != index._lists.rows.tolist()


def test_a_batch_is_answered_as_its_queries_are_one_by_one(index, queries):
    together = index.search(queries["text"], 7)
    for number, query in enumerate(queries["text"]):
        alone = index.search(query[np.newaxis], 7)
        assert together.rows[number].tolist() == alone.rows[0].tolist()


def test_many_threads_may_search_at_once(vectors, queries):
    index = IvfIndex(vectors)
    expected = index.search(queries["text"], 7).rows.tolist()
    answers = []

    def ask():
        answers.append(index.search(queries["text"], 7).rows.tolist())

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 6


# -- changed libraries ------------------------------------------------------------------------


def changed(vectors, *, gone, new):
    """Drop every `gone`-th row and put new ones between the others."""
    labels = np.arange(len(vectors))
    kept_labels = labels[labels % gone != 0]
    rows = np.concatenate([vectors[kept_labels], new])
    numbers = np.concatenate([kept_labels, len(vectors) + np.arange(len(new))])
    order = np.random.default_rng(6).permutation(len(numbers))
    return np.ascontiguousarray(rows[order]), numbers[order]


def test_an_update_index_is_that_of_the_changed_library(index, all_vectors, queries):
    vectors, labels = changed(all_vectors[:N], gone=7, new=near_rows(all_vectors, 500))
    updated = index.update(vectors, labels)
    exact = ExactIndex(vectors)
    assert updated._lists.centres is index._lists.centres
    assert sorted(updated._lists.rows.tolist()) == list(range(len(vectors)))
    for query in queries["image"][:10]:
        check_equal(updated.nearest(query, 30), exact.nearest(query, 30))
        check_equal(updated.nearest(query, N, at_least=0.5), exact.nearest(query, N, at_least=0.5))
    for kind in queries.values():
        assert recall_at_k(updated.search(kind, 20), exact.search(kind, 20)) >= 0.98


def near_rows(all_vectors, count):
    noise = np.random.default_rng(11).standard_normal((count, DIM))
    return unit_rows(all_vectors[:count] + 0.05 * noise)


def test_the_index_before_stays_as_it_was(vectors, queries):
    index = IvfIndex(vectors)
    before = index.search(queries["image"], 5)
    index.update(*changed(vectors, gone=2, new=vectors[:0]))
    check_equal(index.search(queries["image"], 5), before)


def test_updates_upon_updates_are_exact(index, vectors, queries):
    updated, labels = index, np.arange(N)
    for step in range(3):
        kept_labels = labels[np.arange(len(labels)) % 5 != step]
        vectors = vectors[np.arange(len(labels)) % 5 != step]
        labels = kept_labels
        updated = updated.update(np.ascontiguousarray(vectors), labels)
    query = queries["image"][0]
    check_equal(updated.nearest(query, 50), ExactIndex(vectors).nearest(query, 50))


@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_library_that_shrinks_or_grows_much_gets_new_clusters(index, vectors, queries, count):
    few = index.update(vectors[:count].copy(), np.arange(count))
    assert few.n_lists == choose_n_lists(count) if count else few.n_lists == 0
    again = few.update(vectors, np.arange(N))
    assert again.n_lists == index.n_lists
    assert len(again.search(queries["image"], 5).rows) == len(queries["image"])


def test_photos_of_a_kind_that_was_not_there_get_clusters_of_their_own(index, vectors):
    strange, _ = clustered(4_000, DIM, clusters=10, seed=77)
    updated = index.update(np.concatenate([vectors, strange]), np.arange(N + 4_000))
    assert updated._lists.centres is not index._lists.centres
    assert updated._lists.spread < 1.1 * index._lists.spread


# -- on disk ----------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, index):
    index.save(tmp_path)
    return tmp_path


def test_a_saved_index_is_opened_by_memory_map_and_answers_the_same(saved, index, vectors, queries):
    opened = IvfIndex.open(saved, vectors, Config(), labels=np.arange(N))
    assert not opened._lists.codes.flags.owndata
    assert not opened._lists.codes.flags.writeable
    for kind in queries.values():
        check_equal(opened.search(kind, 20), index.search(kind, 20))
    mask = np.random.default_rng(1).random(N) < 0.3
    check_equal(opened.search(kind, 20, allowed=mask), index.search(kind, 20, allowed=mask))
    check_equal(opened.nearest(kind[0], 20), index.nearest(kind[0], 20))


def test_an_opened_index_can_be_updated(saved, vectors, queries):
    opened = IvfIndex.open(saved, vectors, Config(), labels=np.arange(N))
    rows, labels = changed(vectors, gone=9, new=vectors[:0])
    updated = opened.update(rows, labels)
    check_equal(
        updated.nearest(queries["text"][0], 9), ExactIndex(rows).nearest(queries["text"][0], 9)
    )


def test_an_index_without_rows_is_saved_and_opened(tmp_path):
    nothing = np.zeros((0, 12), dtype=np.float32)
    IvfIndex(nothing).save(tmp_path)
    opened = IvfIndex.open(tmp_path, nothing, Config(), labels=np.arange(0))
    assert opened.search(np.ones((1, 12), dtype=np.float32), 3).rows.tolist() == [[-1] * 3]


def check_refused(folder, vectors, match):
    with pytest.raises(DataError, match=match) as refused:
        IvfIndex.open(folder, vectors, Config(), labels=np.arange(len(vectors)))
    assert "lists.columns" in str(refused.value)
    assert "index" in str(refused.value).split(";")[-1]


def test_a_missing_file_is_refused(tmp_path, vectors):
    check_refused(tmp_path, vectors, "No such file")


def test_a_file_cut_short_is_refused(saved, vectors):
    data = (saved / "lists.columns").read_bytes()
    (saved / "lists.columns").write_bytes(data[: len(data) // 2])
    check_refused(saved, vectors, "cut short")


def test_other_vectors_are_refused(saved, vectors, unit_vectors):
    check_refused(saved, vectors[:-1], "not")
    check_refused(saved, unit_vectors(N, dim=DIM - 1), "centres|codes")
    check_refused(saved, unit_vectors(N, dim=DIM, seed=4), "built from other vectors")
    check_refused(saved, np.roll(vectors, 1, axis=0), "built from other vectors")


def tampered(name, change):
    def _change(folder):
        columns = {
            key: column.copy() for key, column in open_columns(folder / "lists.columns").items()
        }
        change(columns)
        save_columns(folder / "lists.columns", columns)

    return pytest.param(_change, id=name)


def set_nan(columns):
    columns["radii"].view(np.float32)[3] = np.nan


@pytest.mark.parametrize(
    "change",
    [
        tampered("row twice", lambda c: c["rows"].__setitem__(0, c["rows"][1])),
        tampered("row beyond", lambda c: c["rows"].__setitem__(0, N)),
        tampered("row below", lambda c: c["rows"].__setitem__(0, -1)),
        tampered("list before", lambda c: c["offsets"].__setitem__(1, N + 1)),
        tampered("list end", lambda c: c["offsets"].__setitem__(-1, N - 1)),
        tampered("no number", set_nan),
        tampered("column gone", lambda c: c.pop("scales")),
        tampered("column cut", lambda c: c.__setitem__("errors", c["errors"][:-1])),
        tampered("another dtype", lambda c: c.__setitem__("offsets", c["offsets"].astype("<i4"))),
        tampered("tails cut", lambda c: c.__setitem__("stopping", c["stopping"][:-1])),
        tampered("no lists", lambda c: c.__setitem__("offsets", c["offsets"][:0])),
    ],
)
def test_a_damaged_file_is_refused(saved, vectors, change):
    change(saved)
    check_refused(saved, vectors, "must be this snapshot's lists")
