"""What is measured of an index: recall against exact search, and latency."""

import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from searchlab.errors import InputError
from searchlab.evaluation.metrics import latency, recall_at_k


class Neighbors(NamedTuple):
    rows: np.ndarray
    scores: np.ndarray


@pytest.mark.slow
def test_importing_the_module_does_not_import_ranx():
    module = "searchlab.evaluation.metrics"
    code = f"import sys, {module}; assert not {{'ranx', 'numba', 'scipy'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_recall_counts_a_tie_as_found():
    exact = Neighbors(np.array([[4, 7]]), np.array([[0.9, 0.5]], dtype=np.float32))
    approximate = Neighbors(np.array([[4, 9]]), np.array([[0.9, 0.5]], dtype=np.float32))
    assert recall_at_k(approximate, exact) == 1.0


def test_recall_counts_a_worse_photo_and_padding_as_missed():
    exact = Neighbors(np.array([[4, 7], [1, 2]]), np.array([[0.9, 0.5], [0.8, 0.7]]))
    approximate = Neighbors(np.array([[4, 9], [1, -1]]), np.array([[0.9, 0.4], [0.8, -np.inf]]))
    assert recall_at_k(approximate, exact) == 0.5


def test_recall_counts_the_first_photo_of_a_library_like_any_other():
    exact = Neighbors(np.array([[4, 0]]), np.array([[0.9, 0.5]]))
    assert recall_at_k(exact, exact) == 1.0
    approximate = Neighbors(np.array([[4, 9]]), np.array([[0.9, 0.4]]))
    assert recall_at_k(approximate, exact) == 0.5


def test_recall_counts_a_repeated_row_once():
    exact = Neighbors(np.array([[4, 7]]), np.array([[0.9, 0.5]]))
    approximate = Neighbors(np.array([[4, 4]]), np.array([[0.9, 0.9]]))
    assert recall_at_k(approximate, exact) == 0.5
    exact = Neighbors(np.array([[4, 7, 8]]), np.array([[0.9, 0.5, 0.4]]))
    approximate = Neighbors(np.array([[4, 7, 7]]), np.array([[0.9, 0.5, 0.5]]))
    assert recall_at_k(approximate, exact) == pytest.approx(2 / 3)


def test_recall_wants_no_more_than_exact_search_has():
    exact = Neighbors(np.array([[4, -1], [-1, -1]]), np.array([[0.9, -np.inf], [-np.inf, -np.inf]]))
    assert recall_at_k(exact, exact) == 1.0


def test_recall_refuses_different_shapes():
    one = Neighbors(np.zeros((1, 2), dtype=int), np.zeros((1, 2)))
    two = Neighbors(np.zeros((1, 3), dtype=int), np.zeros((1, 3)))
    with pytest.raises(InputError, match=r"got \(1, 2\) and \(1, 3\)"):
        recall_at_k(one, two)


def test_recall_of_one_answer_to_one_query_is_measured_and_that_of_none_refused():
    one = Neighbors(np.array([[4]]), np.array([[0.9]]))
    assert recall_at_k(one, one) == 1.0
    for shape in ((0, 1), (1, 0)):
        none = Neighbors(np.zeros(shape, dtype=int), np.zeros(shape))
        with pytest.raises(InputError, match="at least"):
            recall_at_k(none, none)


def test_latency_is_in_milliseconds():
    assert latency(np.arange(101) / 1000) == {"p50_ms": 50.0, "p95_ms": 95.0, "p99_ms": 99.0}


def test_latency_of_nothing_is_refused():
    with pytest.raises(InputError, match="at least one duration"):
        latency([])
