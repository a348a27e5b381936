"""The study of relevance, on judgments drawn from a known curve."""

import numpy as np
import pytest

from searchlab.config.calibration import Curve, QueryWeights
from searchlab.evaluation.calibration.query_fit import TextFit, judged_pairs, predict
from searchlab.evaluation.calibration.scored_queries import ScoredQueries
from searchlab.evaluation.datasets.plain_words import WORDS, forms_of
from searchlab.studies.calibration.concepts import CONCEPTS
from searchlab.studies.calibration.relevance import (
    _first,
    _leave_out,
    _thresholds,
    random_letters,
    score_all,
)

FIT = TextFit(Curve(15.0, -3.0), QueryWeights(-8.0, 0.3, -0.5, "test"))


def drawn(n_queries, seed, langs=("en",)):
    rng = np.random.default_rng(seed)
    cosines = rng.uniform(-0.2, 0.6, (n_queries, 40)).astype(np.float32)
    traits = np.column_stack(
        [
            rng.uniform(0.1, 0.4, n_queries),
            rng.uniform(-6, -2, n_queries),
            rng.uniform(0, 3, n_queries),
        ]
    )
    scored = ScoredQueries(
        kind="text",
        langs=tuple(langs[place % len(langs)] for place in range(n_queries)),
        cluster_ids=tuple(map(str, range(n_queries))),
        cosines=cosines,
        grades=np.zeros(cosines.shape, dtype=np.int16),
        traits=traits,
    )
    relevant = rng.random(cosines.shape) < score_all(scored, FIT)
    relevant[:, 0] = True
    return ScoredQueries(
        scored.kind, scored.langs, scored.cluster_ids, cosines, relevant.astype(np.int16), traits
    )


@pytest.mark.slow
def test_what_is_left_out_is_measured_by_a_fit_that_has_not_seen_it():
    sets = {
        "sentences": judged_pairs(drawn(900, 0, ("en", "de", "cs"))),
        "words": judged_pairs(drawn(300, 1)),
        "everyday": judged_pairs(drawn(100, 2)),
    }
    # German is judged otherwise: nothing is relevant. Only its own row may show that.
    german = sets["sentences"].langs == "de"
    relevant = np.where(german, False, sets["sentences"].relevant)
    sets["sentences"] = sets["sentences"]._replace(relevant=relevant)
    rows = _leave_out(sets, "test", least=60, samples=20, seed=0)
    assert [row["left_out"] for row in rows] == [*sets, "cs", "de", "en"]
    ece = {row["left_out"]: row["ece"]["mean"] for row in rows}
    assert ece["de"] > 0.2
    assert ece["words"] < 0.15
    few = _leave_out(sets, "test", least=10_000, samples=20, seed=0)
    assert [row["left_out"] for row in few] == [*sets]


def test_scores_of_all_photos_are_those_of_the_nearest():
    scored = drawn(20, 3)
    scores = score_all(scored, FIT)
    assert np.sort(scores, axis=1)[:, ::-1][:, :10].ravel() == pytest.approx(
        predict(judged_pairs(scored), FIT)
    )


def test_first_photos_and_thresholds_by_hand():
    scored = drawn(50, 4)
    scores, relevant = score_all(scored, FIT), scored.grades >= 1
    best = scores.argmax(axis=1)
    right = relevant[np.arange(50), best]
    row = _first("x", scored, FIT)
    assert (row["n_queries"], row["n_right"]) == (50, right.sum())
    assert row["median"] == pytest.approx(np.median(scores.max(axis=1)[right]))
    at_half = next(
        r for r in _thresholds("x", scored, FIT, samples=20, seed=0) if r["threshold"] == 0.5
    )
    shown = scores >= 0.5
    assert at_half["precision"]["mean"] == pytest.approx(relevant[shown].mean())
    assert at_half["shown"] == shown.sum(axis=1).mean()


def test_letters_at_random_are_the_same_each_time():
    assert random_letters(50, 1) == random_letters(50, 1) != random_letters(50, 2)
    assert all(3 < len(text) < 20 for text in random_letters(50, 1))


def test_words_and_concepts():
    assert len(set(WORDS)) == len(WORDS)
    assert forms_of("bush") == {"bush", "bushes"}
    assert forms_of("baby") == {"baby", "babies"}
    assert forms_of("toy") == {"toy", "toys"}
    assert forms_of("beach") == {"beach", "beaches"}
    assert all(len(names) == 10 and all(names.values()) for names in CONCEPTS.values())
