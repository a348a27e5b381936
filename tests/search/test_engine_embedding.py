"""What an engine asks its model: each text once, and nothing for later pages."""

import pytest
from PIL import Image

from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import engine_world
from tests.support.engine_world import all_pages, ids, photo_id

build = engine_world.build
table = engine_world.table
vectors = engine_world.vectors


class Recording:
    """A model that remembers what it was asked."""

    def __init__(self, model):
        self._model, self.calls = model, []

    def __getattr__(self, name):
        return getattr(self._model, name)

    def encode_texts(self, texts):
        self.calls.append(list(texts))
        return self._model.encode_texts(texts)

    def encode_images(self, images):
        self.calls.append(f"{len(images)} images")
        return self._model.encode_images(images)


@pytest.fixture
def recording(build, toy_model):
    return build(model=Recording(toy_model))


def test_later_pages_need_neither_the_picture_nor_the_model(recording, make_picture, tmp_path):
    path = make_picture(tmp_path / "red.png")
    first = recording.search(Query(image=path, text="night"), per_page=30)
    path.unlink()
    recording.model.calls.clear()
    rest = ids([recording.search(cursor=first.next_cursor)])
    assert recording.model.calls == []
    whole = Query(image=Image.new("RGB", (8, 6), "#e50000"), text="night")
    assert ids([first]) + rest == recording.table.photo_ids(recording.rank(whole, 60).rows)


def test_a_photo_that_is_indexed_is_not_embedded_again(recording):
    all_pages(recording, Query(photo_id=photo_id(5)), 100)
    assert recording.model.calls == []


def test_texts_are_embedded_in_one_batch_and_once(recording):
    recording.warm(["sea", "dune", "sea"])
    recording.warm(["dune", "sea"])
    recording.warm([])
    assert recording.model.calls == [["sea", "dune"]]
    all_pages(recording, Query(text="dune"), 100)
    recording.rank(Query(text="night"))
    recording.rank(Query(text="night", sort_by="newest"))
    assert recording.model.calls == [["sea", "dune"], ["night"]]


def test_a_warm_engine_answers_as_a_cold_one(build):
    warm, cold = build(), build()
    warm.warm(["sea", "sea dune", "night"])
    for text in ("night", "sea dune"):
        assert (
            warm.rank(Query(text=text)).rows.tolist() == cold.rank(Query(text=text)).rows.tolist()
        )


def test_browsing_asks_no_model(recording):
    all_pages(recording, Query(filter=PhotoFilter(source="nasa")), 100)
    assert recording.model.calls == []
