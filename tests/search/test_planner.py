from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED, Calibration, Curve
from searchlab.config.operating_points import OperatingPoint, OperatingPoints
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import ExactIndex, build_index, index_class
from searchlab.search.planner import bound_by_date, make_plan
from searchlab.search.queries import Query

N = 10_000
SHARES = (1.0, 0.1, 0.01)
# Each kind's efforts, the recall at each share, and up to how many photos scoring all is as cheap.
MEASURED = {
    "image": [(0.9, (0.95, 0.93, 0.9), 40), (0.99, (0.999, 0.995, 0.98), 60)],
    "text": [(0.9, (0.91, 0.9, 0.8), 40), (0.99, (0.992, 0.97, 0.96), 500)],
}
QUERIES = {
    "text": Query(text="sea"),
    "image": Query(photo_id="a"),
    "both": Query(photo_id="a", text="sea"),
}


def stub(config, n_photos):
    """As much of an index as a plan needs."""

    class Stub(index_class(config)):
        def __init__(self):
            self.vectors = range(n_photos)

    return Stub()


def tuned(index="clustered", measured=MEASURED, **choices):
    config = Config(index=index, **choices)
    reaches = tuple(
        OperatingPoint(kind=kind, effort=effort, recalls=recalls, exact_below=exact_below)
        for kind, rows in measured.items()
        for effort, recalls, exact_below in rows
    )
    tuning = OperatingPoints(
        index_id=config.index_id, n_photos=N, k=20, n_queries=64, shares=SHARES, reaches=reaches
    )
    return replace(config, tuning=tuning)


def plan(query, config, n_allowed=N, n_photos=N):
    return make_plan(query, stub(config, n_photos), config, n_allowed)


# -- by date, what is relevant ----------------------------------------------------------------


CURVE = Curve(slope=9.0, intercept=-3.0)
FITTED = Config(newest_score=0.3, calibration=Calibration(CURVE, CURVE, CURVE, "a fit"))
NEWEST = Query(text="sea", sort_by="newest")


@pytest.mark.parametrize("query", [NEWEST, replace(NEWEST, photo_id="a")])
def test_by_date_a_query_with_words_is_bounded_and_its_plan_says_where(query):
    assert bound_by_date(query, FITTED) == replace(query, score_threshold=0.3)
    assert plan(query, FITTED).newest_score == 0.3


@pytest.mark.parametrize(
    ("query", "config"),
    [
        (replace(NEWEST, sort_by="relevance"), FITTED),
        (Query(photo_id="a", sort_by="newest"), FITTED),
        (Query(filter=PhotoFilter(source=("nasa",)), sort_by="newest"), FITTED),
        (replace(NEWEST, score_threshold=0.0), FITTED),
        (replace(NEWEST, score_threshold=0.6), FITTED),
        (NEWEST, replace(FITTED, newest_score=0)),
        (NEWEST, replace(FITTED, calibration=UNCALIBRATED)),
    ],
)
def test_every_other_query_stays_as_it_is(query, config):
    assert bound_by_date(query, config) is query
    assert plan(query, config).newest_score is None


# -- what was measured is quoted --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "n_allowed", "effort", "recall"),
    [
        ("image", N, 0.99, 0.999),
        ("image", 5000, 0.99, 0.995),
        ("image", 500, 0.99, 0.98),
        ("text", N, 0.99, 0.992),
        ("text", 1000, 0.99, 0.97),
        ("both", N, 0.99, 0.992),
        ("both", 1000, 0.99, 0.97),
    ],
)
def test_a_plan_expects_the_least_recall_of_both_ends_of_its_band(kind, n_allowed, effort, recall):
    query_plan = plan(QUERIES[kind], tuned(), n_allowed)
    assert (query_plan.mode, query_plan.effort) == ("clustered", effort)
    assert query_plan.expected_recall == recall


def test_the_least_effort_that_reaches_the_recall_of_the_config_is_taken():
    assert plan(QUERIES["image"], tuned(recall=0.95)).effort == 0.9
    assert plan(QUERIES["image"], tuned(recall=0.96)).effort == 0.99
    assert plan(QUERIES["text"], tuned(recall=0.91)).effort == 0.9


def test_a_recall_that_no_effort_reaches_takes_the_best_one_and_says_so():
    query_plan = plan(QUERIES["text"], tuned(recall=0.999))
    assert (query_plan.mode, query_plan.effort, query_plan.expected_recall) == (
        "clustered",
        0.99,
        0.992,
    )


def test_a_plan_says_in_words_what_it_expects_and_why():
    lines = plan(QUERIES["text"], tuned(), 5000).explain().splitlines()
    assert lines[2] == (
        "expected recall: 0.970, measured on 10,000 photos with 64 text queries "
        "under filters that keep 10 to 100 %"
    )
    assert "without a filter" in plan(QUERIES["both"], tuned()).explain()
    assert "64 image and text queries" in plan(QUERIES["both"], tuned()).explain()


def test_the_photo_that_is_searched_by_is_no_filter():
    assert "without a filter" in plan(QUERIES["image"], tuned(), N - 1).explain()
    assert "under filters" in plan(QUERIES["image"], tuned(), N - 2).explain()


@pytest.mark.parametrize("index", ["hnsw", "clustered"])
def test_what_nobody_measured_is_not_made_up(index):
    query_plan = plan(QUERIES["text"], Config(index=index))
    assert query_plan.expected_recall is None
    assert query_plan.effort is None
    assert "not measured; run `searchlab tune`" in query_plan.explain()


def test_exact_ways_miss_nothing_and_say_nothing_of_recall():
    config = tuned()
    for query_plan in (
        plan(Query(text="sea"), config, 3),
        plan(Query(filter=PhotoFilter(orientation="square")), config),
        make_plan(Query(text="sea"), ExactIndex(np.eye(4, dtype=np.float32)), Config(), 4),
    ):
        assert query_plan.mode in ("exact", "browse")
        assert query_plan.expected_recall == 1.0
        assert "recall" not in query_plan.explain()


def test_a_tuning_of_another_index_is_not_quoted():
    other = replace(tuned(), n_lists=7)
    assert plan(QUERIES["text"], other).expected_recall is None
    assert replace(tuned(), recall=0.9).measured is not None
    assert replace(tuned(), model_id="mini-0123456789ab").measured is None


def test_a_kind_of_query_that_was_not_measured_is_planned_as_before():
    config = tuned(measured={"image": MEASURED["image"]})
    assert plan(QUERIES["image"], config).expected_recall == 0.999
    for kind in ("text", "both"):
        assert plan(QUERIES[kind], config).expected_recall is None


def test_what_is_scored_whole_below_all_filters_measured_is_not_at_the_narrowest_of_them():
    config = tuned("clustered", measured={"image": MEASURED["image"]}, recall=0.9)
    config = replace(config, tuning=replace(config.tuning, shares=(1.0, 0.1, 0.03)))
    assert plan(QUERIES["text"], config, 299).mode == "exact"
    assert plan(QUERIES["text"], config, 300).mode == "clustered"


# -- few photos are scored one by one ---------------------------------------------------------


@pytest.mark.parametrize("n_allowed", [500, 101, 100, 99, 1, 0])
def test_up_to_the_crossover_and_below_all_filters_measured_every_photo_is_scored(n_allowed):
    assert plan(QUERIES["text"], tuned(), n_allowed).mode == "exact"


def test_the_crossover_is_that_of_the_effort_taken():
    assert plan(QUERIES["text"], tuned(recall=0.8), 500).mode == "clustered"
    assert plan(QUERIES["text"], tuned(recall=0.96), 500).mode == "exact"
    assert plan(QUERIES["text"], tuned(recall=0.96), 501).mode == "clustered"


@pytest.mark.parametrize("index", ["hnsw", "clustered"])
def test_a_library_too_small_to_measure_is_scored_whole_until_it_grows(index):
    small = tuned(index, measured={}, step_rows=0)
    assert plan(QUERIES["text"], small).mode == "exact"
    grown = replace(small, tuning=replace(small.tuning, n_photos=N - 1))
    assert plan(QUERIES["text"], grown).mode != "exact"


def test_a_clustered_index_that_nobody_measured_scores_a_few_photos():
    config = Config(index="clustered")
    assert plan(QUERIES["text"], config, 200).mode == "exact"
    assert plan(QUERIES["text"], config, 201).mode == "clustered"
    # Of a small library all, as that is exact and nobody notices.
    assert plan(QUERIES["text"], config, 4_000, n_photos=4_000).mode == "exact"


# -- a required recall --------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(QUERIES)),
    st.integers(0, N),
    st.floats(0, 1, exclude_min=True),
    st.floats(0.01, 1),
    st.sampled_from(["hnsw", "clustered"]),
)
def test_a_plan_is_never_expected_to_find_less_than_is_asked_for(
    kind, n_allowed, min_recall, usual, index
):
    measured = {
        name: [(effort * 100, *rest) for effort, *rest in rows] for name, rows in MEASURED.items()
    }
    config = tuned(index, recall=usual, measured=MEASURED if index == "clustered" else measured)
    for some in (config, Config(index=index, recall=usual), replace(config, seed=9)):
        query_plan = plan(replace(QUERIES[kind], min_recall=min_recall), some, n_allowed)
        assert query_plan.expected_recall is not None
        assert query_plan.expected_recall >= min_recall
    # It may only raise what is done without it.
    least = plan(QUERIES[kind], config, n_allowed).expected_recall
    assert (
        plan(replace(QUERIES[kind], min_recall=min_recall), config, n_allowed).expected_recall
        >= least
    )


def test_a_required_recall_raises_the_effort_or_makes_it_exact():
    config = tuned(recall=0.9)
    plans = {r: plan(replace(QUERIES["text"], min_recall=r), config) for r in (0.91, 0.98, 0.995)}
    assert [query_plan.effort for query_plan in plans.values()] == [0.9, 0.99, None]
    assert [query_plan.mode for query_plan in plans.values()] == ["clustered", "clustered", "exact"]
    assert "requires a recall of 0.995" in plans[0.995].reason


def test_a_recall_of_1_is_exact_whatever_was_measured():
    perfect = tuned(measured={"text": [(0.5, (1.0, 1.0, 1.0), 0)]})
    assert plan(Query(text="sea", min_recall=1.0), perfect).mode == "exact"
    assert plan(Query(text="sea", min_recall=0.9999), perfect).mode == "clustered"


# -- plans are kept by those who search -------------------------------------------------------


def test_a_graph_is_searched_with_the_ef_of_the_kind_of_query(unit_vectors):
    vectors = unit_vectors(200)
    config = Config(index="hnsw", depth=10)
    index = build_index(vectors, config, np.arange(200))
    measured = {
        "image": [(10, (1.0,), 0), (80, (1.0,), 0)],
        "text": [(10, (0.9,), 0), (80, (1.0,), 0)],
    }
    reaches = tuple(
        OperatingPoint(kind=kind, effort=effort, recalls=recalls, exact_below=below)
        for kind, rows in measured.items()
        for effort, recalls, below in rows
    )
    config = replace(
        config,
        tuning=OperatingPoints(
            index_id=config.index_id, n_photos=200, k=20, n_queries=8, shares=(1,), reaches=reaches
        ),
    )
    efforts = {kind: make_plan(query, index, config, 200).effort for kind, query in QUERIES.items()}
    assert efforts == {"image": 10, "text": 80, "both": 80}
