"""Ranking to a score: every photo that is shown with it, and no other."""

import numpy as np
import pytest

from searchlab.config.calibration import Curve
from searchlab.models.protocol import unit_rows
from searchlab.search.indexes import merging
from searchlab.search.indexes.exact import ExactIndex
from searchlab.search.ranking import rank_above
from searchlab.search.words.matches import NO_GAINS, Gains

N = 300
QUERY = np.array([1, 0, 0, 0], dtype=np.float32)
WRITTEN = Gains(np.arange(N), np.ones(N, dtype=np.int64), np.array([0.0, 0.3]))


@pytest.mark.parametrize("gains", [NO_GAINS, WRITTEN], ids=["seen", "written"])
@pytest.mark.parametrize("slope", [20.0, 400.0, 8000.0])
def test_a_score_as_it_is_shown_reaches_itself_however_steep_the_curve(slope, gains, monkeypatch):
    monkeypatch.setattr(merging, "_SCANNED", 0)  # as in a large library, whose groups are cut
    monkeypatch.setattr(merging, "SCORED_ONE_BY_ONE", 0)
    rng = np.random.default_rng(8)
    # Cosines a few steps of float32 apart, where a step of a steep curve shows in the score.
    rows = np.column_stack([np.full(N, 0.6), 0.8 + 1e-6 * rng.normal(size=N), np.zeros((N, 2))])
    index = ExactIndex(unit_rows(rows))
    scores = index.best(QUERY, N, gains).scores
    curve = Curve(slope, -slope * float(np.median(scores)))
    shown = curve.relevance(scores)
    assert len(set(shown.tolist())) > 3
    for score in sorted(set(shown.tolist())):
        _, reach = rank_above(index, QUERY, N, curve=curve, threshold=score, gains=gains)
        assert reach.tolist() == shown[shown >= score].tolist()
