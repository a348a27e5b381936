"""A model that maps another's rows reads no picture whose row by the other is known."""

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.errors import MismatchError
from searchlab.models import contract, load_model, registry
from searchlab.models.protocol import Embedder
from tests.support import library_world
from tests.support.library_world import PALETTE

embedded = library_world.embedded
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


class Turned(Embedder):
    """Its rows are those of `palette` with the components moved on by one."""

    name, model_id, reads = "turned", "turned-000000000001", "image"
    moved = 1

    def __init__(self):
        self.base = load_model("palette")
        self.dim, self.input_size = self.base.dim, self.base.input_size

    def fingerprints(self):
        return self.base.fingerprints() | {"weights": "1" * 12}

    def encode_texts(self, texts):
        return self.map_rows(self.base.encode_texts(texts))

    def map_rows(self, rows):
        return np.ascontiguousarray(np.roll(rows, self.moved, axis=1))

    def encode_images(self, images):
        return np.ascontiguousarray(np.roll(self.base.encode_images(images), 1, axis=1))


@pytest.fixture
def turned(monkeypatch):
    monkeypatch.setitem(registry.MODELS, "turned", lambda _rest: Turned())
    monkeypatch.setattr(registry, "_loaded", dict(registry._loaded))
    return Config(model="turned")


def rows_of(engine):
    names = [file.rpartition("/")[2] for file in engine.table.texts("file")]
    return dict(zip(names, np.array(engine.index.vectors), strict=True))


def test_only_pictures_that_are_new_are_read(put, index, library, turned, embedded):
    put("a.png", 1)
    put("b.png", 2)
    index()
    plain = rows_of(library.engine)
    put("c.png", 3)
    embedded.clear()
    index(config=turned)
    assert sum(embedded) == 1
    rows = rows_of(library.engine)
    assert rows.keys() == {"a.png", "b.png", "c.png"}
    for name, row in plain.items():
        assert (rows[name] == np.roll(row, 1)).all()


def test_a_configuration_that_is_tried_reads_none(put, index, library, turned, embedded):
    put("a.png", 1)
    put("b.png", 2)
    index(config=PALETTE)
    plain = rows_of(library.engine)
    embedded.clear()
    rows = rows_of(library.engine_for(turned))
    assert sum(embedded) == 0
    assert all((rows[name] == np.roll(row, 1)).all() for name, row in plain.items())


def test_a_map_that_gives_other_rows_breaks_the_contract(turned, monkeypatch):
    check = contract.check_picture_batches
    check(contract.Subject("turned"))
    monkeypatch.setattr(Turned, "moved", 2)
    with pytest.raises(MismatchError, match="same rows"):
        check(contract.Subject("turned"))


def test_rows_of_another_shape_are_refused_and_none_is_kept(
    put, index, library, turned, monkeypatch
):
    put("a.png", 1)
    index()
    monkeypatch.setattr(Turned, "map_rows", lambda self, rows: rows[:, :5])
    with pytest.raises(MismatchError, match=r"must give rows of shape \(1, \d+\), got \(1, 5\)"):
        index(config=turned)
    with library.cache() as cache:
        digests = list(library.engine.table.texts("sha256"))
        assert not cache.known_vectors("turned-000000000001", digests)
