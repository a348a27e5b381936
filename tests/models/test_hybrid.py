"""Fusion of models by concatenation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from searchlab.errors import InputError, MismatchError
from searchlab.models.hybrid import HybridEmbedder, parse_weights
from searchlab.models.protocol import unit_rows


class Fake:
    """A plain model whose rows are written down."""

    def __init__(self, name, rows, *, reads="image", input_size=10):
        self.name = name
        self._rows = unit_rows(np.array(rows, dtype=np.float32))
        self.dim = self._rows.shape[1]
        self.model_id = f"{name}-000000000000"
        self.reads = reads
        self.input_size = input_size if reads == "image" else 0

    @property
    def parts(self):
        return ((self, 1.0),)

    def encode_texts(self, texts):
        return self._rows[: len(texts)]

    def encode_images(self, images):
        if self.reads == "text":
            msg = "reads descriptions"
            raise InputError(msg)
        return self._rows[: len(images)]


A = Fake("a", [[1, 0], [3, 4]], input_size=10)
B = Fake("b", [[0, 1, 0], [1, 2, 2]], input_size=30)
SILENT = Fake("silent", [[0, 0], [0, 0]])
TEXT = Fake("text", [[1, 1], [1, -1]], reads="text")
PICTURES = [Image.new("RGB", (2, 2))] * 2


def test_a_dot_product_is_the_weighted_sum_of_the_cosines():
    rows = HybridEmbedder([(A, 3), (B, 1)]).encode_texts(["x", "y"])
    cosine_a, cosine_b = 3 / 5, 2 / 3
    assert rows[0] @ rows[1] == pytest.approx(0.75 * cosine_a + 0.25 * cosine_b)


def test_the_name_is_canonical():
    hybrid = HybridEmbedder([(B, 1), (A, 3)])
    assert hybrid.name == "hybrid:a=0.75,b=0.25"
    assert hybrid.name == HybridEmbedder([(A, 0.75), (B, 0.25)]).name
    assert [part.name for part, _ in hybrid.parts] == ["a", "b"]


@given(st.lists(st.floats(0.001, 1_000), min_size=3, max_size=3))
def test_reading_the_name_gives_the_name(weights):
    models = {"a": A, "b": B, "silent": SILENT}
    name = HybridEmbedder(list(zip(models.values(), weights, strict=True))).name
    parsed = parse_weights(name.removeprefix("hybrid:"))
    assert HybridEmbedder([(models[part], weight) for part, weight in parsed]).name == name


def test_the_model_id_follows_the_weights():
    first, second = HybridEmbedder([(A, 3), (B, 1)]), HybridEmbedder([(A, 2), (B, 1)])
    assert first.model_id != second.model_id
    assert first.model_id == HybridEmbedder([(B, 2), (A, 6)]).model_id


def test_a_silent_part_leaves_its_weight_to_the_others():
    rows = HybridEmbedder([(A, 0.5), (SILENT, 0.5)]).encode_texts(["x", "y"])
    assert rows[:, :2] == pytest.approx(A.encode_texts(["x", "y"]))


def test_a_row_is_zero_where_every_part_is_silent():
    assert not HybridEmbedder([(SILENT, 1)]).encode_texts(["x"]).any()


def test_a_part_of_descriptions_contributes_nothing_to_a_picture():
    hybrid = HybridEmbedder([(A, 0.2), (TEXT, 0.8)])
    rows = hybrid.encode_images(PICTURES)
    assert rows[:, :2] == pytest.approx(A.encode_images(PICTURES))
    assert not rows[:, 2:].any()
    assert hybrid.reads == "image"


def test_descriptions_alone_read_no_pictures():
    hybrid = HybridEmbedder([(TEXT, 1)])
    assert (hybrid.reads, hybrid.input_size) == ("text", 0)
    with pytest.raises(InputError, match="reads no pixels"):
        hybrid.encode_images(PICTURES)


def test_the_largest_input_decides():
    assert HybridEmbedder([(A, 1), (B, 1)]).input_size == 30


def test_joining_cached_rows_is_encoding():
    hybrid = HybridEmbedder([(B, 1), (A, 3)])
    cached = [part.encode_texts(["x", "y"]) for part, _ in hybrid.parts]
    joined = hybrid.join(cached)
    assert (joined == hybrid.encode_texts(["x", "y"])).all()
    assert joined.dtype == np.float32


def test_rows_that_do_not_fit_are_refused():
    hybrid = HybridEmbedder([(A, 1), (B, 1)])
    with pytest.raises(MismatchError, match=r"must have shapes \[\(1, 2\), \(1, 3\)\]"):
        hybrid.join([np.zeros((1, 2), np.float32), np.zeros((2, 3), np.float32)])
    with pytest.raises(MismatchError):
        hybrid.join([])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "at least one part"),
        ([(A, 1), (A, 2)], "only once"),
        ([(A, 0)], "positive"),
        ([(A, float("nan"))], "positive"),
        ([(HybridEmbedder([(A, 1)]), 1)], "plain model"),
    ],
)
def test_parts_that_make_no_hybrid_are_refused(parts, message):
    with pytest.raises(InputError, match=message):
        HybridEmbedder(parts)


def test_a_part_may_hold_equals_signs_and_colons():
    assert parse_weights("openclip:ViT-B-32/a=b.pt=2, mini=1e-1") == [
        ("openclip:ViT-B-32/a=b.pt", 2.0),
        ("mini", 0.1),
    ]


@pytest.mark.parametrize(
    "text", ["", "mini", "mini=", "=1", "mini=x", "mini=0.7,,palette=1", "mini=inf"]
)
def test_weights_that_cannot_be_read_are_refused(text):
    with pytest.raises(InputError, match="parts with weights"):
        parse_weights(text)
