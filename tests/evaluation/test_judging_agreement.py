import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.evaluation.judging.agreement import agreement, disagreements
from searchlab.evaluation.judging.coefficients import cohen_kappa, krippendorff_alpha
from searchlab.evaluation.judging.pools import Pair
from searchlab.evaluation.judging.proportions import proportion_interval, sign_test, upper_bound_95

# Krippendorff, Computing Krippendorff's alpha-reliability, 2011, example C: four observers,
# twelve units, 0 where there is no value.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3),
    (0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0),
)
UNITS = [[value for value in unit if value] for unit in zip(*OBSERVERS, strict=True)]
GRADES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40)


@pytest.mark.parametrize(
    ("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_gives_the_published_values(level, alpha):
    assert krippendorff_alpha(UNITS, level=level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_of_the_published_binary_example():
    # Ibid., example A: two observers, ten units, alpha 0.095.
    first = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0)
    second = (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    units = list(zip(first, second, strict=True))
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha(units, level=level) == pytest.approx(0.095, abs=5e-4)


def test_kappa_of_a_table_counted_by_hand():
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: 0.7 equal, 0.5 by chance.
    first = [1] * 25 + [0] * 25
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)


@pytest.fixture(scope="module")
def cohen_kappa_score():
    """The peer, which takes more than a second to import."""
    from sklearn import metrics

    return metrics.cohen_kappa_score


@given(pairs=GRADES, quadratic=st.booleans())
def test_kappa_is_that_of_scikit_learn(cohen_kappa_score, pairs, quadratic):
    first, second = zip(*pairs, strict=True)
    mine = cohen_kappa(first, second, quadratic=quadratic)
    if len({*first, *second}) == 1:
        assert math.isnan(mine)
        return
    # The labels are given because their distance counts, also of grades that nobody gave.
    weights, labels = ("quadratic", range(4)) if quadratic else (None, None)
    theirs = cohen_kappa_score(first, second, weights=weights, labels=labels)
    assert mine == pytest.approx(theirs, abs=1e-9)


def alpha_by_pairs(units, level):
    """Compute alpha as its definition says: observed over expected distance of value pairs."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]

    def apart(a, b):
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= value <= high for value in values)
        return (between - (values.count(low) + values.count(high)) / 2) ** 2

    seen = sum(
        apart(a, b) / (len(unit) - 1)
        for unit in units
        for i, a in enumerate(unit)
        for j, b in enumerate(unit)
        if i != j
    ) / len(values)
    chance = sum(
        apart(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j
    ) / (len(values) * (len(values) - 1))
    return 1 - seen / chance if chance else math.nan


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=12),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_is_what_its_definition_says(units, level):
    if not any(len(unit) > 1 for unit in units):
        with pytest.raises(InputError, match="a pair must have two grades"):
            krippendorff_alpha(units, level=level)
        return
    alpha = krippendorff_alpha(units, level=level)
    assert alpha == pytest.approx(alpha_by_pairs(units, level), nan_ok=True)


def test_full_agreement_is_one_and_one_grade_alone_is_undefined():
    assert krippendorff_alpha([[0, 0], [3, 3]]) == 1
    assert cohen_kappa([0, 3], [0, 3], quadratic=True) == 1
    assert math.isnan(krippendorff_alpha([[2, 2], [2, 2]]))
    assert math.isnan(cohen_kappa([2, 2], [2, 2]))


def judges(n_queries=30, n_photos=10, error=0.3, seed=0):
    rng = np.random.default_rng(seed)
    pairs = [Pair(f"q{q:02d}", f"p{p}") for q in range(n_queries) for p in range(n_photos)]
    true = rng.integers(0, 4, len(pairs))
    grades = {}
    for judge in ("ann", "ben", "cyd"):
        noisy = np.where(rng.random(len(pairs)) < error, rng.integers(0, 4, len(pairs)), true)
        grades[judge] = dict(zip(pairs, noisy.tolist(), strict=True))
    return grades


def test_agreement_is_made_of_the_plain_statistics():
    grades = judges()
    measured = agreement(grades)
    ann, ben = grades["ann"].values(), grades["ben"].values()
    first = measured.pairs[0]
    assert first.judges == ("ann", "ben")
    assert first.percent.mean == pytest.approx(
        np.mean([a == b for a, b in zip(ann, ben, strict=True)])
    )
    assert first.kappa.mean == pytest.approx(cohen_kappa(list(ann), list(ben)))
    assert first.kappa_quadratic.mean == pytest.approx(
        cohen_kappa(list(ann), list(ben), quadratic=True)
    )
    assert first.confusion.sum() == first.n_pairs == 300
    units = list(zip(*(by_pair.values() for by_pair in grades.values()), strict=True))
    assert measured.alpha.mean == pytest.approx(krippendorff_alpha(units))
    assert len(measured.pairs) == 3
    for interval in (measured.alpha, first.percent, first.kappa, first.kappa_quadratic):
        assert interval.low < interval.mean < interval.high


@pytest.mark.slow
def test_intervals_cover_the_truth_about_as_often_as_they_say():
    truth = agreement(judges(n_queries=1000, seed=99), samples=10).alpha.mean
    intervals = [agreement(judges(seed=seed), samples=200).alpha for seed in range(40)]
    covered = sum(interval.low <= truth <= interval.high for interval in intervals)
    assert covered >= 34  # of 40 at 95 %: 33 or fewer come once in ten thousand times


def test_intervals_resample_queries_not_pairs():
    """Twenty photos of each of three queries are three pieces of evidence, not sixty."""
    pairs = [Pair(f"q{q}", f"p{p}") for q in range(3) for p in range(20)]
    ann = {pair: (0, 3)[n % 2] for n, pair in enumerate(pairs)}
    ben = {pair: grade if pair.query_id != "q0" else 3 - grade for pair, grade in ann.items()}
    percent = agreement({"ann": ann, "ben": ben}).pairs[0].percent
    assert (percent.low, percent.mean, percent.high) == (0, pytest.approx(2 / 3), 1)


def test_grades_that_are_missing_are_no_disagreement():
    ann = {Pair("q", "a"): 3, Pair("q", "b"): 0, Pair("r", "c"): 2}
    ben = {Pair("q", "a"): 3, Pair("q", "b"): 0}
    measured = agreement({"ann": ann, "ben": ben})
    assert (measured.n_pairs, measured.alpha.mean) == (2, 1)


def test_the_same_numbers_come_out_every_time_and_in_any_order():
    grades = judges()
    turned = {judge: dict(reversed(by_pair.items())) for judge, by_pair in grades.items()}
    assert agreement(grades).alpha == agreement(turned).alpha


def test_judges_with_nothing_in_common_are_refused():
    with pytest.raises(InputError, match="a pair in common, got none by ann, ben"):
        agreement({"ann": {Pair("q", "a"): 1}, "ben": {Pair("q", "b"): 1}})
    with pytest.raises(InputError, match="the same pairs, got 1 and 2 grades"):
        cohen_kappa([1], [1, 2])
    with pytest.raises(InputError, match="level must be one of"):
        krippendorff_alpha([[1, 2]], level="ratio")


def test_disagreements_come_worst_first():
    ann = {Pair("q", "a"): 3, Pair("q", "b"): 0, Pair("q", "c"): 2}
    ben = {Pair("q", "a"): 1, Pair("q", "b"): 3, Pair("q", "c"): 3}
    worst_first = disagreements({"ann": ann, "ben": ben})
    assert [(pair.photo_id, by_judge) for pair, by_judge in worst_first] == [
        ("b", {"ann": 0, "ben": 3}),
        ("a", {"ann": 3, "ben": 1}),
    ]


def test_agreement_reads_well_as_text_and_as_a_table():
    measured = agreement(judges())
    assert "Krippendorff's alpha" in str(measured)
    html = agreement({"<ann>": judges()["ann"], "ben": judges()["ben"]})._repr_html_()
    assert "&lt;ann&gt; and ben" in html
    assert "<ann>" not in html


# -- shares -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("wins", "n"), [(0, 10), (5, 10), (7.5, 20), (10, 10)])
def test_the_interval_of_a_proportion_solves_wilsons_equation(wins, n):
    mean, low, high = proportion_interval(wins, n)
    for end in (low, high):
        assert abs(mean - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / n), abs=1e-6)


def test_the_sign_test_counts_the_ways_to_be_as_far_apart():
    assert sign_test(9, 1) == pytest.approx(2 * (1 + 10) / 2**10)
    assert sign_test(1, 9) == pytest.approx(2 * (1 + 10) / 2**10)
    assert sign_test(3, 3) == 1
    assert sign_test(0, 0) == 1
    assert 0 < sign_test(2100, 1900) < 0.01


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 59), (3, 40), (999, 1000)])
def test_at_the_upper_bound_so_few_hits_come_once_in_twenty(hits, n):
    bound = upper_bound_95(hits, n)
    tail = sum(math.comb(n, k) * bound**k * (1 - bound) ** (n - k) for k in range(hits + 1))
    assert tail == pytest.approx(0.05, rel=1e-6)


def test_proportions_out_of_range_are_refused():
    with pytest.raises(InputError, match="wins must lie between 0 and n"):
        proportion_interval(3, 2)
    assert upper_bound_95(4, 4) == 1


def test_of_a_single_query_no_interval_is_given():
    rng = np.random.default_rng(0)
    grades = {
        judge: {Pair("q", f"p{number}"): int(rng.integers(0, 4)) for number in range(60)}
        for judge in ("ann", "ben")
    }
    alpha = agreement(grades).alpha
    assert math.isfinite(alpha.mean)
    assert math.isnan(alpha.low)
    assert math.isnan(alpha.high)
