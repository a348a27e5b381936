"""Estimates from few judgments: right on average, covered by their intervals, better than luck."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab import evaluate
from searchlab.errors import InputError
from searchlab.evaluation.datasets import LabelledQuery
from searchlab.evaluation.judging import plan_judging
from searchlab.evaluation.judging.pools import Pair

SYSTEMS = {"good": 2.0, "fair": 1.4, "poor": 0.4}
DEPTH = 5


def world(n_queries, *, seed=0, n_photos=40):
    """Queries, the runs of three systems that see relevance more or less well, and all grades."""
    rng = np.random.default_rng(seed)
    queries = [
        LabelledQuery(f"q{number:04}", ("en", "de")[number % 2], "written", f"words {number}")
        for number in range(n_queries)
    ]
    truth, runs = {}, {name: {} for name in SYSTEMS}
    for query in queries:
        relevance = rng.random(n_photos) < rng.uniform(0.02, 0.3)
        grades = relevance * rng.integers(1, 4, n_photos)
        grades[-1] = 3  # so that each query has an answer
        truth[query.query_id] = {f"p{i:02}": int(grade) for i, grade in enumerate(grades)}
        for name, sight in SYSTEMS.items():
            order = np.argsort(-(sight * relevance + rng.normal(size=n_photos)))
            runs[name][query.query_id] = [f"p{i:02}" for i in order[:DEPTH]]
    return queries, runs, truth


def judge(pairs, truth):
    qrels = {}
    for query_id, photo in pairs:
        qrels.setdefault(query_id, {})[photo] = truth[query_id][photo]
    return qrels


def true_mean(metric, run, truth, queries):
    """The macro average over languages, by the metrics that everything else is measured by."""
    means = []
    for lang in ("de", "en"):
        ids = [query.query_id for query in queries if query.lang == lang]
        found = evaluate({i: truth[i] for i in ids}, {i: run[i] for i in ids}, [metric])
        means.append(found[metric])
    return np.mean(means)


@pytest.mark.parametrize("metric", ["precision@5", "success@1", "precision@3/l2"])
def test_with_everything_judged_the_estimate_is_the_metric_itself(metric):
    queries, runs, truth = world(30)
    plan = plan_judging(queries, runs, metric=metric)
    estimate = plan.estimate(judge(plan.pairs, truth), samples=50)
    for name, mean in estimate.means.items():
        assert mean.mean == pytest.approx(true_mean(metric, runs[name], truth, queries))
    best, *others = estimate.means
    for name in others:
        gap = estimate.means[best].mean - estimate.means[name].mean
        assert estimate.differences[name].mean == pytest.approx(gap)
    assert estimate.n_open == 0


def test_dcg_is_its_textbook_sum():
    queries, runs, truth = world(4)
    plan = plan_judging(queries, {"good": runs["good"]}, metric="dcg@5")
    estimate = plan.estimate(judge(plan.pairs, truth), samples=20)
    sums = [
        sum(
            truth[query.query_id][photo] / np.log2(rank + 1)
            for rank, photo in enumerate(runs["good"][query.query_id], start=1)
        )
        for query in queries
    ]
    assert estimate.means["good"].mean == pytest.approx(np.mean(sums))


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["precision@5", "dcg@5"])
@pytest.mark.parametrize("n", [20, 100])
def test_whatever_is_left_out_the_estimate_is_right_on_average(metric, n):
    queries, runs, truth = world(40)
    whole = plan_judging(queries, runs, metric=metric)
    wanted = whole.estimate(judge(whole.pairs, truth), samples=10)
    means, gaps, missed = [], [], []
    for seed in range(80):
        plan = plan_judging(queries, runs, metric=metric, seed=seed)
        estimate = plan.estimate(judge(plan.pairs[:n], truth), n=n, samples=1)
        means.append([estimate.means[name].mean for name in SYSTEMS])
        gaps.append(means[-1][0] - means[-1][2])
        missed.append(estimate.missed.mean)
    errors = np.std(means, axis=0) / len(means) ** 0.5
    expected = np.array([wanted.means[name].mean for name in SYSTEMS])
    assert (np.abs(np.mean(means, axis=0) - expected) < 4 * errors).all()
    gap_error = np.std(gaps) / len(gaps) ** 0.5
    assert abs(np.mean(gaps) - (expected[0] - expected[2])) < 4 * gap_error
    assert abs(np.mean(missed) - wanted.missed.mean) < 4 * np.std(missed) / len(missed) ** 0.5


@pytest.mark.slow
def test_intervals_cover_what_all_judgments_of_all_queries_would_say():
    queries, runs, truth = world(3000, seed=7)
    wanted = {name: true_mean("precision@5", runs[name], truth, queries) for name in SYSTEMS}
    rng, means_hold, gaps_hold = np.random.default_rng(1), [], []
    for number in range(150):
        some = [queries[i] for i in rng.choice(len(queries), 120, replace=False)]
        plan = plan_judging(some, runs, metric="precision@5", seed=number)
        estimate = plan.estimate(judge(plan.pairs[:200], truth), n=200, samples=300)
        means_hold.append(
            [mean.low <= wanted[name] <= mean.high for name, mean in estimate.means.items()]
        )
        best = next(iter(estimate.means))
        gaps_hold.append(
            [
                gap.low <= wanted[best] - wanted[name] <= gap.high
                for name, gap in estimate.differences.items()
            ]
        )
    assert np.mean(means_hold) > 0.91
    assert np.mean(gaps_hold) > 0.91


@pytest.mark.slow
def test_intervals_cover_a_rate_so_low_that_most_estimates_find_nothing():
    queries = [LabelledQuery(f"q{number:04}", "en", "written", "words") for number in range(2000)]
    rng = np.random.default_rng(5)
    photos = [f"p{place}" for place in range(5)]
    truth = {
        query.query_id: dict(zip(photos, (rng.random(5) < 0.008).astype(int).tolist(), strict=True))
        for query in queries
    }
    runs = {
        "one": dict.fromkeys(truth, photos[:4]),
        "other": dict.fromkeys(truth, photos[1:]),
    }
    ones = np.array([[grades[photo] for photo in photos] for grades in truth.values()]).mean(axis=0)
    wanted = {"one": ones[:4].sum() / 5, "other": ones[1:].sum() / 5}
    hold, found_nothing = [], 0
    for number in range(60):
        some = [queries[i] for i in rng.choice(len(queries), 100, replace=False)]
        plan = plan_judging(some, runs, metric="precision@5", seed=number)
        estimate = plan.estimate(judge(plan.pairs[:80], truth), n=80, samples=100)
        found_nothing += all(mean.mean == 0 for mean in estimate.means.values())
        (gap,) = estimate.differences.values()
        best, second = estimate.means
        hold += [mean.low <= wanted[name] <= mean.high for name, mean in estimate.means.items()]
        hold.append(gap.low <= wanted[best] - wanted[second] <= gap.high)
        assert all(mean.low >= 0 for mean in estimate.means.values())
    assert found_nothing > 15
    assert np.mean(hold) > 0.93


@pytest.mark.slow
def test_differences_are_closer_than_when_photos_are_drawn_alike():
    queries, runs, truth = world(60, seed=3)
    two = {name: runs[name] for name in ("good", "fair")}
    whole = plan_judging(queries, two, metric="precision@5")
    found = whole.estimate(judge(whole.pairs, truth), samples=2)
    wanted = found.means["good"].mean - found.means["fair"].mean
    errors = {"planned": [], "alike": []}
    for seed in range(300):
        plan = plan_judging(queries, two, metric="precision@5", seed=seed)
        estimate = plan.estimate(judge(plan.pairs[:60], truth), n=60, samples=1)
        errors["planned"].append(estimate.means["good"].mean - estimate.means["fair"].mean - wanted)
        rng = np.random.default_rng(seed)
        chosen = rng.choice(len(plan), 60, replace=False)
        sums = {"en": 0.0, "de": 0.0}
        for place in chosen:
            query_id, photo = plan.pairs[place]
            effect = plan.shares[0, place] - plan.shares[1, place]
            sums[plan.queries[query_id].lang] += effect * (truth[query_id][photo] >= 1)
        scale = len(plan) / 60 / 30
        errors["alike"].append(np.mean(list(sums.values())) * scale - wanted)
    spread = {way: np.sqrt(np.mean(np.square(found))) for way, found in errors.items()}
    assert spread["planned"] < 0.85 * spread["alike"], spread


@pytest.mark.slow
def test_going_on_keeps_what_was_judged_and_is_right_on_average():
    queries, runs, truth = world(40, seed=2)
    whole = plan_judging(queries, runs, metric="precision@5")
    wanted = whole.estimate(judge(whole.pairs, truth), samples=2)
    found = []
    for seed in range(100):
        plan = plan_judging(queries, runs, metric="precision@5", seed=1000 * seed)
        qrels = judge(plan.pairs[:60], truth)
        between = plan.estimate(qrels, samples=2).undecided
        again = plan.go_on(qrels, between=between)
        assert not set(again.pairs) & set(plan.pairs[:60])
        assert len(again) == len(plan) - 60
        second = again.estimate(judge(again.pairs[:60], truth), n=60, samples=1)
        found.append([second.means[name].mean for name in SYSTEMS])
    errors = np.std(found, axis=0) / len(found) ** 0.5
    expected = np.array([wanted.means[name].mean for name in SYSTEMS])
    assert (np.abs(np.mean(found, axis=0) - expected) < 4 * errors).all()


def test_an_audit_of_known_items_says_how_many_relevant_photos_nobody_judged():
    queries, runs, truth = world(50, seed=4)
    known = {
        query_id: {photo: grade for photo, grade in grades.items() if grade == 3}
        for query_id, grades in truth.items()
    }
    plan = plan_judging(queries, runs, metric="precision@5", judged=known)
    assert all(photo not in known[query_id] for query_id, photo in plan.pairs)
    everything = plan.estimate(judge(plan.pairs, truth), samples=20)
    missed = sum(truth[query_id][photo] > 0 for query_id, photo in plan.pairs) / len(queries)
    assert everything.missed.mean == pytest.approx(missed)
    for name, mean in everything.means.items():
        assert mean.mean == pytest.approx(true_mean("precision@5", runs[name], truth, queries))


@given(st.integers(1, 300), st.integers(0, 50))
def test_a_longer_list_of_photos_begins_with_the_shorter_one(n, seed):
    queries, runs, _ = world(25)
    plan = plan_judging(queries, runs, metric="precision@5", seed=seed)
    n = min(n, len(plan))
    pool = plan.first(n)
    assert set(pool.pairs) == set(plan.pairs[:n])
    assert len(pool.places) == len({pair.query_id for pair in plan.pairs[:n]})
    chances = plan.chances(n)
    assert ((chances > 0) & (chances <= 1)).all()
    for query_id, places in pool.places.items():
        assert list(places) == list(range(places[0], places[0] + len(places))), query_id


def test_the_pool_says_nothing_of_systems_and_ranks():
    queries, runs, _ = world(25)
    swapped = dict(reversed(runs.items()))
    first = plan_judging(queries, runs, metric="precision@5").first(40)
    second = plan_judging(queries, swapped, metric="precision@5").first(40)
    assert first.pairs == second.pairs


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"metric": "ndcg@10"}, "metric must be precision@k, success@1 or dcg@k"),
        ({"metric": "success@5"}, "metric must be precision@k, success@1 or dcg@k"),
        ({"metric": "precision@5/condensed"}, "metric must be precision@k"),
        ({"metric": "mood@3"}, "a metric must be one of"),
        ({"between": ["good", "best"]}, "systems among the runs"),
        ({"between": []}, "systems among the runs"),
    ],
)
def test_what_cannot_be_planned_is_said(asked, said):
    queries, runs, _ = world(5)
    with pytest.raises(InputError, match=said):
        plan_judging(queries, runs, **asked)


def test_nothing_to_judge_and_too_little_judged_are_said():
    queries, runs, truth = world(5)
    with pytest.raises(InputError, match="must have queries, runs"):
        plan_judging([], runs)
    with pytest.raises(InputError, match="all that the runs found was judged"):
        plan_judging(queries, runs, metric="precision@5", judged=truth)
    plan = plan_judging(queries, runs, metric="precision@5")
    with pytest.raises(InputError, match="at least one, got 0 without a grade"):
        plan.estimate({})
    with pytest.raises(InputError, match="got 1 without a grade"):
        plan.estimate(judge(plan.pairs[:4], truth), n=5)
    for n in (0, len(plan) + 1, True):
        with pytest.raises(InputError, match="n must be from 1"):
            plan.first(n)


def test_an_estimate_is_readable():
    queries, runs, truth = world(30)
    plan = plan_judging(queries, runs, metric="precision@5")
    estimate = plan.estimate(judge(plan.pairs[:80], truth), n=80, samples=50)
    assert repr(plan).startswith(f"{len(plan):,} photos that could be judged for precision@5 of 30")
    lines = repr(estimate).splitlines()
    assert lines[0].startswith(f"precision@5 by 80 of {len(plan)} photos")
    assert len(lines) == 5
    frame = estimate.frame()
    assert list(frame.index) == list(estimate.means)
    assert frame["precision@5"].is_monotonic_decreasing
    assert list(frame[frame["undecided"]].index) == estimate.undecided
    assert Pair("q0000", "p00") not in plan.first(3).drawn
