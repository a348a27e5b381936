"""Every index of the registry finds the nearest rows exactly, down to a threshold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.models.protocol import unit_rows
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import build_index, open_index
from searchlab.search.indexes.scoring import cosines
from tests.support import index_kinds
from tests.support.examples import examples
from tests.support.index_kinds import N
from tests.support.neighbor_checks import check_nearest, check_same

kind = index_kinds.kind
build = index_kinds.build
vectors = index_kinds.vectors
queries = index_kinds.queries
index = index_kinds.index


# -- nearest: exact from every index ----------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 7, 299, 300, 301, 700, N - 1, N, N + 1, 5 * N])
@pytest.mark.parametrize("share", [None, 0.9, 0.5, 0.1, 0.01])
def test_nearest_is_what_a_sort_finds_to_the_last_bit(index, vectors, queries, k, share):
    allowed = None if share is None else np.random.default_rng(3).random(N) < share
    neighbors = index.nearest(queries[0], k, allowed=allowed)
    check_nearest(neighbors, vectors, queries[0], k, allowed)


@pytest.mark.parametrize("place", [0, 1, 19, 400, N - 1])
@pytest.mark.parametrize("k", [5, 20, N])
def test_a_row_at_the_threshold_is_near_enough_and_one_a_hair_below_is_not(
    index, vectors, queries, place, k
):
    query = queries[3]
    score = np.sort(cosines(vectors, query))[::-1][place]
    wide = float(score)
    edges = [score, np.nextafter(score, np.float32(2)), np.nextafter(score, np.float32(-2))]
    edges += [wide, np.nextafter(wide, 2.0), np.nextafter(wide, -2.0)]
    for edge in map(float, edges):
        neighbors = index.nearest(query, k, at_least=edge)
        check_nearest(neighbors, vectors, query, k, at_least=edge)
        allowed = np.arange(N) % 3 != 0
        neighbors = index.nearest(query, k, allowed=allowed, at_least=edge)
        check_nearest(neighbors, vectors, query, k, allowed, edge)


@pytest.mark.parametrize("at_least", [-np.inf, -1e300, -2.0, 0.0, 1.5, 1e300, np.inf])
def test_a_threshold_may_be_any_number(index, vectors, queries, at_least):
    neighbors = index.nearest(queries[0], 40, at_least=at_least)
    check_nearest(neighbors, vectors, queries[0], 40, at_least=at_least)


def test_nothing_is_near_where_nothing_is_allowed_or_wanted(index, queries):
    for neighbors in (
        index.nearest(queries[0], 3, allowed=Bitmap.empty(N)),
        index.nearest(queries[0], 0),
        index.nearest(queries[0], 0, allowed=Bitmap.full(N), at_least=-1.0),
        index.nearest(queries[0], 0, allowed=Bitmap.of_rows([4], N)),
    ):
        assert (neighbors.rows.tolist(), neighbors.scores.tolist()) == ([], [])


def test_nearest_breaks_ties_by_row_also_where_they_are_cut(build, vectors):
    thrice = np.concatenate([vectors[:100]] * 3)
    index = build(thrice)
    neighbors = index.nearest(vectors[40], 2)
    assert neighbors.rows.tolist() == [40, 140]
    for k in range(1, 13):
        check_nearest(index.nearest(vectors[40], k), thrice, vectors[40], k)
    everything = index.nearest(vectors[40], 300, at_least=float(neighbors.scores[0]))
    assert everything.rows.tolist() == [40, 140, 240]


def test_zero_queries_and_zero_rows_are_all_equally_near(build, vectors):
    with_zeros = vectors[:200].copy()
    with_zeros[::2] = 0
    index, zero = build(with_zeros), np.zeros(16, dtype=np.float32)
    for k in (1, 30, 150, 200):
        check_nearest(index.nearest(zero, k), with_zeros, zero, k)
        check_nearest(index.nearest(vectors[5], k), with_zeros, vectors[5], k)
    check_nearest(index.nearest(zero, 9, at_least=0.0), with_zeros, zero, 9, at_least=0.0)
    assert index.nearest(zero, 9, at_least=1e-30).rows.tolist() == []


def test_an_empty_index_has_nothing_near(build, queries):
    index = build(queries[:0])
    assert index.nearest(queries[0], 5).rows.tolist() == []
    assert index.nearest(queries[0], 5, allowed=Bitmap.empty(0), at_least=0.2).rows.tolist() == []


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_nearest_is_exact_for_any_size_filter_and_threshold(build, data):
    n, dim = data.draw(st.integers(0, 300)), data.draw(st.integers(1, 70))
    k, share = data.draw(st.integers(0, 320)), data.draw(st.floats(0, 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows = unit_rows(rng.normal(size=(n, dim)) + data.draw(st.sampled_from([0.0, 3.0])))
    if n:  # some rows twice, for ties
        rows = rows[rng.integers(0, n, n)]
    query = unit_rows(rng.normal(size=(1, dim)))[0]
    allowed = data.draw(st.sampled_from([None, rng.random(n) < share]))
    scores = cosines(rows, query)
    edges = [-np.inf, 0.1, *scores[:1].tolist()]
    at_least = data.draw(st.sampled_from(edges))
    index = build(rows, M=4, ef_construction=20)
    neighbors = index.nearest(query, k, allowed=allowed, at_least=at_least)
    check_nearest(neighbors, rows, query, k, allowed, at_least)


def test_strides_of_a_query_change_no_bit(index, queries):
    wide = np.repeat(queries, 2, axis=1)
    one, other = index.nearest(queries[2], 30), index.nearest(wide[2, ::2], 30)
    assert one.rows.tolist() == other.rows.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()
    check_same(index.search(queries, 5), index.search(wide[:, ::2], 5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": np.zeros((1, 16), np.float32)}, r"query must have shape \(16,\), got \(1, 16\)"),
        ({"query": np.zeros(15, np.float32)}, r"query must have shape \(16,\), got \(15,\)"),
        ({"query": np.full(16, np.nan, np.float32)}, "query must be finite"),
        ({"query": np.full(16, -np.inf, np.float32)}, "query must be finite"),
        ({"k": -1}, "k must be at least 0, got -1"),
        ({"at_least": np.nan}, "at_least must be a number, got nan"),
        ({"allowed": np.ones(N, np.uint8)}, "allowed must be bool"),
    ],
)
def test_nearest_refuses_what_it_would_answer_wrongly(index, queries, arguments, message):
    arguments_given = {"query": queries[0], "k": 3, **arguments}
    with pytest.raises(InputError, match=message):
        index.nearest(**arguments_given)


def test_a_query_is_as_large_as_queries_may_be_and_no_larger(index):
    largest = np.full(16, 1e6, np.float32)
    assert len(index.nearest(largest, 3).rows) == 3
    assert index.search(largest[np.newaxis], 3).rows.shape == (1, 3)
    larger = np.nextafter(largest, np.float32(np.inf))
    with pytest.raises(InputError, match="query must be finite and at most 1e\\+06"):
        index.nearest(larger, 3)
    with pytest.raises(InputError, match="queries must be finite and at most 1e\\+06"):
        index.search(larger[np.newaxis], 3)


def test_nearest_is_the_same_from_an_index_that_was_saved(kind, tmp_path, vectors, queries):
    config = Config(index=kind)
    build_index(vectors, config, np.arange(N)).save(tmp_path)
    opened = open_index(tmp_path, vectors, config, labels=np.arange(N))
    for k, at_least in ((30, -np.inf), (N, 0.3)):
        neighbors = opened.nearest(queries[1], k, at_least=at_least)
        check_nearest(neighbors, vectors, queries[1], k, at_least=at_least)
