"""Centres of lists, and rows that find theirs, with and without groups."""

from __future__ import annotations

import numpy as np
import pytest

from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.ivf import kmeans
from searchlab.search.indexes.ivf.kmeans import assign, train_centres, unit


def scattered(n: int, dim: int = 24, *, n_scenes: int = 40, seed: int = 0) -> Embeddings:
    """Unit rows about some scenes."""
    rng = np.random.default_rng(seed)
    scenes = unit(rng.standard_normal((n_scenes, dim)))
    near = scenes[rng.integers(n_scenes, size=n)]
    return unit(near + 0.1 * rng.standard_normal((n, dim)))


@pytest.fixture(scope="module")
def photos() -> Embeddings:
    return scattered(20_000)


@pytest.fixture(scope="module")
def centres(photos: Embeddings) -> Embeddings:
    return train_centres(photos, 1_200, seed=3, threads=1)


def test_few_centres_are_all_looked_at(photos: Embeddings) -> None:
    some = photos[:300]
    members, fits = assign(photos, some, threads=2)
    scores = photos.astype(np.float64) @ some.T.astype(np.float64)
    np.testing.assert_allclose(fits, scores.max(axis=1), atol=1e-5)
    np.testing.assert_allclose(scores[np.arange(len(photos)), members], fits, atol=1e-5)


@pytest.mark.slow
def test_of_many_centres_hardly_any_row_misses_the_nearest(
    photos: Embeddings, centres: Embeddings
) -> None:
    members, fits = assign(photos, centres, threads=2)
    scores = photos @ centres.T
    assert len(centres) >= kmeans._MANY
    assert np.mean(members == scores.argmax(axis=1)) > 0.99
    assert np.mean(scores.max(axis=1) - fits) < 1e-3
    np.testing.assert_allclose(scores[np.arange(len(photos)), members], fits, atol=1e-5)


def test_rows_that_look_like_nothing_find_a_centre_too(centres: Embeddings) -> None:
    rng = np.random.default_rng(1)
    strangers = unit(rng.standard_normal((500, centres.shape[1])))
    nothing = np.zeros((2, centres.shape[1]), dtype=np.float32)
    members, fits = assign(np.vstack([strangers, nothing]), centres, threads=1)
    assert np.isfinite(fits).all()
    assert ((members >= 0) & (members < len(centres))).all()
    # Without any structure a sixteenth of all centres still holds one that is nearly as near.
    assert np.mean((strangers @ centres.T).max(axis=1) - fits[:500]) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 3])
def test_centres_and_members_do_not_depend_on_threads(
    photos: Embeddings, centres: Embeddings, threads: int
) -> None:
    np.testing.assert_array_equal(train_centres(photos, 1_200, seed=3, threads=threads), centres)
    for one, other in zip(
        assign(photos, centres, threads=1),
        assign(photos, centres, threads=threads),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_fewer_rows_than_centres_are_held_against_all_of_them(
    photos: Embeddings, centres: Embeddings
) -> None:
    some = photos[:70]
    members, _ = assign(some, centres, threads=1)
    np.testing.assert_array_equal(members, (some @ centres.T).argmax(axis=1))


def test_equal_centres_are_no_trouble() -> None:
    same = unit(np.ones((1_500, 8)))
    members, fits = assign(same, same, threads=1)
    np.testing.assert_allclose(fits, 1, atol=1e-6)
    assert ((members >= 0) & (members < len(same))).all()
