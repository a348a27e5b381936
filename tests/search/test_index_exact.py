"""Exact search: the oracle of all other indexes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from searchlab.search.indexes import ExactIndex, scoring
from searchlab.search.indexes.exact import nearest_rows
from searchlab.search.indexes.scoring import best_first, cosines, cosines_of
from tests.support import index_kinds
from tests.support.examples import examples
from tests.support.index_kinds import N
from tests.support.neighbor_checks import check_answers, check_nearest

queries = index_kinds.queries
vectors = index_kinds.vectors


@pytest.mark.parametrize("k", [1, 10, 500])
def test_exact_finds_what_a_plain_sort_finds(vectors, queries, k):
    neighbors = ExactIndex(vectors).search(queries, k)
    similar = vectors.astype(np.float64) @ queries.T.astype(np.float64)
    expected = np.argsort(-similar, axis=0, kind="stable")[:k].T
    assert (neighbors.rows == expected).mean() > 0.999  # float32 may swap two that are almost equal
    best = np.take_along_axis(similar.T, expected, axis=1)
    np.testing.assert_allclose(neighbors.scores, best, atol=1e-6)


def test_exact_is_exact_across_its_blocks():
    rng = np.random.default_rng(0)
    many = rng.integers(-1, 2, size=(150_000, 3)).astype(np.float32)
    query = np.array([[1, 2, 4]], dtype=np.float32)
    neighbors = ExactIndex(many).search(query, 9_000)
    assert (
        neighbors.rows[0].tolist()
        == np.lexsort((np.arange(150_000), -(many @ query[0])))[:9_000].tolist()
    )


def test_exact_answers_many_queries_at_once_as_one_by_one(vectors, queries):
    allowed = np.random.default_rng(0).random(N) < 0.7
    neighbors = ExactIndex(vectors).search(queries, 12, allowed=allowed)
    check_answers(neighbors, vectors, queries, 12, allowed)
    for row, query in zip(neighbors.rows, queries, strict=True):
        check_nearest(
            nearest_rows(vectors, query, 12, rows=np.flatnonzero(allowed)),
            vectors,
            query,
            12,
            allowed,
        )
        assert row.tolist() == ExactIndex(vectors).nearest(query, 12, allowed=allowed).rows.tolist()


def test_scores_of_some_rows_are_those_of_all_rows(vectors, queries):
    every = cosines(vectors, queries[0])
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 255, 256, 257, 900, N):
        rows = rng.choice(N, count, replace=False)
        assert cosines_of(vectors, queries[0], rows).tobytes() == every[rows].tobytes()
    for rows in pairwise(range(0, N, 7)):
        assert cosines(vectors[slice(*rows)], queries[0]).tobytes() == every[slice(*rows)].tobytes()


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8, 9, 31, 64, 100, 511, 512, 768])
def test_a_score_does_not_depend_on_how_many_rows_are_scored(dim):
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(40, dim)).astype(np.float32)
    query = rng.normal(size=dim).astype(np.float32)
    alone = b"".join(cosines(rows[n : n + 1], query).tobytes() for n in range(40))
    assert cosines(rows, query).tobytes() == alone
    assert cosines(rows[::-1], query)[::-1].tobytes() == alone


@settings(max_examples=examples(100), deadline=None)
@given(
    arrays.arrays(
        np.float32,
        st.integers(0, 60),
        elements=st.floats(width=32, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0]),
    ),
    st.sampled_from([0, 500]),
)
def test_best_first_is_a_stable_sort(scores, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "_FEW", few)
        assert best_first(scores).tolist() == np.argsort(-scores, kind="stable").tolist()


def test_scores_a_hair_apart_are_told_apart():
    rng = np.random.default_rng(0)
    bits = rng.permutation(np.arange(-5_000, 5_000, dtype=np.int32))
    scores = np.copysign(np.abs(bits).view(np.float32), bits.astype(np.float32))
    assert best_first(scores).tolist() == np.argsort(-scores, kind="stable").tolist()


@pytest.mark.parametrize(
    ("n_allowed", "k", "n_read"), [(10, 4, 12), (10, 5, 10), (9, 4, 12), (5, 1, 12), (4, 1, 4)]
)
def test_all_rows_are_read_for_less_than_half_of_many_allowed_ones(n_allowed, k, n_read):
    index = ExactIndex(np.eye(12, dtype=np.float32))
    allowed = np.arange(12) < n_allowed
    answers = index.search(np.eye(12, dtype=np.float32)[:2], k, allowed=allowed)
    assert answers.rows_read.tolist() == [n_read, n_read]
    assert answers.rows[:, 0].tolist() == [0, 1]


def test_nothing_is_asked_of_no_rows():
    none = np.zeros((0, 4), dtype=np.float32)
    for k in (0, 3):
        best = nearest_rows(none, np.ones(4, dtype=np.float32) / 2, k)
        assert (best.rows.tolist(), best.scores.tolist()) == ([], [])


def test_exact_saves_nothing_and_needs_nothing(tmp_path, vectors, queries):
    ExactIndex(vectors).save(tmp_path)
    assert list(tmp_path.iterdir()) == []
