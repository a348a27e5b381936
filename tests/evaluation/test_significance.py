import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.evaluation.significance import (
    bootstrap_interval,
    bootstrap_intervals,
    holm,
    leader_tests,
    paired_test,
    permutation_test,
    tie_groups,
)
from searchlab.evaluation.significance.intervals import _averages
from searchlab.evaluation.significance.paired import _signs


@pytest.mark.slow
def test_interval_covers_the_true_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        mean, low, high = bootstrap_interval(rng.beta(2, 3, size=80), samples=400)
        assert low <= mean <= high
        covered += low <= 0.4 <= high
    assert 0.91 <= covered / 300 <= 0.98


@pytest.mark.slow
def test_clustered_interval_covers_the_true_mean_where_the_plain_one_does_not():
    rng = np.random.default_rng(1)
    plain = clustered = 0
    clusters = [str(number // 10) for number in range(400)]
    for _ in range(200):
        values = np.repeat(rng.normal(size=40), 10) + 0.1 * rng.normal(size=400)
        plain_interval = bootstrap_interval(values, samples=300)
        interval = bootstrap_interval(values, samples=300, clusters=clusters)
        plain += plain_interval.low <= 0 <= plain_interval.high
        clustered += interval.low <= 0 <= interval.high
    assert plain / 200 < 0.6
    assert clustered / 200 > 0.88


def test_mean_over_groups_is_the_mean_of_their_means():
    values, groups = [1.0, 0.0, 0.0, 1.0], ["en", "en", "en", "de"]
    intervals = bootstrap_intervals({"ndcg@10": values}, groups=groups)["ndcg@10"]
    assert intervals.macro.mean == pytest.approx((1 / 3 + 1) / 2)
    assert intervals.micro.mean == pytest.approx(1 / 2)
    assert list(intervals.groups) == ["de", "en"]
    assert intervals.groups["en"].mean == pytest.approx(1 / 3)
    assert intervals.groups["de"] == (1.0, 1.0, 1.0)


def test_group_missing_from_a_resample_keeps_its_mean():
    values = np.concatenate([np.zeros(30), [1.0]])
    groups = ["en"] * 30 + ["de"]
    clusters = [str(number) for number in range(31)]
    interval = bootstrap_interval(values, groups=groups, clusters=clusters)
    assert interval == (0.5, 0.5, 0.5)


def test_a_group_of_one_query_has_its_mean_and_one_of_none_that_of_all():
    sums, counts = np.array([[0.9, 0.0]]), np.array([[1.0, 0.0]])
    averages = _averages(sums, counts, np.array([[0.5, 0.4]]))
    assert averages == pytest.approx(np.array([[0.65, 0.9, 0.9, 0.4]]))


def test_queries_are_drawn_within_their_groups():
    """So many of each in every resample: what differs from group to group adds no width."""
    groups = ["en"] * 30 + ["de"] * 10
    intervals = bootstrap_intervals({"value": [1.0] * 30 + [0.0] * 10}, groups=groups)["value"]
    assert intervals.micro == (0.75, 0.75, 0.75)


def test_more_confidence_gives_a_wider_interval():
    values = np.random.default_rng(0).random(50)
    narrow = bootstrap_interval(values, confidence=0.5)
    wide = bootstrap_interval(values, confidence=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_interval_is_the_same_for_the_same_seed():
    values = np.random.default_rng(0).random(50)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)


@pytest.mark.parametrize("confidence", [0, 1, 1.5])
def test_a_share_that_is_none_is_refused(confidence):
    with pytest.raises(InputError, match="confidence must lie between 0 and 1, got"):
        bootstrap_intervals({"value": [0.5, 1]}, confidence=confidence, samples=9)


def test_no_samples_are_refused_and_an_integer_of_numpy_is_one():
    with pytest.raises(InputError, match="samples must be an integer from 1, got 0"):
        bootstrap_intervals({"value": [0.5, 1]}, samples=0)
    assert bootstrap_interval([0.5, 1], samples=np.int64(9)).mean == 0.75


@pytest.mark.parametrize("samples", [0, -2, 1e4, True, "9"])
@pytest.mark.parametrize("test", [permutation_test, paired_test])
def test_a_number_of_combinations_is_an_integer_from_one(test, samples):
    with pytest.raises(InputError, match="samples must be an integer from 1, got"):
        test([0.5, 1.0], [0.25, 0.5], samples=samples)


def test_interval_of_a_constant_has_no_width():
    assert bootstrap_interval([0.25] * 9) == (0.25, 0.25, 0.25)


@pytest.mark.parametrize("values", [[], [np.nan], [[0.5]], [np.inf, 1.0]])
def test_values_that_are_no_scores_are_refused(values):
    with pytest.raises(InputError, match=r"finite scores of shape.*'abc'"):
        bootstrap_interval("abc")
    with pytest.raises(InputError, match="finite scores of shape"):
        bootstrap_interval(values)
    with pytest.raises(InputError, match="finite scores of shape"):
        permutation_test(values, values)


def test_labels_of_another_length_are_refused():
    with pytest.raises(InputError, match="clusters must name each of the 2 queries, got 1 names"):
        bootstrap_interval([0.0, 1.0], clusters=["a"])
    with pytest.raises(InputError, match="groups must name each of the 2 queries, got 3 names"):
        permutation_test([0.0, 1.0], [1.0, 1.0], groups=["a", "b", "c"])
    with pytest.raises(InputError, match="same queries, got 1 and 2 scores"):
        permutation_test([0.0], [1.0, 1.0])


@pytest.mark.parametrize(("length", "samples"), [(1, 9), (3, 5), (13, 1)])
def test_every_coin_is_drawn(length, samples):
    """Also the last ones, which do not fill a byte."""
    bits = np.unpackbits(np.frombuffer(np.random.default_rng(6).bytes(2), dtype=np.uint8))
    signs = np.concatenate(list(_signs(length, samples, 6)))
    assert signs.ravel().tolist() == (1.0 - 2.0 * bits[: length * samples]).tolist()


def test_small_permutation_test_is_exact():
    assert permutation_test([0.9, 0.8, 0.7], [0.1, 0.2, 0.3]) == 2 / 8
    assert permutation_test([3.0, 0.0], [0.0, 1.0]) == 1.0
    assert permutation_test([1, 2, 3, 4, 5], [0, 0, 0, 0, 0]) == 2 / 32


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8))
def test_exact_test_agrees_with_listing_every_flip(differences):
    totals = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in itertools.product([1, -1], repeat=len(differences))
    ]
    expected = sum(total >= abs(sum(differences)) for total in totals) / len(totals)
    assert permutation_test(differences, [0] * len(differences)) == pytest.approx(expected)


def test_drawn_p_value_is_near_the_exact_one():
    rng = np.random.default_rng(0)
    a, b = rng.random(13), rng.random(13)
    exact = permutation_test(a, b, samples=10_000)
    assert permutation_test(a, b, samples=8_000) == pytest.approx(exact, abs=0.02)


def test_p_value_is_never_zero():
    rng = np.random.default_rng(0)
    assert permutation_test(rng.random(100) + 5, rng.random(100), samples=999) == 1 / 1000


def test_equal_systems_have_p_one():
    values = np.random.default_rng(0).random(100)
    assert permutation_test(values, values) == 1.0


def test_test_is_two_sided():
    rng = np.random.default_rng(0)
    a, b = rng.random(200), rng.random(200) + 0.02
    assert permutation_test(a, b) == permutation_test(b, a)


def test_p_values_are_uniform_where_there_is_no_difference():
    rng = np.random.default_rng(0)
    p_values = [permutation_test(rng.random(30), rng.random(30), samples=500) for _ in range(300)]
    assert 0.02 <= np.mean(np.array(p_values) < 0.05) <= 0.09


def test_clusters_are_one_piece_of_evidence():
    a, b = [1.0] * 12, [0.0] * 12
    assert permutation_test(a, b) == 2 / 2**12
    assert permutation_test(a, b, clusters=list("aaaabbbbcccc")) == 2 / 8


def test_groups_weigh_the_same_however_many_queries_they_have():
    a, b = [1.0] * 4 + [0.0] * 2, [0.0] * 4 + [1.0] * 2
    assert permutation_test(a, b, groups=["en"] * 4 + ["de"] * 2) == 1.0
    assert permutation_test(a, b) < 1.0


def test_holm_matches_hand_values():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_counts_tests_that_were_not_looked_at_as_though_they_had_shown_nothing():
    adjusted = holm([0.01, 0.04, 0.03], n_tests=6)
    assert adjusted == pytest.approx(holm([0.01, 0.04, 0.03, 1, 1, 1])[:3])
    assert adjusted == pytest.approx([0.06, 0.16, 0.15])


@pytest.mark.slow
def test_equal_systems_are_seldom_told_apart_however_many_there_are():
    """The leader is the luckiest of them: to count only the tests against it is too few."""
    told_apart = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(40, 1)) + rng.normal(size=(40, 10))
        values = {f"system {n}": scores[:, n] for n in range(10)}
        told_apart += len(tie_groups(values, samples=300, seed=seed)) > 1
    assert told_apart / 100 <= 0.08


@pytest.mark.slow
def test_a_worse_system_is_found_among_however_many():
    rng = np.random.default_rng(0)
    good = rng.random(60)
    poor = [good - 0.5 + 0.1 * rng.random(60) for _ in range(24)]
    assert max(leader_tests(good, poor, samples=100)) < 0.05


def test_systems_that_cannot_be_told_apart_share_a_group():
    rng = np.random.default_rng(0)
    base = rng.random(300)
    values = {
        "poor": base - 0.3 + 0.05 * rng.normal(size=300),
        "good": base + 0.05 * rng.normal(size=300),
        "also good": base + 0.05 * rng.normal(size=300),
        "worst": base - 0.6,
    }
    groups = tie_groups(values)
    assert [sorted(group) for group in groups] == [["also good", "good"], ["poor"], ["worst"]]


def test_equal_systems_stand_in_the_order_of_their_names():
    values = {"b": [0.5, 0.1, 0.3], "a": [0.1, 0.3, 0.5]}
    assert tie_groups(values) == [["a", "b"]]
    assert tie_groups({}) == []


@pytest.mark.slow
def test_twenty_thousand_queries_take_seconds():
    rng = np.random.default_rng(0)
    values = rng.random(20_000)
    started = time.process_time()
    bootstrap_interval(values, groups=[str(n % 80) for n in range(20_000)])
    permutation_test(values, rng.random(20_000), samples=2_000)
    assert time.process_time() - started < 10
