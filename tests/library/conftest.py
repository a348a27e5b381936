"""What tests of the library share: a cache of its own, and tables of pictures that are known."""

import hashlib

import pytest

from searchlab.library.cache import ContentCache
from searchlab.library.catalog import (
    build_table,
    identify,
)
from searchlab.library.embed import embed_pictures
from searchlab.library.roots import Root
from searchlab.library.scan import Picture
from searchlab.photos.sidecar import Record
from searchlab.progress import Progress
from tests.support.catalog_world import Letters, digest_of
from tests.support.embedding import picture


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path / "p", source="local")


@pytest.fixture
def cache(tmp_path):
    with ContentCache(tmp_path / "cache.db") as opened:
        yield opened


@pytest.fixture
def shot(root):
    """A scanned picture."""

    def make(name, content="", **record):
        return Picture(root.folder / name, digest_of(content or name), Record(**record))

    return make


@pytest.fixture
def table_of(root, cache):
    """Builds a table of pictures whose facts are known."""

    def build(pictures, *, model=None, dates=None, unreachable=()):
        pictures_by_id, _, _ = identify(pictures, [root])
        return build_table(
            pictures_by_id,
            roots=[root],
            cache=cache,
            model=model or Letters(),
            unreachable=unreachable,
            dates=dates or {},
            progress=Progress(),
        )

    return build


@pytest.fixture
def put(tmp_path):
    """Writes a file and returns its digest and path."""

    def write(name, content):
        path = tmp_path / "photos" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return hashlib.sha256(content).hexdigest(), path

    return write


@pytest.fixture
def embed(cache, tmp_path):
    """Runs the pipeline over (digest, path) pairs."""

    def run(files, *models):
        return embed_pictures(dict(files), models, cache, tmp_path / "small", Progress())

    return run


@pytest.fixture
def many(put):
    """100 pictures, each of one colour of its own."""
    return [put(f"{i:03d}.png", picture((i, 200 - i, 50))) for i in range(100)]
