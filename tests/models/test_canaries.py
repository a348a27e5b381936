"""What a library remembers of its model, and how a model that has changed is noticed."""

import json

import numpy as np
import pytest

from searchlab.errors import MismatchError
from searchlab.models import load_model
from searchlab.models.canaries import CanaryCheck, canary_image


class Tower:
    """Embeds anything as one row; counts what it is asked."""

    name = "tower"

    def __init__(self, row, *, reads="image"):
        self.row = np.asarray(row, dtype=np.float32) / np.linalg.norm(row)
        self.reads = reads
        self.calls = []

    def encode_texts(self, texts):
        self.calls.append("text")
        return np.tile(self.row, (len(texts), 1))

    def encode_images(self, images):
        self.calls.append("image")
        return np.tile(self.row, (len(images), 1))


@pytest.mark.parametrize("spec", ["palette", "mini", "captions"])
def test_a_model_meets_its_own_record_again_also_out_of_json(spec):
    model = load_model(spec)
    recorded = json.loads(json.dumps(CanaryCheck.record(model), allow_nan=False))
    kinds = ["text", "image"] if model.reads == "image" else ["text"]
    assert list(recorded) == kinds
    canary_check = CanaryCheck(recorded)
    for kind in kinds:
        canary_check.check(model, kind)


@pytest.mark.parametrize("dim", [1, 3, 32, 33, 63, 64, 512])
def test_a_record_is_a_short_sample_of_the_row_in_5_digits(dim):
    row = np.random.default_rng(dim).normal(size=dim)
    [*texts], [*images] = CanaryCheck.record(Tower(row)).values()
    assert texts == images
    assert min(dim, 32) <= len(texts) < 64
    assert texts == [round(value, 5) for value in texts]
    assert texts[0] == pytest.approx(Tower(row).row[0], abs=1e-5)


def test_a_model_of_descriptions_has_no_record_of_pictures():
    assert list(CanaryCheck.record(Tower([1, 2], reads="text"))) == ["text"]


@pytest.mark.parametrize("kind", ["text", "image"])
def test_another_row_is_refused_by_the_name_of_its_tower_every_time(kind):
    canary_check = CanaryCheck(CanaryCheck.record(Tower([1, 2, 3])))
    for _ in range(2):
        with pytest.raises(MismatchError, match=rf"the {kind} tower of tower must embed"):
            canary_check.check(Tower([3, 2, 1]), kind)
    canary_check.check(Tower([1, 2, 3]), kind)


def test_a_row_that_is_no_number_is_refused():
    canary_check = CanaryCheck(CanaryCheck.record(Tower([1, 2, 3])))
    with pytest.raises(MismatchError, match="text tower"):
        canary_check.check(Tower([1, np.nan, 3]), "text")


def test_what_another_processor_rounds_otherwise_is_accepted():
    canary_check = CanaryCheck(CanaryCheck.record(Tower([1, 2, 3])))
    canary_check.check(Tower([1.001, 2, 3]), "text")


def test_each_tower_is_asked_once_when_it_is_first_used():
    tower = Tower([1, 2, 3])
    canary_check = CanaryCheck(CanaryCheck.record(tower))
    tower.calls.clear()
    for kind in ("text", "text", "image", "image", "text"):
        canary_check.check(tower, kind)
    assert tower.calls == ["text", "image"]


def test_nothing_recorded_is_nothing_checked():
    tower = Tower([1, 2])
    CanaryCheck({}).check(tower, "text")
    CanaryCheck({"text": [1.0]}).check(tower, "image")
    assert tower.calls == []


def test_a_canary_picture_is_the_same_for_the_same_seed_and_no_other():
    assert canary_image(11).tobytes() == canary_image(11).tobytes() != canary_image(12).tobytes()
    assert (canary_image(3, size=20).size, canary_image(3).mode) == ((20, 20), "RGB")
