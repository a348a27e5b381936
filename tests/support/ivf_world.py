"""A clustered index over made vectors in forty clusters, beside the exact one.

A test file takes the fixtures it needs by their names, as in `index = ivf_world.index`.
"""

import pytest

from searchlab.search.indexes import ExactIndex
from searchlab.search.indexes.ivf.index import IvfIndex
from searchlab.studies.vectors.made import clustered, text_like

N, DIM = 6_000, 48


@pytest.fixture(scope="module")
def members():
    return clustered(N + 60, DIM, clusters=40, seed=0)[1][:N]


@pytest.fixture(scope="module")
def all_vectors():
    return clustered(N + 60, DIM, clusters=40, seed=0)[0]


@pytest.fixture(scope="module")
def vectors(all_vectors):
    return all_vectors[:N].copy()


@pytest.fixture(scope="module")
def queries(all_vectors):
    return {"image": all_vectors[N:].copy(), "text": text_like(all_vectors[N:], seed=3)}


@pytest.fixture(scope="module")
def index(vectors):
    return IvfIndex(vectors)


@pytest.fixture(scope="module")
def exact(vectors):
    return ExactIndex(vectors)


def check_equal(one, other):
    assert one.rows.tolist() == other.rows.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()
