"""Every kind of index, whole and on shards, built over the same vectors."""

import functools
import importlib.util
import tempfile

import numpy as np
import pytest

from searchlab.cluster.sharded_index import ShardedIndex
from searchlab.config import Config
from searchlab.config.indexes import ENGINES
from searchlab.search.indexes import INDEXES, build_index
from tests.support.databases import postgres_server

N = 1_200
WHOLE = 0
SHARDS = {
    "exact": (WHOLE, 1, 2, 4, 7),
    "exact-on-device": (WHOLE,),
    "hnsw": (WHOLE, 2),
    "clustered": (WHOLE, 4),
    "pgvector": (WHOLE, 2),
    "milvus": (WHOLE,),
}
"""How many shards an index of a kind is cut into, beside the one that is not."""
SLOW = ("exact-on-device", *ENGINES)
"""Kinds that quick runs leave out, since to import torch or to start a server takes seconds."""
KINDS = (*sorted(INDEXES), *ENGINES)


def param(value, kind, name):
    return pytest.param(value, id=name, marks=[pytest.mark.slow] if kind in SLOW else [])


@functools.cache
def named(kind):
    """Name an index as a config does: an engine with the address of one that runs for tests."""
    if kind == "pgvector":
        return f"pgvector:{postgres_server().get_uri()}"
    if kind == "milvus":
        if not importlib.util.find_spec("milvus_lite"):
            pytest.skip("milvus-lite is not installed: pip install 'searchlab[milvus]'")
        return f"milvus:{tempfile.mkdtemp(prefix='searchlab-milvus-')}/milvus.db"
    return kind


@pytest.fixture(scope="module", params=[param(kind, kind, kind) for kind in KINDS])
def kind(request):
    return named(request.param)


@pytest.fixture(
    scope="module",
    params=[
        param((kind, n_shards), kind, f"{kind} on {n_shards}" if n_shards else kind)
        for kind in KINDS
        for n_shards in SHARDS[kind]
    ],
)
def build(request):
    """Build an index of a kind over some vectors, whole or on shards."""
    kind, n_shards = request.param
    name = named(kind)

    def _build(vectors, labels=None, **settings):
        config = Config(index=name, **settings)
        labels = np.arange(len(vectors)) if labels is None else labels
        if n_shards == WHOLE:
            return build_index(vectors, config, labels)
        return ShardedIndex.cut(vectors, config, labels=labels, n_shards=n_shards)

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
