"""Which photos `mini` is taught on: each collection has some that are kept apart."""

from pathlib import Path

import numpy as np
import pytest

from searchlab.training.mini.photos import (
    SPARED,
    draw_batches,
    order_photos,
    training_photos,
)


def write_photos(folder, ids, split=None):
    folder.mkdir(parents=True)
    lines = ["photo_id\tfile\tsplit", *(f"{n}\timages/{n}.jpg\t{split or ''}" for n in ids)]
    (folder / "photos.tsv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def datasets(tmp_path):
    write_photos(tmp_path / "flickr8k-train", ["a", "b"])
    (tmp_path / "flickr8k").mkdir()
    rows = ["photo_id\tfile\tsplit", "c\tc.jpg\ttrain", "d\td.jpg\ttest", "e\te.jpg\tnone"]
    (tmp_path / "flickr8k/photos.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_no_photo_of_a_test_is_taught(datasets):
    (photos,) = training_photos(datasets)
    assert photos == {
        "a": datasets / "flickr8k-train/images/a.jpg",
        "b": datasets / "flickr8k-train/images/b.jpg",
        "c": datasets / "flickr8k/c.jpg",
    }


def test_photos_of_the_web_are_a_collection_of_their_own_where_they_are_at_hand(datasets):
    write_photos(datasets / "web-photos", ["w"])
    assert [list(photos) for photos in training_photos(datasets)] == [["a", "b", "c"], ["w"]]


def test_spared_photos_come_first_and_are_of_every_collection():
    collections = [
        {f"f{n}": Path(f"f{n}") for n in range(SPARED + 50)},
        {f"w{n}": Path(f"w{n}") for n in range(SPARED + 300)},
    ]
    photos = order_photos(collections)
    ids = list(photos.files)
    assert photos.n_spared == 2 * SPARED
    assert sorted(ids) == sorted([*collections[0], *collections[1]])
    assert [id[0] for id in ids] == ["fw"[n] for n in photos.collections]
    assert np.bincount(photos.collections[: photos.rows(100)]).tolist() == [100, 100]
    assert len(set(photos.collections[photos.n_spared : photos.n_spared + 40])) == 2
    assert ids == list(order_photos(collections).files)
    assert {photo: file.name for photo, file in photos.files.items()} == {id: id for id in ids}


def test_a_small_collection_is_spared_as_a_whole():
    photos = order_photos([{"a": Path("a")}, {f"w{n}": Path() for n in range(SPARED + 1)}])
    assert photos.n_spared == SPARED + 1
    assert next(iter(photos.files)) == "a"


def test_batches_are_of_one_collection_and_no_photo_comes_twice():
    collections = np.array([0, 1] * 50, dtype=np.int8)
    photos = np.arange(10, 100)
    batches = draw_batches(photos, collections, 8, np.random.default_rng(0))
    assert len(batches) == 2 * (45 // 8)
    drawn = np.concatenate(batches)
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) <= set(photos)
    assert all(len(set(collections[batch])) == 1 for batch in batches)
    assert len({collections[batch[0]] for batch in batches[:5]}) == 2


def test_a_collection_smaller_than_a_batch_is_drawn_as_one():
    collections = np.array([0] * 20 + [1] * 3, dtype=np.int8)
    batches = draw_batches(np.arange(23), collections, 8, np.random.default_rng(0))
    assert sorted(map(len, batches)) == [3, 8, 8]
