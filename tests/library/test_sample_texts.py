"""Texts of photos as queries that an index learns from: all different, and only if wanted."""

import numpy as np
import pytest

from searchlab.library.sample_texts import N_TEXTS, sample_texts, teach_texts
from searchlab.models import load_model
from searchlab.photos.table import PhotoTable
from searchlab.search.indexes.exact import ExactIndex


class Pupil(ExactIndex):
    """An index that writes down what it learns."""

    wants_texts = True
    learnt = None

    def learn(self, texts):
        self.learnt = texts


@pytest.fixture
def table(make_photo):
    def make(n, **texts):
        blank = dict.fromkeys(("title", "description", "alt_description", "source_description"), "")
        return PhotoTable.from_photos(
            make_photo(number, **blank | {k: v(number) for k, v in texts.items()})
            for number in range(n)
        )

    return make


def test_one_text_of_a_photo_is_drawn(table):
    photos = table(
        300, title=lambda n: f"title {n}", description=lambda n: f"d {n}" if n % 2 else ""
    )
    texts = sample_texts(photos)
    assert len(texts) == len(set(texts)) == N_TEXTS
    assert len({text.split()[-1] for text in texts}) == N_TEXTS
    assert {text.split()[0] for text in texts} == {"title", "d"}
    assert sample_texts(photos) == texts


def test_equal_and_empty_texts_are_no_queries(table):
    assert sample_texts(table(200, title=lambda n: f"a {n % 3}" if n % 2 else "")) != []
    assert set(sample_texts(table(200, title=lambda _: "IMG"))) == {"IMG"}
    assert sample_texts(table(20)) == []


def test_an_index_learns_where_there_are_enough_texts(table):
    model = load_model("palette")
    photos = table(90, title=lambda n: f"title {n}")
    index = Pupil(np.zeros((90, model.dim), dtype=np.float32))
    teach_texts(index, table(60, title=lambda n: f"title {n}"), model)
    assert index.learnt is None
    teach_texts(index, photos, model)
    assert index.learnt.tolist() == model.encode_texts(sample_texts(photos)).tolist()
    teach_texts(ExactIndex(index.vectors), photos, model)  # which wants none
