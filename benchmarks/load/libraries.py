"""Libraries to serve: the bundled photos, plain pictures for a quick look, and synthetic ones."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from searchlab.calibration import calibrated
from searchlab.config import Config
from searchlab.demo import build_demo_library
from searchlab.indexes import INDEXES
from searchlab.ingest import index_photos
from searchlab.library import Library, create_library
from searchlab.models import load_model, unit_rows
from searchlab.models.canaries import Witness
from searchlab.progress import Progress
from searchlab.scan import check_root
from searchlab.snapshots import write_snapshot
from searchlab.tables import PhotoTable

_NOISE = 0.5  # of the length of a row: neighbours of a photo, not copies of it


def library_of(
    dataset: str, folder: Path, *, photos: int | None = None, progress: Progress | None = None
) -> Library:
    """Make the library that a benchmark's `--dataset` names: `demo` or `plain`.

    Args:
        dataset: The bundled photos, or 60 plain pictures with the lightest model, enough to see
            that all works.
        folder: Where.
        photos: As many synthetic ones in their place; see `synthetic_library`.
        progress: Told about what is done.
    """
    if dataset == "demo":
        library = build_demo_library(folder / "library", progress=progress)
    else:
        library = _plain_library(folder / "library", folder / "plain")
    return library if photos is None else synthetic_library(library, folder / "many", photos)


def _plain_library(data: Path, photos: Path) -> Library:
    photos.mkdir()
    for number in range(60):
        shade = (number * 4, 255 - number * 4, number * 40 % 256)
        Image.new("RGB", (48, 32), shade).save(photos / f"{number}.png")
    library = create_library(data)
    index_photos(library, [check_root(photos)], config=calibrated(Config(model="palette")))
    return library


def synthetic_library(seed: Library, folder: Path, n_photos: int) -> Library:
    """Make a library of any size from the records and vectors of another one.

    Each photo has the record of one of the seed's under an id of its own, and its vector with noise
    half as long as itself. There are no pictures behind it.
    """
    found = seed.engine
    rng = np.random.default_rng(0)
    own = np.asarray(found.index.vectors)
    drawn = rng.integers(0, len(own), n_photos)
    ids = sorted(str(uuid.UUID(bytes=rng.bytes(16), version=4)) for _ in range(n_photos))
    records = [found.table.row(row) for row in range(len(found.table))]

    def record(place: int) -> dict[str, Any]:
        about = records[drawn[place]]
        return about | {"photo_id": ids[place], "source_photo_id": str(place), "label": place}

    batches = ([record(place) for place in part] for part in _parts(n_photos, 10_000))
    table = PhotoTable.from_rows(batches)
    noise = rng.standard_normal(size=(n_photos, own.shape[1]), dtype=np.float32)
    noise *= _NOISE / np.sqrt(own.shape[1])
    vectors = unit_rows(own[drawn] + noise)
    library = create_library(folder)
    write_snapshot(
        library.folder,
        config=found.config,
        roots=(),
        table=table,
        vectors=vectors,
        index=INDEXES[found.config.index](vectors, found.config, table.labels),
        next_label=n_photos,
        canaries=Witness.record(load_model(found.config.model)),
    )
    return library


def _parts(n: int, size: int) -> list[range]:
    return [range(start, min(start + size, n)) for start in range(0, n, size)]
