"""Whether a model in fewer bits may stand for the one it was made from."""

import numpy as np
import pytest

from searchlab.errors import MismatchError
from searchlab.models.onnx.parity import LEAST_COSINE, LEAST_SAME_ORDER, Parity, measure_parity
from searchlab.models.protocol import unit_rows


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    return unit_rows(rng.normal(size=(8, 64))), unit_rows(rng.normal(size=(24, 64)))


def test_a_model_agrees_with_itself(rows):
    parity = measure_parity(*rows, *rows)
    assert (parity.same_order, parity.same_top) == (1.0, 1.0)
    assert parity.text_cosine == parity.image_cosine == pytest.approx(1.0)
    assert parity.is_enough("fp32")
    assert parity.is_enough("int8")


def test_order_and_top_are_counted_by_hand():
    texts = np.eye(2, dtype=np.float32)[:1]
    heights = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3])
    images = np.column_stack([heights, np.sqrt(1 - heights**2)]).astype(np.float32)
    swapped = images[[0, 1, 2, 3, 5, 4, 6]]  # the fifth and the sixth change places
    parity = measure_parity(texts, images, texts, swapped)
    assert parity.same_order == pytest.approx(20 / 21, abs=1e-4)
    assert parity.same_top == pytest.approx(4 / 5)


def test_other_vectors_are_chance_and_not_enough(rows):
    rng = np.random.default_rng(4)
    others = unit_rows(rng.normal(size=(8, 64))), unit_rows(rng.normal(size=(24, 64)))
    parity = measure_parity(*rows, *others)
    assert 0.4 < parity.same_order < 0.6
    assert not parity.is_enough("int8")


def test_pictures_close_together_may_be_ranked_anew_with_cosines_that_look_well():
    rng = np.random.default_rng(5)
    texts = unit_rows(rng.normal(size=(8, 64)))
    middle = rng.normal(size=64)
    images = unit_rows(middle + 0.02 * rng.normal(size=(24, 64)))
    noisy = unit_rows(images + 0.02 * rng.normal(size=images.shape))
    parity = measure_parity(texts, images, texts, noisy)
    assert parity.image_cosine > LEAST_COSINE["int8"]
    assert parity.same_order < LEAST_SAME_ORDER["int8"]
    assert not parity.is_enough("int8")


def test_one_vector_far_off_is_not_enough(rows):
    texts, images = rows
    turned = images.copy()
    turned[7] = -turned[7]
    assert measure_parity(texts, images, texts, turned).image_cosine == pytest.approx(-1)
    assert not measure_parity(texts, images, texts, turned).is_enough("int8")


def test_nan_agrees_with_nothing(rows):
    texts, images = rows
    broken = images.copy()
    broken[0] = np.nan
    assert not measure_parity(texts, images, texts, broken).is_enough("int8")


def test_what_cannot_be_compared_is_refused(rows):
    texts, images = rows
    with pytest.raises(MismatchError, match="two pictures or more"):
        measure_parity(texts, images, texts[1:], images)
    with pytest.raises(MismatchError, match="two pictures or more"):
        measure_parity(texts, images[:1], texts, images[:1])


def test_it_says_what_it_found():
    text = str(Parity(0.9912, 0.9987, 0.968, 0.95))
    assert text == (
        "cosine at worst 0.9912 of texts and 0.9987 of pictures, "
        "96.8% of pairs in the same order, 95.0% of the first 5 the same"
    )
