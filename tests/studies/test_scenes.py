import numpy as np
import pytest

from searchlab.errors import InputError
from searchlab.search.indexes import ExactIndex
from searchlab.studies.vectors.made import made_vectors, text_like
from searchlab.studies.vectors.scenes import Scenes, open_scenes


@pytest.mark.slow
def test_a_stretch_is_the_same_whatever_is_made_with_it():
    made = Scenes(24, seed=3)
    rows, scenes = made.rows(0, 40_000)
    for start, stop in ((0, 10), (16_000, 17_000), (16_384, 16_385), (39_999, 40_000)):
        part, of = Scenes(24, seed=3).rows(start, stop)
        assert np.array_equal(part, rows[start:stop])
        assert np.array_equal(of, scenes[start:stop])


def test_rows_have_unit_length_and_another_seed_makes_others():
    rows, _ = Scenes(24, seed=3).rows(0, 500)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-6)
    assert rows.dtype == np.float32
    assert not np.allclose(rows, Scenes(24, seed=4).rows(0, 500)[0])


def test_photos_of_a_scene_are_nearer_to_each_other_than_to_those_of_others():
    rows, scenes = Scenes(64, seed=0, n_scenes=5).rows(0, 400)
    same = scenes[:, None] == scenes
    cosines = rows @ rows.T
    assert cosines[same].mean() > cosines[~same].mean() + 0.15
    assert cosines[~same].mean() > 0.2  # all pictures lie in one cone


def test_scenes_differ_in_size():
    sizes = np.bincount(Scenes(8, seed=0).rows(0, 50_000)[1])
    assert np.percentile(sizes, 95) > 5 * np.percentile(sizes, 5)


def test_queries_are_of_the_collection_and_none_of_its_photos():
    made = Scenes(32, seed=1)
    rows, _ = made.rows(0, 5_000)
    queries = made.queries(20)
    best = ExactIndex(rows).search(queries, 1).scores[:, 0]
    assert best.mean() > 0.5
    assert best.max() < 0.999
    texts = ExactIndex(rows).search(text_like(queries, seed=1), 1).scores[:, 0]
    assert texts.mean() < best.mean() - 0.1


def test_what_is_stored_is_what_is_made_and_a_larger_file_serves_a_smaller_number(tmp_path):
    large = open_scenes(tmp_path, 20_000, 16, seed=2)
    before = sorted(path.name for path in tmp_path.iterdir())
    small = open_scenes(tmp_path, 700, 16, seed=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    rows, scenes = Scenes(16, seed=2).rows(0, 20_000)
    assert np.array_equal(large.photos, rows)
    assert np.array_equal(small.photos, rows[:700])
    assert np.array_equal(small.scenes, scenes[:700])
    assert isinstance(small.photos, np.memmap)


def test_half_a_file_is_made_anew(tmp_path):
    (tmp_path / "scenes-50-8-0.npy").write_bytes(b"half")
    assert open_scenes(tmp_path, 50, 8).photos.shape == (50, 8)


def test_no_rows_are_refused(tmp_path):
    with pytest.raises(InputError, match="at least 1, got 0"):
        open_scenes(tmp_path, 0, 8)


def test_they_are_made_by_name_as_other_vectors_are():
    made = made_vectors("scenes-1k-16", n_queries=7, seed=5)
    assert np.array_equal(made.photos, Scenes(16, seed=5).rows(0, 1_000)[0])
    assert {kind: rows.shape for kind, rows in made.queries.items()} == {
        "image": (7, 16),
        "text": (7, 16),
    }
