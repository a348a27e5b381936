import numpy as np
import pytest

from searchlab.errors import InputError
from searchlab.models.protocol import Embedder
from searchlab.studies.vectors.made import GivenVectors, clustered, made_vectors, near, text_like


@pytest.mark.parametrize("name", ["clustered-1k-24", "smooth-1000-24"])
def test_made_vectors_are_unit_rows_of_the_size_that_their_name_says(name):
    made = made_vectors(name, n_queries=7, seed=1)
    assert made.photos.shape == (1000, 24)
    assert {kind: rows.shape for kind, rows in made.queries.items()} == {
        "image": (7, 24),
        "text": (7, 24),
    }
    for rows in (made.photos, *made.queries.values()):
        assert rows.dtype == np.float32
        assert rows.flags.c_contiguous
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["clustered-300-16", "smooth-300-16"])
def test_the_same_seed_makes_the_same_vectors_and_another_one_others(name):
    one, same, other = (made_vectors(name, seed=seed).digest for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize("name", ["", "clustered", "clustered-0-8", "random-1k-8", "smooth-1m-8"])
def test_an_unknown_name_is_refused_with_an_example(name):
    with pytest.raises(InputError, match="such as clustered-100k-256"):
        made_vectors(name)


def test_rows_lie_nearer_to_their_own_cluster_than_to_others():
    rows, member = clustered(400, 64, clusters=4, seed=0)
    same = member[:, None] == member
    cosines = rows @ rows.T
    assert cosines[same].mean() > 0.5
    assert abs(cosines[~same].mean()) < 0.1


def test_texts_lie_far_from_photos_together_and_still_nearest_to_what_they_describe():
    made = made_vectors("clustered-2k-128", n_queries=50, seed=0)
    texts, images = made.queries["text"], made.queries["image"]
    own = (texts * images).sum(axis=1)
    assert 0.2 < own.mean() < 0.5
    assert (texts @ texts.T).mean() > 3 * (images @ images.T).mean()
    assert ((texts @ images.T).argmax(axis=1) == np.arange(50)).mean() > 0.8
    assert np.array_equal(text_like(images, seed=1), texts)


def test_a_moved_row_is_still_nearest_to_itself():
    rows, _ = clustered(200, 64, clusters=4, seed=0)
    moved = near(rows, seed=3)
    assert (moved @ rows.T).argmax(axis=1).tolist() == list(range(200))


def test_given_vectors_are_a_model_that_knows_just_those_texts():
    rows = np.eye(3, dtype=np.float32)
    model = GivenVectors({"one": rows[0], "two": rows[1]}, 3)
    assert isinstance(model, Embedder)
    assert model.encode_texts(["two", "one"]).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert model.model_id != GivenVectors({"one": rows[1]}, 3).model_id
    with pytest.raises(InputError, match="among the 2 given, got 'three'"):
        model.encode_texts(["three"])
    with pytest.raises(InputError, match="by text"):
        model.encode_images([])
