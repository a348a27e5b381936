"""A library over a folder of small pictures, for tests that index, change and search it.

A test file takes the fixtures it needs by their names, as in `put = library_world.put`.
"""

import numpy as np
import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from searchlab.models import load_model
from searchlab.models.palette.embedder import PaletteEmbedder
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query

PALETTE = Config(model="palette")
# Every query of 5 walks the graph, and with this ef_search the walk finds what exact search finds.
GRAPH = Config(model="palette", index="hnsw", step_rows=0, depth=5, ef_search=300)
ALL = Query(filter=PhotoFilter(after_date="1000-01-01"))


@pytest.fixture
def photos(tmp_path):
    folder = (tmp_path / "photos").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def put(photos):
    """Writes a picture: of one colour, or a mosaic that a number decides."""

    def write(name, look):
        path = photos / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(look, str):
            Image.new("RGB", (40, 30), look).save(path)
        else:
            tiles = np.random.default_rng(look).integers(0, 256, (3, 4, 3), dtype=np.uint8)
            Image.fromarray(tiles).resize((40, 30), Image.Resampling.NEAREST).save(path)
        return path

    return write


@pytest.fixture
def library(tmp_path):
    return create_library(tmp_path / "library")


@pytest.fixture
def index(library, photos):
    """Indexes `photos` into `library`."""

    def run(*roots, **options):
        options.setdefault("config", PALETTE)
        return index_photos(library, roots or [check_root(photos)], **options)

    return run


@pytest.fixture
def embedded(monkeypatch):
    """How many pictures each call embeds."""
    counts = []
    encode = PaletteEmbedder.encode_images

    def counted(self, images):
        # All but the probe that a library keeps as its model's canary.
        counts.append(sum(image.size != (320, 320) for image in images))
        return encode(self, images)

    load_model("palette").encode_images([Image.new("RGB", (1, 1))])
    monkeypatch.setattr(PaletteEmbedder, "encode_images", counted)
    return counts


def ids_by_name(library, query=ALL):
    """Photo ids by file name."""
    hits = library.search(query, per_page=100).hits
    return {hit.photo.file.rpartition("/")[2]: hit.photo.photo_id for hit in hits}


def ranked(library, query):
    return [hit.photo.file.rpartition("/")[2] for hit in library.search(query, per_page=100)]


def state_of(library):
    """Everything on disk that searching reads."""
    files = [library.folder / "CURRENT", *(library.folder / "snapshots").rglob("*")]
    return {str(path): path.read_bytes() for path in files if path.is_file()}
