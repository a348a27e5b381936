import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.search.indexes import ExactIndex
from searchlab.studies.index.recall import (
    fastest_at,
    measure_search,
    measure_within,
    one_by_one,
    pareto,
    scored,
    sweep,
    true_neighbors,
)
from searchlab.studies.vectors.made import made_vectors

MADE = made_vectors("clustered-500-16", n_queries=6, seed=5)
QUERIES = MADE.queries["image"]
EXACT = ExactIndex(MADE.photos).search(QUERIES, 5)


def test_exact_search_finds_everything_and_takes_time():
    measured = measure_search(one_by_one(ExactIndex(MADE.photos)), MADE.photos, QUERIES, EXACT)
    assert measured["recall"] == 1
    assert 0 < measured["p50_ms"] <= measured["p95_ms"] <= measured["p99_ms"]


def test_an_answer_of_which_two_in_five_are_right_has_recall_two_fifths():
    lists = [[rows[0], rows[3], -1, -1, -1] for rows in EXACT.rows.tolist()]
    answers = iter([lists[0], *lists])  # the first query is asked once more, to warm up
    measured = measure_search(lambda *_: next(answers), MADE.photos, QUERIES, EXACT, runs=1)
    assert measured["recall"] == pytest.approx(0.4)


def test_what_an_index_claims_about_scores_does_not_count():
    answers = scored(MADE.photos, QUERIES[:1], [[7, 3]], 3)
    assert answers.rows.tolist() == [[7, 3, -1]]
    assert answers.scores[0, :2] == pytest.approx(MADE.photos[[7, 3]] @ QUERIES[0])
    assert answers.scores[0, 2] == -np.inf


@pytest.mark.parametrize("rows", [[1, 2, 3, 4], [500]])
def test_more_rows_than_asked_for_or_one_that_there_is_not_are_refused(rows):
    with pytest.raises(InputError, match="at most 3 rows below 500"):
        scored(MADE.photos, QUERIES[:1], [rows], 3)


def test_a_copy_of_a_true_neighbour_counts_as_found():
    photos = np.concatenate([MADE.photos, MADE.photos])
    exact = ExactIndex(photos).search(QUERIES, 1)
    measured = measure_search(lambda *_: [0], photos, QUERIES[:1], exact_of(exact, 1), runs=1)
    copy = int(exact.rows[0, 0]) + 500
    also = measure_search(lambda *_: [copy], photos, QUERIES[:1], exact_of(exact, 1), runs=1)
    assert (measured["recall"], also["recall"]) == (0, 1)


def exact_of(neighbors, n):
    return type(neighbors)(neighbors.rows[:n], neighbors.scores[:n])


@pytest.mark.parametrize("block", [7, 100, 10_000])
def test_the_oracle_of_many_filters_is_exact_search_among_what_each_allows(block, monkeypatch):
    monkeypatch.setattr("searchlab.studies.index.recall._BLOCK", block)
    rng = np.random.default_rng(0)
    masks = {"all": None, "half": rng.random(500) < 0.5, "three": np.arange(500) < 3}
    masks["none"] = np.zeros(500, dtype=bool)
    truth = true_neighbors(MADE.photos, QUERIES, 5, masks=masks)
    for name, mask in masks.items():
        exact = ExactIndex(MADE.photos).search(QUERIES, 5, allowed=mask)
        assert np.array_equal(truth[name].rows, exact.rows), name
        assert truth[name].scores == pytest.approx(exact.scores, abs=1e-6)


def test_a_slow_system_is_asked_three_queries_and_a_fast_one_all_of_them_again_and_again():
    calls = []
    search = one_by_one(ExactIndex(MADE.photos))

    def answer(query, k):
        calls.append(query)
        return search(query, k)

    slow = measure_within(answer, MADE.photos, QUERIES, EXACT, budget_s=0)
    assert (slow["n_queries"], len(calls), slow["recall"]) == (3, 1 + 3, 1)
    calls.clear()
    fast = measure_within(answer, MADE.photos, QUERIES, EXACT, budget_s=60, runs=2)
    assert (fast["n_queries"], len(calls), fast["recall"]) == (6, 1 + 12, 1)
    assert 0 < fast["p50_ms"] <= fast["p99_ms"]


def test_the_worst_query_stands_beside_the_mean():
    nothing = np.zeros(0, dtype=np.int64)
    search, worst = one_by_one(ExactIndex(MADE.photos)), QUERIES[4]

    def answer(query, k):
        return nothing if np.array_equal(query, worst) else search(query, k)

    measured = measure_within(answer, MADE.photos, QUERIES, EXACT, budget_s=60, runs=1)
    assert measured["least_recall"] == 0
    assert measured["recall"] == pytest.approx(1 - 1 / len(QUERIES))


def test_a_sweep_names_every_setting_and_recall_rises_with_effort():
    table = sweep(MADE.photos, MADE.queries, Ms=(4, 8), ef_searches=(10, 200), seed=1)
    settings = [(row["M"], row["ef_search"], row["queries"]) for row in table]
    assert len(set(settings)) == len(settings) == 8
    by = dict(zip(settings, table, strict=True))
    for M in (4, 8):
        for kind in ("image", "text"):
            assert by[M, 10, kind]["recall"] <= by[M, 200, kind]["recall"]
            assert by[M, 10, kind]["size_mib"] == by[M, 200, kind]["size_mib"]
    assert by[4, 10, "image"]["size_mib"] < by[8, 10, "image"]["size_mib"]
    assert by[8, 200, "image"]["recall"] > 0.99


def test_the_fastest_is_looked_for_among_those_that_find_enough():
    points = [{"recall": 0.9, "p50_ms": 1}, {"recall": 0.99, "p50_ms": 5}]
    points += [{"recall": 0.97, "p50_ms": 3}]
    assert fastest_at(points, 0.95) == points[2]
    assert fastest_at(points, 0.5) == points[0]
    assert fastest_at(points, 1) is None


POINTS = st.lists(
    st.builds(
        lambda recall, ms: {"recall": recall / 4, "p50_ms": ms},
        st.integers(0, 4),
        st.integers(1, 5),
    ),
    min_size=1,
)


@given(POINTS)
def test_the_front_is_what_no_other_point_beats(points):
    front = pareto(points)

    def beaten(point):
        return any(
            other["recall"] >= point["recall"]
            and other["p50_ms"] <= point["p50_ms"]
            and (other["recall"], other["p50_ms"]) != (point["recall"], point["p50_ms"])
            for other in points
        )

    on_front = {(point["recall"], point["p50_ms"]) for point in front}
    assert on_front == {(p["recall"], p["p50_ms"]) for p in points if not beaten(p)}
    assert [p["recall"] for p in front] == sorted(p["recall"] for p in front)
