"""Kinds and eye are held against each other, on judgments that one can count by hand."""

from pathlib import Path

import pytest

from searchlab.errors import InputError
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.photos.photo import photo_id_of
from searchlab.studies.judgments import SAME_MEANING, measure, recompute

PHOTOS = [photo_id_of("mine", name) for name in "abcd"]


@pytest.fixture
def judged():
    """Two queries about four photos: of `bird` three agree, of `cat` all four."""
    queries = (
        LabelledQuery("e1", "en", "everyday", "a bird"),
        LabelledQuery("e2", "en", "everyday", "a cat"),
        LabelledQuery("w1", "en", "label", "bird"),
        LabelledQuery("w2", "en", "label", "cat"),
        LabelledQuery("w3", "et", "label", "bird"),
    )
    a, b, c, d = PHOTOS
    qrels = {
        "e1": {a: 3, b: 2, c: 0, d: 0},
        "e2": {a: 0, b: 0, c: 3, d: 0},
        "w1": {a: 1},
        "w2": {c: 1},
        "w3": {d: 1},
    }
    records = tuple({"source": "mine", "source_photo_id": name, "file": name} for name in "abcd")
    return Dataset("mine", "r1", Path(), None, queries, qrels, records)


def test_kappa_is_that_of_the_counts(judged):
    same = {"a bird": "bird", "a cat": "cat"}
    measured = measure(judged, same=same, samples=50)
    assert measured["queries"] == [
        {"query": "a bird", "kinds": 1, "eye": 2, "both": 1},
        {"query": "a cat", "kinds": 1, "eye": 1, "both": 1},
    ]
    # 7 of 8 alike; by chance 2/8 * 3/8 + 6/8 * 5/8.
    chance = (2 * 3 + 6 * 5) / 64
    assert measured["metrics"]["n_pairs"] == 8
    assert measured["metrics"]["kappa"] == pytest.approx((7 / 8 - chance) / (1 - chance), abs=1e-4)
    assert measured["metrics"]["kinds_seen"] == 1
    assert measured["metrics"]["eye_told"] == pytest.approx(2 / 3, abs=1e-4)


def test_a_word_that_nobody_judged_is_named(judged):
    with pytest.raises(InputError, match="got nothing of 'dog'"):
        measure(judged, same={"a bird": "dog"})


@pytest.mark.slow
def test_the_bundled_judgments_agree_and_come_out_again():
    again = recompute({"parameters": {"samples": 50, "seed": 0}})
    assert again["metrics"]["n_queries"] == len(SAME_MEANING)
    assert again["metrics"]["n_pairs"] == 602 * len(SAME_MEANING)
    assert again["metrics"]["kappa"] > 0.8
    assert again["metrics"]["kinds_seen"] > 0.95
