"""Intervals and tests of few clusters cover, and keep their level, where scores are lopsided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.evaluation.significance import (
    GroupedIntervals,
    Interval,
    bootstrap_interval,
    bootstrap_intervals,
    paired_test,
    permutation_test,
)
from searchlab.evaluation.significance.studentised import FEW, Studentised

ROUNDS = 300


def resamples(n, samples=400, seed=0):
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=samples).astype(float)


def of_queries(values, samples=400):
    column = np.asarray(values, dtype=float)[:, None]
    return Studentised(column, np.ones_like(column), resamples(len(column), samples))


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50, 87])
def test_intervals_of_few_lopsided_scores_cover_as_often_as_they_say(n):
    """Many zeros and few high scores, as of nDCG; percentiles cover 0.86 to 0.92 of such means."""
    rng = np.random.default_rng(n)
    covered = 0
    for _ in range(ROUNDS):
        _, low, high = bootstrap_interval(rng.beta(0.4, 2, size=n), samples=300)
        covered += low <= 0.4 / 2.4 <= high
    assert 0.925 <= covered / ROUNDS <= 0.985


@pytest.mark.slow
def test_intervals_of_few_clusters_in_several_languages_cover():
    rng = np.random.default_rng(3)
    groups = ["en", "en", "de"] * 30
    clusters = [f"photo {number // 3}" for number in range(90)]
    covered = {"macro": 0, "micro": 0, "de": 0}
    for _ in range(ROUNDS):
        photo = np.repeat(rng.beta(0.4, 2, size=30), 3)
        values = photo + rng.normal(0, 0.02, 90)
        measured = bootstrap_intervals(
            {"x": values}, samples=300, groups=groups, clusters=clusters
        )["x"]
        intervals = {"macro": measured.macro, "micro": measured.micro, "de": measured.groups["de"]}
        for name, interval in intervals.items():
            covered[name] += interval.low <= 0.4 / 2.4 <= interval.high
    assert all(0.92 <= count / ROUNDS <= 0.985 for count in covered.values()), covered


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_an_interval_holds_its_mean_and_stays_within_the_scores(values):
    mean, low, high = bootstrap_interval(values, samples=50)
    assert min(values) <= low <= mean <= high <= max(values) or np.isclose(low, high)


def test_from_a_hundred_clusters_on_intervals_are_percentiles():
    values = np.random.default_rng(0).beta(0.4, 2, size=FEW)
    mean, low, high = bootstrap_interval(values)
    assert high - mean != pytest.approx(mean - low, rel=1e-3)
    mean, low, high = bootstrap_interval(values[1:])
    assert high - mean == pytest.approx(mean - low)


def test_a_small_group_among_many_clusters_is_studentised_alone():
    rng = np.random.default_rng(1)
    values, groups = rng.beta(0.4, 2, size=200), ["de"] * 20 + ["en"] * 180
    clusters = [str(number) for number in range(200)]
    small = bootstrap_intervals({"x": values}, groups=groups, clusters=clusters)["x"].groups["de"]
    alone = bootstrap_interval(values[:20], samples=2000)
    assert small.high - small.mean == pytest.approx(alone.high - alone.mean, rel=0.2)
    assert small.high - small.mean == pytest.approx(small.mean - small.low)


def test_the_standard_error_is_the_textbook_one():
    values = np.random.default_rng(2).random(50)
    error = of_queries(values).standard_error
    assert error == pytest.approx(values.std() / np.sqrt(50))


def test_clusters_of_copies_have_the_error_of_one_query_each():
    values = np.random.default_rng(2).random(30)[:, None]
    once = Studentised(values, np.ones((30, 1)), resamples(30))
    copied = Studentised(5 * values, np.full((30, 1), 5.0), resamples(30))
    assert copied.mean == pytest.approx(once.mean)
    assert copied.half_width(0.95) == pytest.approx(once.half_width(0.95))


def test_groups_count_the_same_and_one_that_is_missing_from_a_resample_does_no_harm():
    rng = np.random.default_rng(4)
    scores, counts = rng.random((12, 2)), np.ones((12, 2))
    scores[2:, 1] = counts[2:, 1] = 0  # the second group lies in two clusters only
    both = Studentised(scores, counts, resamples(12))
    means = scores[:, 0].mean(), scores[:2, 1].mean()
    assert both.mean == pytest.approx(np.mean(means))
    parts = [scores[:, 0].var() / 12, scores[:2, 1].var() / 2]
    together = 2 * ((scores[:, 0] - means[0])[:2] / 12) @ ((scores[:2, 1] - means[1]) / 2)
    assert both.standard_error == pytest.approx(np.sqrt(sum(parts) + together) / 2)
    assert np.isfinite(both.half_width(0.99))


def test_intervals_are_recorded_to_the_sixth_digit():
    interval = Interval(0.12345678, 0.1, 0.98765432)
    recorded = GroupedIntervals(interval, interval, {"en": interval}).to_dict()
    digits = [0.123457, 0.1, 0.987654]
    assert recorded == {"macro": digits, "micro": digits, "langs": {"en": digits}}


def test_the_p_value_counts_the_observed_mean_in():
    """The mean is 4.2 standard errors from 0; thrice the highest score is 8.5 from the mean."""
    scores, counts = np.array([[1.0], [2.0], [3.0]]), np.ones((3, 1))
    as_drawn, twice = [1, 1, 1], [0, 0, 3]
    for times, p_value in (([as_drawn] * 4, 1 / 5), ([as_drawn, twice, as_drawn], 2 / 4)):
        assert Studentised(scores, counts, np.array(times, dtype=float)).p_value() == p_value


def test_a_mean_of_zero_is_as_likely_as_can_be():
    assert of_queries([1.0, -1.0] * 10).p_value() == 1


def test_where_clusters_do_not_differ_nothing_is_wide():
    assert of_queries([0.3] * 20).half_width(0.95) == 0
    assert of_queries([0.0] * 20).p_value() == 1
    assert of_queries([0.3] * 20, samples=99).p_value() == 1 / 100


def test_one_high_score_among_zeros_gives_no_endless_interval():
    assert of_queries([0.0] * 19 + [1.0]).half_width(0.95) < 1


# -- tests of two systems -------------------------------------------------------------------------


def level(draw, test, n):
    rng = np.random.default_rng(n)
    return np.mean([test(draw(rng, n), np.zeros(n), samples=300) < 0.05 for _ in range(ROUNDS)])


def lopsided(rng, n):
    """Differences of mean 0: small losses on most queries, large gains on some."""
    return rng.exponential(size=n) ** 1.3 - 1.1664


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50])
def test_lopsided_differences_of_mean_zero_are_called_different_less_often_than_by_flips(n):
    by_flips, by_both = (level(lopsided, test, n) for test in (permutation_test, paired_test))
    assert by_both < by_flips
    assert by_both <= 0.085


@pytest.mark.slow
def test_symmetric_differences_keep_the_level_and_differences_are_found():
    def even(rng, n):
        return rng.normal(size=n)

    assert level(even, paired_test, 20) <= 0.08
    assert level(lambda rng, n: even(rng, n) + 1, paired_test, 20) > 0.9


def test_the_p_value_is_that_of_flips_from_a_hundred_clusters_on_and_never_below_it():
    rng = np.random.default_rng(0)
    values = lopsided(rng, FEW)
    zeros = np.zeros(FEW)
    assert paired_test(values, zeros) == permutation_test(values, zeros)
    for n in (5, 20, 60):
        assert paired_test(values[:n], zeros[:n]) >= permutation_test(values[:n], zeros[:n])
    clusters = np.repeat([str(number) for number in range(50)], 2)
    apart = paired_test(values, zeros, clusters=clusters)
    assert apart >= permutation_test(values, zeros, clusters=clusters)
    assert apart == paired_test(values, zeros, clusters=clusters)  # the seed is the same


@pytest.mark.parametrize("clusters", [None, [str(number) for number in range(FEW)]])
@pytest.mark.parametrize("n", [FEW // 2, FEW])
def test_a_metric_has_the_same_intervals_alone_and_beside_others(n, clusters):
    rng = np.random.default_rng(5)
    scores = {"high": rng.uniform(0.6, 1.0, n), "low": rng.uniform(0.0, 0.4, n)}
    kept = {"groups": ["en"] * (n - 2) + ["de"] * 2, "samples": 200}
    if clusters is not None:  # a group of two may then be missing from a resample
        kept["clusters"] = clusters[:n]
    together = bootstrap_intervals(scores, **kept)
    for name, values in scores.items():
        alone = bootstrap_intervals({name: values}, **kept)[name]
        for kind in ("macro", "micro"):  # a product of matrices may end in another digit
            assert getattr(together[name], kind) == pytest.approx(getattr(alone, kind), rel=1e-12)
        assert together[name].groups.keys() == alone.groups.keys()
        for lang, interval in alone.groups.items():
            assert together[name].groups[lang] == pytest.approx(interval, rel=1e-12)
