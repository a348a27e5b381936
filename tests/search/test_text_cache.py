"""Vectors of texts are kept, within a bound of memory, and for one model alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.search.engine import SearchEngine
from searchlab.search.indexes import ExactIndex
from searchlab.search.queries import Query
from searchlab.search.query_reading import TextVectors


class Counting:
    """Embeds a text as its length, and notes what it was asked."""

    model_id = "counting-0"

    def __init__(self):
        self.asked = []

    def encode_texts(self, texts):
        self.asked.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


class Other(Counting):
    """Another model of the same name and dim."""

    model_id = "counting-1"

    def encode_texts(self, texts):
        return -super().encode_texts(texts)


def test_a_text_is_embedded_once():
    model = Counting()
    known = TextVectors(model)
    assert known.of("red").tolist() == [3.0, 1.0]
    assert known.of("red").tolist() == [3.0, 1.0]
    known.warm(["red", "blue", "blue", "green"])
    assert known.of("green").tolist() == [5.0, 1.0]
    assert model.asked == [["red"], ["blue", "green"]]


def test_what_is_given_out_cannot_be_changed():
    known = TextVectors(Counting())
    known.warm(["blue"])
    for vector in (known.of("red"), known.of("red"), known.of("blue")):
        with pytest.raises(ValueError, match="read-only"):
            vector *= -1
    assert known.of("red").tolist() == [3.0, 1.0]


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


def test_vectors_of_a_model_serve_the_same_model_and_no_other():
    known = TextVectors(Counting())
    known.of("red")
    assert known.of_model(Counting()) is known
    swapped = known.of_model(Other())
    assert (swapped.model_id, len(swapped)) == ("counting-1", 0)
    assert swapped.of("red").tolist() == [-3.0, -1.0]
    assert known.of("red").tolist() == [3.0, 1.0]


def test_an_engine_ranks_by_its_own_model_whatever_vectors_it_is_given(six_photos, toy_model):
    class Mirrored(type(toy_model)):
        model_id = "toy-ffffffffffff"

        def encode_texts(self, texts):
            return -super().encode_texts(texts)

    pictures = np.eye(6, toy_model.dim, dtype=np.float32)
    before, after = toy_model, Mirrored()
    known = TextVectors(before)
    ranked = {}
    for model in (before, after):
        engine = SearchEngine(
            six_photos,
            ExactIndex(pictures),
            model,
            Config(model="toy", model_id=model.model_id),
            texts=known,
        )
        ranked[model.model_id] = [
            hit.photo.photo_id for hit in engine.search(Query(text="red")).hits
        ]
    first, second = ranked.values()
    assert first == second[::-1]


def test_threads_that_ask_for_the_same_texts_get_their_own_vectors():
    known = TextVectors(Counting(), max_bytes=2_000)
    texts = [f"{number:0{1 + number % 7}}" for number in range(200)] * 3
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(known.of, texts))
    assert [row[0] for row in rows] == [len(text) for text in texts]
    assert known.n_bytes <= 2_000
