"""Cosines beside judgments."""

from dataclasses import replace

import pytest

from searchlab.evaluation.calibration.scored_queries import score_queries
from tests.support.judged_kinds import judged_photos


@pytest.mark.parametrize("grade", [127, 128, 1000])
def test_grades_of_any_size_are_kept(make_table, grade):
    engines, query_set = judged_photos(make_table)
    text = query_set.text
    qrels = {i: dict.fromkeys(grades, grade) for i, grades in text.qrels.items()}
    scored = score_queries(engines["sharp"], replace(text, qrels=qrels))
    assert set(scored.grades.ravel().tolist()) == {-1, grade}
