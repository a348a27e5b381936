"""Snapshots of a few photos, written into a folder."""

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.library import retention
from searchlab.library.snapshots import write_snapshot
from searchlab.photos.photo import URL_SIZES, Photo, photo_id_of
from searchlab.photos.table import PhotoTable
from searchlab.search.indexes import build_index
from searchlab.search.words.index import WordIndex


def photo(name):
    return Photo(
        photo_id=photo_id_of("local", name),
        source_photo_id=name,
        image_url="",
        urls=dict.fromkeys(URL_SIZES, ""),
        source_image_url="",
        width=4,
        height=3,
        orientation="landscape",
        blur_hash="",
        color_name="red",
        color_hex="#ff0000",
        source="local",
        license_type="cc0",
        photographer_username="",
        photographer_full_name="",
        photographer_url="",
        source_description=name,
        description="",
        alt_description="",
        uploaded_on="2020-01-31",
        attribution={"html": "", "plain": ""},
    )


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def forgetful(monkeypatch):
    """Lets a library keep no more snapshots than it must."""
    monkeypatch.setattr(retention, "KEPT_S", 0.0)


@pytest.fixture
def save(folder):
    """Writes a snapshot of photos with some names."""

    def write(names, *, kind="hnsw", roots=(), next_label=100, labels=None, **options):
        table = PhotoTable.from_photos(map(photo, names), labels=labels)
        rng = np.random.default_rng(list(map(ord, "".join(names))))
        vectors = rng.normal(size=(len(names), 8)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        config = Config(model="palette", model_id="palette-1", index=kind)
        return write_snapshot(
            folder,
            config=config,
            roots=roots,
            table=table,
            vectors=vectors,
            index=build_index(vectors, config, table.labels),
            words=WordIndex.build(table),
            next_label=next_label,
            canaries={"text": [0.0]},
            **options,
        )

    return write
