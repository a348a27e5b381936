"""The clustered index: exact where it says so, measured where it does not, and the same again."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.metrics import recall_at_k
from searchlab.models.protocol import unit_rows
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import ExactIndex
from searchlab.search.indexes.ivf import early_stop
from searchlab.search.indexes.ivf.early_stop import N_QUERIES, hold_out, make_masks
from searchlab.search.indexes.ivf.index import IvfIndex
from searchlab.search.indexes.ivf.stopping import RECALLS, STRETCHES
from searchlab.search.indexes.scoring import cosines
from searchlab.studies.vectors.made import made_vectors
from tests.support import ivf_world
from tests.support.examples import examples
from tests.support.ivf_world import DIM, N, check_equal
from tests.support.neighbor_checks import check_answers

all_vectors, vectors, members = ivf_world.all_vectors, ivf_world.vectors, ivf_world.members
queries, index, exact = ivf_world.queries, ivf_world.index, ivf_world.exact


def masks(members):
    rng = np.random.default_rng(8)
    clusters = rng.permutation(40)
    return {
        "half at random": rng.random(N) < 0.5,
        "a twentieth at random": rng.random(N) < 0.05,
        "clusters": np.isin(members, clusters[:8]),
        "all but clusters": ~np.isin(members, clusters[:30]),
    }


def test_rows_that_scatter_alike_in_every_direction_are_taken_to_scatter_so():
    """Twice the variance that a row of the nearest lists has along a query, as a share of all."""
    rng = np.random.default_rng(0)
    centres = unit_rows(rng.normal(size=(20, 32)).astype(np.float32))
    scattered = centres[rng.integers(20, size=6_000)] + 0.2 * rng.normal(size=(6_000, 32)) / 32**0.5
    index = IvfIndex(unit_rows(scattered.astype(np.float32)), n_lists=20)
    assert index._stopping.usual * 32 == pytest.approx(1.5, abs=0.7)


def test_tails_lie_at_most_all_the_way_along_each_other():
    vectors = made_vectors("smooth-3k-96").photos
    twins = IvfIndex(np.concatenate([vectors, vectors]), n_lists=20)
    assert twins._stopping.along[0] == 1


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


def test_rows_held_out_to_learn_when_to_stop_do_not_find_themselves(index, vectors):
    """Each would be its own nearest neighbour, in the list where a scan begins."""
    held_out = hold_out(len(vectors), seed=0)
    assert len(held_out) == 128
    for mask in make_masks(index._lists, held_out, np.random.default_rng(0)):
        assert not mask[held_out].any()
        assert mask.sum() > 0.05 * len(vectors)


def test_no_row_is_held_out_twice():
    for seed in range(3):
        held_out = hold_out(2_000, seed=seed)  # of so few, a draw with repeats would repeat some
        assert len(set(held_out.tolist())) == len(held_out) == N_QUERIES


def test_queries_that_are_like_texts_lie_as_far_from_photos_as_texts_do(
    index, vectors, monkeypatch
):
    asked = []

    def note(_lists, _vectors, queries, _masks, *, usual):
        asked.append(queries)
        curves = np.full((2, len(STRETCHES)), usual, dtype=np.float32)
        return early_stop._Lesson(curves, curves[:, : len(RECALLS)], np.float32(1))

    monkeypatch.setattr(early_stop, "_learn_kind", note)
    held_out = hold_out(N, seed=5)
    early_stop.learn_stopping(index._lists, vectors, held_out, seed=5, threads=1)

    noise = np.random.default_rng([5, 2]).standard_normal((N_QUERIES, DIM))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    texts = 0.35 * vectors[held_out] + np.sqrt(1 - 0.35**2) * noise
    np.testing.assert_allclose(asked[0], vectors[held_out])
    np.testing.assert_allclose(asked[1], unit_rows(texts), atol=1e-6)


@pytest.mark.slow
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
        return index.search(queries["text"], 20, recall=recall).rows_read.sum()

    counts = [read(recall) for recall in (0.5, 0.9, 0.99, 0.999)]
    assert counts == sorted(set(counts))
    assert counts[2] < 0.6 * N * len(queries["text"])


def test_the_recall_of_a_call_goes_before_that_of_the_index(vectors, index, exact, queries):
    careless = IvfIndex(vectors, recall=0.3, lists=index._lists)
    truth = exact.search(queries["text"], 20)
    low = recall_at_k(careless.search(queries["text"], 20), truth)
    assert low < recall_at_k(careless.search(queries["text"], 20, recall=0.99), truth)


@pytest.mark.slow
@pytest.mark.parametrize(("n_mixed", "gap"), [(2, 1.5), (6, 3.0)])
def test_texts_that_were_learnt_from_are_searched_as_far_as_they_need(
    vectors, index, exact, n_mixed, gap
):
    """As texts do, they lie between photos and apart from all of them."""
    rng = np.random.default_rng(6)
    mixed = vectors[rng.integers(0, N, (240, n_mixed))].sum(axis=1)
    texts = unit_rows(mixed + gap * unit_rows(rng.standard_normal((1, DIM))).astype(np.float32))
    asked, known = texts[:112], texts[112:]
    truth = exact.search(asked, 20)
    index = IvfIndex(vectors, lists=index._lists)
    assert index.wants_texts

    def errors():
        targets = (0.9, 0.95, 0.99)
        return [abs(recall_at_k(index.search(asked, 20, recall=t), truth) - t) for t in targets]

    def read_for_photos():
        return index.search(vectors[:50], 20).rows_read.tolist()

    before, photos = errors(), read_for_photos()
    index.learn(known)
    assert not index.wants_texts
    assert max(errors()) < 0.02
    assert sum(errors()) < max(0.6 * sum(before), 0.02)  # of so few queries less is chance
    assert sum(read_for_photos()) < 1.1 * sum(photos)


@pytest.mark.slow
def test_what_was_learnt_stays(vectors, index, queries, tmp_path):
    index = IvfIndex(vectors, lists=index._lists)
    index.learn(queries["text"])
    index.save(tmp_path)
    opened = IvfIndex.open(tmp_path, vectors, Config(index="clustered"), labels=index.labels)
    changed = opened.update(vectors[:-9], index.labels[:-9])
    assert (opened.wants_texts, changed.wants_texts) == (False, False)
    check_equal(opened.search(queries["text"], 20), index.search(queries["text"], 20))
    assert opened.update(vectors[:2_500], index.labels[:2_500]).wants_texts  # of new lists


def test_few_rows_have_nothing_to_learn(vectors):
    index = IvfIndex(vectors[:500])
    assert not index.wants_texts
    index.learn(vectors[:3])
    assert not index._stopping.is_measured


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
@settings(max_examples=examples(80), deadline=None)
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


@pytest.mark.parametrize("dim", [1, 31, 64, 100, 512])
def test_rows_without_a_coding_error_reach_a_threshold_that_rounding_raised(dim):
    """Their codes say 1; the cosine that counts is a float32 sum, which may be a hair more."""
    signs = np.random.default_rng(dim).choice([-1, 1], size=(60, dim))
    rows = unit_rows(signs.astype(np.float32))
    index = IvfIndex(rows, n_lists=4)
    for query in rows[:8]:
        least = float(cosines(rows, query).max())
        assert index.nearest(query, 3, at_least=least).scores.max() == least


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


@pytest.mark.slow
def test_rows_that_are_all_the_same(unit_vectors):
    vectors = np.repeat(unit_vectors(1), 3_000, axis=0)
    neighbors = IvfIndex(vectors).search(vectors[:1], 5)
    assert neighbors.scores[0].tolist() == pytest.approx([1.0] * 5)


@pytest.mark.slow
def test_twins_in_one_list_come_in_the_order_of_their_rows(vectors):
    twice = np.concatenate([vectors, vectors])
    neighbors = IvfIndex(twice).search(vectors[:20], 2)
    assert neighbors.rows.tolist() == [[row, row + N] for row in range(20)]


@pytest.mark.slow
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
def test_gathering_and_scanning_agree(vectors, index, exact, queries, members, gather_below):
    index = IvfIndex(vectors, gather_below=gather_below, lists=index._lists)
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


@pytest.mark.slow
def test_a_system_that_does_not_say_which_processors_may_be_used(monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity")
    rows = np.eye(4, dtype=np.float32)
    assert IvfIndex(rows).search(rows[:1], 1).rows.tolist() == [[0]]


def test_threads_do_not_change_the_lists(vectors):
    one, two = (IvfIndex(vectors, threads=threads)._lists for threads in (1, 3))
    for name in one.__dataclass_fields__:
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


@pytest.mark.slow
def test_another_seed_makes_other_lists(vectors, index):
    other = IvfIndex(vectors, seed=1)
    assert other._lists.rows.tolist() != index._lists.rows.tolist()


def test_a_batch_is_answered_as_its_queries_are_one_by_one(index, queries):
    together = index.search(queries["text"], 7)
    for number, query in enumerate(queries["text"]):
        alone = index.search(query[np.newaxis], 7)
        assert together.rows[number].tolist() == alone.rows[0].tolist()


def test_many_threads_may_search_at_once(index, queries):
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
