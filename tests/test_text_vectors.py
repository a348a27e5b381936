"""Vectors of texts are kept, within a bound of memory."""

import numpy as np

from searchlab.text_vectors import TextVectors


class Counting:
    """Embeds a text as its length, and notes what it was asked."""

    def __init__(self):
        self.asked = []

    def encode_texts(self, texts):
        self.asked.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_a_text_is_embedded_once():
    model = Counting()
    known = TextVectors(model)
    assert known.of("red").tolist() == [3.0, 1.0]
    assert known.of("red").tolist() == [3.0, 1.0]
    known.warm(["red", "blue", "blue", "green"])
    assert known.of("green").tolist() == [5.0, 1.0]
    assert model.asked == [["red"], ["blue", "green"]]


def test_those_asked_last_are_kept_and_the_memory_is_bounded():
    model = Counting()
    known = TextVectors(model, max_bytes=3 * (400 + 4 * 3 + 8))
    for text in ("one", "two", "six", "one", "ten"):
        known.of(text)
    assert (len(known), known.n_bytes) == (3, 3 * 420)
    known.of("one")
    known.of("two")
    assert model.asked == [["one"], ["two"], ["six"], ["ten"], ["two"]]


def test_long_texts_take_the_place_of_more():
    known = TextVectors(Counting(), max_bytes=5_000)
    for number in range(100):
        known.of(f"{number:0500}")
    assert len(known) == 2
