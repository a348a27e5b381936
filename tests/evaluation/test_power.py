import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.evaluation.significance import paired_test, permutation_test
from searchlab.evaluation.significance.power import Power, power_of


def independent(n=200, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    base = rng.random(n)
    return base + rng.normal(shift, 0.2, n), base


def test_standard_error_of_independent_queries_is_the_textbook_one():
    a, b = independent()
    power = power_of(a, b)
    assert power.standard_error == pytest.approx((a - b).std(ddof=1) / math.sqrt(200))
    assert power.difference == pytest.approx((a - b).mean())
    assert power.concentration == pytest.approx(1 / 200)


def test_detectable_difference_is_near_the_textbook_one_for_many_queries():
    power = power_of(*independent(n=5000))
    assert power.detectable == pytest.approx((1.959964 + 0.841621) * power.standard_error, rel=0.01)


def test_clusters_of_copies_are_worth_one_query_each():
    a, b = independent(n=40)
    clusters = np.repeat([f"c{n:02}" for n in range(40)], 5)  # in the order of the queries
    once = power_of(a, b)
    copied = power_of(np.repeat(a, 5), np.repeat(b, 5), clusters=clusters)
    assert copied.detectable == pytest.approx(once.detectable)
    assert copied.n_clusters == 40
    assert copied.queries_for(0.05) == pytest.approx(5 * once.queries_for(0.05), abs=5)
    assert copied.clusters_for(0.05) == once.clusters_for(0.05)


def test_groups_weigh_the_same_and_a_difference_between_them_is_no_noise():
    """What differs only from group to group is the same for every set of such queries."""
    groups = ["de"] * 20 + ["en"] * 180
    apart = np.array([0.3] * 20 + [0.1] * 180)
    noise = np.random.default_rng(1).normal(0, 0.01, 200)
    power = power_of(apart + noise, np.zeros(200), groups=groups)
    assert power.difference == pytest.approx(0.2, abs=0.01)
    assert power.standard_error < 0.01
    parts = [noise[:20].var() / 20, noise[20:].var() / 180]
    assert power.standard_error == pytest.approx(math.sqrt(sum(parts)) / 2, rel=0.05)


def rejections(draw, rounds=400):
    n_rejected = 0
    for seed in range(rounds):
        a, b, groups, clusters = draw(np.random.default_rng(seed))
        n_rejected += permutation_test(a, b, samples=400, groups=groups, clusters=clusters) < 0.05
    return n_rejected / rounds


def mixture(n_clusters, size):
    """Queries of two languages, in clusters that err together; German ones are few and noisy."""
    clusters = np.repeat([f"c{n:03}" for n in range(n_clusters)], size)
    groups = np.where(np.arange(n_clusters * size) % size == 0, "de", "en")

    def draw(rng, shift):
        together = np.repeat(rng.normal(0, 0.1, n_clusters), size)
        apart = shift + together + rng.normal(0, 0.1, len(groups)) * (1 + (groups == "de"))
        return apart, np.zeros(len(groups)), groups, clusters

    return draw


@pytest.mark.slow
@pytest.mark.parametrize(("n_clusters", "size"), [(60, 4), (12, 3), (200, 2)])
def test_the_test_finds_the_detectable_difference_four_times_in_five(n_clusters, size):
    draw = mixture(n_clusters, size)
    detectable = [
        power_of(a, b, groups=groups, clusters=clusters).detectable
        for a, b, groups, clusters in (draw(np.random.default_rng(9000 + n), 0) for n in range(20))
    ]
    shift = float(np.mean(detectable))
    assert rejections(lambda rng: draw(rng, shift)) == pytest.approx(0.8, abs=0.07)


@pytest.mark.slow
def test_power_of_a_given_difference_is_how_often_the_test_finds_it():
    draw = mixture(60, 4)
    for shift in (0.02, 0.045):
        a, b, groups, clusters = draw(np.random.default_rng(77), shift)
        stated = power_of(a, b, groups=groups, clusters=clusters).of(shift)
        assert rejections(lambda rng, shift=shift: draw(rng, shift)) == pytest.approx(
            stated, abs=0.12
        )


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50])
def test_power_of_few_lopsided_differences_is_little_overstated(n):
    """Where the test must allow for lopsided differences, it finds less than flips alone would."""
    rng = np.random.default_rng(n)
    shift, stated, n_found = 2.8 / math.sqrt(n), [], 0
    for _ in range(200):
        differences = rng.exponential(size=n) - 1 + shift
        stated.append(power_of(differences, np.zeros(n)).of(shift))
        n_found += paired_test(differences, np.zeros(n), samples=300) < 0.05
    assert np.mean(stated) <= n_found / 200 + 0.1


def test_as_many_queries_as_asked_for_reach_the_target():
    small = mixture(40, 3)
    a, b, groups, clusters = small(np.random.default_rng(5), 0)
    power = power_of(a, b, groups=groups, clusters=clusters)
    target = power.detectable / 2
    large = mixture(power.clusters_for(target), 3)
    assert power.queries_for(target) == pytest.approx(4 * 120, rel=0.1)
    assert rejections(lambda rng: large(rng, target)) == pytest.approx(0.8, abs=0.1)


@pytest.mark.slow
@given(
    error=st.floats(1e-4, 1),
    n=st.integers(8, 5000),
    alpha=st.floats(0.01, 0.2),
    target=st.floats(0.55, 0.99),
)
def test_detectable_power_and_number_of_queries_agree(error, n, alpha, target):
    power = Power(0.0, error, 1 / n, 3 * n, n, alpha, target)
    if math.isinf(power.detectable):
        return
    assert power.of(power.detectable) == pytest.approx(target, abs=1e-6)
    assert power.queries_for(power.detectable) == pytest.approx(3 * n, abs=1)
    assert power.queries_for(power.detectable / 2) > 3 * n
    assert power.of(-power.detectable) == power.of(power.detectable)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_so_few_clusters_can_show_nothing(n):
    a, b = independent(n=n)
    power = power_of(a, b)
    assert power.detectable == math.inf
    assert power.to_dict()["detectable"] is None
    assert json.loads(json.dumps(power.to_dict()))["n_clusters"] == n
    assert "too few" in power.explain()
    # The test itself agrees: even a huge difference in all of them is not significant.
    assert permutation_test(np.ones(n) + np.arange(n), np.zeros(n)) > 0.05


def test_a_concentrated_mean_is_said_to_show_nothing_however_many_clusters():
    """One photo with nearly all the queries of a language cannot prove a difference alone."""
    clusters = ["big"] * 900 + [f"c{n}" for n in range(20)]
    rng = np.random.default_rng(0)
    assert power_of(rng.random(920), rng.random(920), clusters=clusters).detectable == math.inf


def test_explanation_has_the_numbers():
    a, b = independent(shift=0.03)
    power = power_of(a, b)
    text = power.explain(0.01, about="photos")
    assert f"{power.detectable:.4f}" in text
    assert f"{power.queries_for(0.01):,} queries" in text
    assert "200 queries about 200 photos" in text
    assert f"{power.difference:+.4f}" in power.explain()


@pytest.mark.parametrize(
    ("a", "b", "kwargs"),
    [
        ([1.0, 2.0], [1.0], {}),
        ([1.0, math.nan], [1.0, 1.0], {}),
        ([], [], {}),
        ([1.0, 0.5], [1.0, 0.5], {}),
        ([1.0, 0.5], [0.0, 0.5], {"clusters": ["x", "x"]}),
        ([1.0, 0.5], [0.0, 0.5], {"clusters": ["x"]}),
        ([1.0, 0.5], [0.0, 0.5], {"alpha": 0.0}),
        ([1.0, 0.5], [0.0, 0.5], {"target": 1.0}),
    ],
)
def test_what_cannot_be_estimated_from_is_refused(a, b, kwargs):
    with pytest.raises(InputError, match="must"):
        power_of(a, b, **kwargs)


@pytest.mark.parametrize("difference", [0.0, 1e-200, math.nan, math.inf])
def test_a_difference_of_nothing_is_refused(difference):
    for method in (Power.queries_for, Power.explain):
        with pytest.raises(InputError, match="difference must be a number other than 0"):
            method(power_of(*independent()), difference)


def test_two_systems_that_differ_by_nothing_on_average_are_explained():
    assert "takes about" not in power_of([0.5, 0.1] * 20, [0.1, 0.5] * 20).explain()


def test_a_chance_is_never_said_to_be_certain_and_percent_signs_stand_apart():
    power = Power(0.5, 0.01, 1 / 200, 200, 200)
    assert "found in over 99 % of such sets; for 80 % it takes about " in power.explain()
    assert "found in under 1 % of such sets" in replace(power, alpha=0.001).explain(1e-4)
    assert "a power of 80 % (test at 5 %)" in power.explain()


def test_where_nothing_can_be_shown_no_chance_is_named_but_how_many_it_takes():
    """Of four photos no test finds anything, so that less than six are never said to be enough."""
    power = Power(0.5, 0.01, 1 / 4, 8, 4)
    text = power.explain(about="photos")
    assert "no difference can be shown with these queries: 4 photos are too few" in text
    assert "found in" not in text
    assert "to find one of 0.5000 with a power of 80 % takes about " in text
    assert power.clusters_for(0.5) == 6
    assert power.of(0.5) == 0
