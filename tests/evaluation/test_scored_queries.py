"""Cosines beside judgments."""

from dataclasses import replace

import numpy as np
import pytest

from searchlab.evaluation.calibration.scored_queries import ScoredQueries, score_queries
from tests.support.judged_kinds import judged_photos


@pytest.mark.parametrize("grade", [127, 128, 1000])
def test_grades_of_any_size_are_kept(make_table, grade):
    engines, query_set = judged_photos(make_table)
    text = query_set.text
    qrels = {i: dict.fromkeys(grades, grade) for i, grades in text.qrels.items()}
    scored = score_queries(engines["sharp"], replace(text, qrels=qrels))
    assert set(scored.grades.ravel().tolist()) == {-1, grade}


def test_photos_that_tie_but_for_last_bits_are_in_the_order_of_the_table():
    """Two processors round otherwise, and must measure the same pairs."""
    for bits in ([0, 1, 2], [2, 1, 0], [0, 0, 1]):
        tied = np.float32(0.5) + np.float32(2.0**-24) * np.array(bits, dtype=np.float32)
        scored = ScoredQueries(
            kind="text",
            langs=("en",),
            cluster_ids=("a",),
            cosines=np.array([[0.1, *tied, 0.9]], dtype=np.float32),
            grades=np.array([[0, 3, 2, 1, 4]], dtype=np.int8),
        )
        assert scored.top(3).grades.tolist() == [4, 3, 2]
