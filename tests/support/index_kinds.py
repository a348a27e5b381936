"""Every kind of index, built over the same vectors."""

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.search.indexes import INDEXES, build_index

N = 1_200


@pytest.fixture(scope="module", params=sorted(INDEXES))
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def build(kind):
    """Build an index of this kind over some vectors."""

    def _build(vectors, labels=None, **settings):
        labels = np.arange(len(vectors)) if labels is None else labels
        return build_index(vectors, Config(index=kind, **settings), labels)

    return _build


@pytest.fixture(scope="module")
def vectors(unit_vectors):
    return unit_vectors(N)


@pytest.fixture(scope="module")
def queries(unit_vectors):
    return unit_vectors(40, seed=99)


@pytest.fixture(scope="module")
def index(build, vectors):
    return build(vectors)
