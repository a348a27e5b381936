import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.studies.vectors.scaling import fit_power_law

NS = [1e4, 3e4, 1e5, 3e5, 1e6]


@settings(deadline=None)  # scipy is imported at the first
@given(st.floats(0.01, 1.5), st.floats(1e-6, 1e3))
def test_a_law_without_noise_is_found_and_goes_on(exponent, scale):
    law = fit_power_law(NS, scale * np.array(NS) ** exponent)
    assert law.exponent.mean == pytest.approx(exponent, abs=1e-6)
    assert law.exponent.low <= law.exponent.mean <= law.exponent.high
    assert law.at(1e8).mean == pytest.approx(scale * 1e8**exponent, rel=1e-5)
    assert law.reaches(law.at(5e6).mean) == pytest.approx(5e6, rel=1e-5)


def test_the_interval_holds_the_true_exponent_nineteen_times_in_twenty():
    rng = np.random.default_rng(0)
    n_inside = 0
    for _ in range(400):
        law = fit_power_law(NS, 2 * np.array(NS) ** 0.7 * np.exp(0.2 * rng.standard_normal(5)))
        n_inside += law.exponent.low <= 0.7 <= law.exponent.high
    assert 0.92 < n_inside / 400 < 0.98


@pytest.mark.slow
def test_the_interval_of_an_estimate_holds_a_new_measurement_and_widens_away_from_the_old():
    rng = np.random.default_rng(1)
    n_inside = 0
    for _ in range(400):
        noise = np.exp(0.2 * rng.standard_normal(6))
        law = fit_power_law(NS, 2 * np.array(NS) * noise[:5])
        estimate = law.at(1e7)
        n_inside += estimate.low <= 2e7 * noise[5] <= estimate.high
        widths = [math.log(law.at(n).high / law.at(n).low) for n in (1e5, 1e7, 1e9)]
        assert widths == sorted(widths)
    assert 0.92 < n_inside / 400 < 0.98


def test_of_two_measurements_nothing_is_known_of_the_error():
    law = fit_power_law([1e3, 1e4], [1, 10])
    assert law.exponent == (pytest.approx(1), -math.inf, math.inf)
    assert law.at(1e5) == (pytest.approx(100), 0, math.inf)


def test_a_cost_that_does_not_grow_never_reaches_more():
    assert fit_power_law(NS, [3, 3, 3, 3, 3]).reaches(10) == math.inf


@pytest.mark.parametrize(
    ("ns", "costs", "match"),
    [
        ([1e4], [1], "two sizes"),
        ([1e4, 1e4], [1, 2], "two sizes"),
        ([1e4, 1e5], [1, 2, 3], r"\(2,\) and \(3,\)"),
        ([1e4, 1e5], [1, 0], "above 0"),
        ([1e4, 1e5], [1, math.inf], "above 0"),
        ([0, 1e5], [1, 2], "above 0"),
    ],
)
def test_what_no_line_can_be_laid_through_is_refused(ns, costs, match):
    with pytest.raises(InputError, match=match):
        fit_power_law(ns, costs)
