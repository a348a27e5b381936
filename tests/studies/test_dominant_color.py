from collections import Counter

import pytest

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets import ENVIRONMENT, bundled_root
from searchlab.photos.colors import FAMILY_NAMES
from searchlab.photos.images.dominant_colors import VOTE_WEIGHTS
from searchlab.studies.color.dominant import (
    METHODS,
    learn_weights,
    measure,
    read_judged_photos,
)

TABLE = bundled_root() / "color-judgments" / "judgments.tsv"


@pytest.fixture(scope="module")
def measured():
    return measure(read_judged_photos("report", ["demo"]), samples=100)


def judgments():
    head, *lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]


def test_every_judgment_names_families_and_each_photo_is_judged_once():
    rows = judgments()
    for row in rows:
        named = [row["first"], *filter(None, row["also"].split(","))]
        assert set(named) <= set(FAMILY_NAMES)
        assert len(set(named)) == len(named)
    ids = [(row["collection"], row["photo_id"]) for row in rows]
    assert len(set(ids)) == len(ids)
    assert Counter(row["part"] for row in rows) == {"report": 200, "tune": 165, "vivid": 72}


def test_nothing_is_learnt_from_a_collection_that_only_judges():
    learnt_from = {row["collection"] for row in judgments() if row["part"] == "tune"}
    assert learnt_from == {"demo", "flickr8k-train", "web-photos"}


def test_bundled_photos_are_named_as_judged_and_better_than_by_any_other_method(measured):
    ours, *others = METHODS
    shares = {name: measured["methods"][name] for name in METHODS}
    assert shares[ours]["passing"]["mean"] >= 0.95
    assert shares[ours]["right"]["mean"] >= 0.6
    for name in others:
        assert shares[name]["right"]["mean"] < shares[ours]["right"]["mean"]
        assert shares[name]["passing"]["mean"] < shares[ours]["passing"]["mean"]


def test_a_measurement_adds_up(measured):
    assert measured["metrics"]["n_photos"] == 50 == len(measured["photos"])
    ours, before, *_ = METHODS
    gain = measured["over the rest"][before]["right"]
    difference = [measured["methods"][name]["right"]["mean"] for name in (ours, before)]
    assert gain["mean"] == pytest.approx(difference[0] - difference[1], abs=1e-4)
    assert gain["low"] <= gain["mean"] <= gain["high"]


@pytest.mark.slow
def test_weights_are_learnt_towards_what_judges_say():
    weights = learn_weights(read_judged_photos("tune", ["demo"]))
    assert list(weights) == list(VOTE_WEIGHTS)
    assert weights["coloured"] > 0.5
    assert weights["gray"] < -0.3


def test_photos_that_are_not_there_are_said_so(monkeypatch, tmp_path):
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    with pytest.raises(NotFoundError, match=r"'coco-judge'.*set SEARCHLAB_DATASETS"):
        read_judged_photos("report")
    with pytest.raises(InputError, match="report, vivid, tune, got 'test'"):
        read_judged_photos("test")
