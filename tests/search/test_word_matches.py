"""What the words of queries found: kept for the next who asks, within bounds; few are under way."""

import math
from itertools import pairwise

import numpy as np
import pytest

from searchlab.config.calibration import Curve
from searchlab.config.word_weights import WordWeights
from searchlab.search.words import matches
from searchlab.search.words.matches import FoundBefore, Gains, WordMatches, rarity

NOTHING = frozenset()


def found(n_photos):
    """Return matches of so many photos."""
    numbers = np.zeros(n_photos, dtype=np.float32)
    rows = np.arange(n_photos)
    return WordMatches(rows, numbers, numbers, numbers > 0, {"dog": n_photos}, {}, 1_000)


def kept(before):
    return [text for text in "abcdefgh" if before.get(text, found(0).read, NOTHING) is not None]


@pytest.fixture
def before(monkeypatch):
    monkeypatch.setattr(matches, "_MOST_QUERIES", 3)
    monkeypatch.setattr(matches, "_MOST_PHOTOS", 100)
    return FoundBefore()


def test_as_many_queries_are_kept_as_may_be_and_then_all_are_forgotten(before):
    for text in "abc":
        before.keep(text, found(1), NOTHING)
    assert kept(before) == ["a", "b", "c"]
    before.keep("d", found(1), NOTHING)
    assert kept(before) == ["d"]


def test_as_many_photos_are_kept_as_may_be(before):
    before.keep("a", found(60), NOTHING)
    before.keep("b", found(40), NOTHING)
    assert kept(before) == ["a", "b"]
    before.keep("c", found(1), NOTHING)
    before.keep("d", found(99), NOTHING)
    assert kept(before) == ["c", "d"]
    before.keep("e", found(101), NOTHING)  # too many by themselves: what is there stays
    assert kept(before) == ["c", "d"]
    before.keep("f", found(100), NOTHING)
    assert kept(before) == ["f"]


def test_what_is_kept_is_of_that_text_read_in_those_fields_with_those_words_known(before):
    before.keep("a", found(1), NOTHING)
    read = found(0).read
    assert before.get("a", read, NOTHING) is not None
    assert before.get("a", read - 1, NOTHING) is None
    assert before.get("a", read, frozenset({"a"})) is None


@pytest.mark.parametrize(
    ("count", "n_photos", "expected"),
    [(3, 10, math.log(1 + 7.5 / 3.5)), (0, 10, math.log(22)), (10, 10, math.log(1 + 0.5 / 10.5))],
)
def test_a_word_counts_as_in_bm25(count, n_photos, expected):
    assert rarity(count, n_photos) == pytest.approx(expected, rel=1e-12)
    assert rarity(0, 0) == pytest.approx(math.log(4), rel=1e-12)  # of an empty library


def test_gains_are_log_odds_in_thirty_seconds_and_just_the_query_comes_before_all():
    shares = np.array([1, 1, 0.5, 0.18, 0.1], dtype=np.float32)
    precise = np.array([1, 1, 0.25, 0, 0], dtype=np.float32)
    whole = np.array([True, False, False, False, False])
    found = WordMatches(np.array([2, 5, 7, 8, 9]), shares, precise, whole, {"a": 5}, {}, 100)
    gains = Gains.of_words(found, WordWeights(1.1, 0.7, sharpness=2), Curve(8, -3))
    assert gains.rows.tolist() == [2, 5, 7, 8]  # the last one gains less than half a step
    steps = [round(32 * 1.8), round(32 * 1.275 / 4), 1]
    assert gains.of(found.rows[1:]).tolist() == [*(step / (32 * 8) for step in steps), 0]
    # The largest gain without the whole title, and the farthest that two cosines can be apart.
    assert gains.of(found.rows[:1])[0] == pytest.approx(1.8 / 8 + 2 + 1.8 / 8, abs=2 / (32 * 8))
    some = Gains.of_words(found, WordWeights(1.1, 0.7), Curve(8, -3))
    assert some.rows.tolist() == found.rows.tolist()


@pytest.mark.parametrize("levels", [1, 2, 7, 300])
def test_groups_of_gains_hold_each_row_once_the_largest_first(monkeypatch, levels):
    monkeypatch.setattr(matches, "SCORED_ONE_BY_ONE", 10)
    rng = np.random.default_rng(levels)
    steps = rng.integers(1, levels + 1, 500)
    gains = Gains(np.arange(0, 1_000, 2), steps, np.arange(levels + 1) / levels)
    groups = list(gains.groups())
    assert sorted(np.concatenate([rows for rows, _ in groups]).tolist()) == gains.rows.tolist()
    for place, (rows, values) in enumerate(groups):
        assert rows.tolist() == sorted(rows.tolist())
        assert len(rows) <= 10 * 4**place or len(set(values.tolist())) == 1
        assert values.tolist() == gains.of(rows).tolist()
    for (_, larger), (_, smaller) in pairwise(groups):
        assert larger.min() > smaller.max()
