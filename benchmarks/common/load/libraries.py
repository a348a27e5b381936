"""Libraries to serve: the bundled photos, plain pictures for a quick try, and synthetic ones."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.cli.demo import build_demo_library
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import Library, create_library
from searchlab.library.roots import check_root
from searchlab.library.snapshots import write_snapshot
from searchlab.models import Embeddings, load_model, unit_rows
from searchlab.models.canaries import CanaryCheck
from searchlab.models.shipped_calibration import calibrate
from searchlab.photos.colors import color_name
from searchlab.photos.columns import Texts, pack_texts
from searchlab.photos.table import CODED_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, Codes, PhotoTable
from searchlab.progress import Progress
from searchlab.search.indexes import build_index
from searchlab.search.words.index import WordIndex

_NOISE = 0.5  # length of the noise, relative to a row: gives neighbours of a photo, not copies
_PHOTOS_EACH = 16  # photos per photographer of a large library, on average
_BLOCK = 50_000
_FIRST_DAY, _LAST_DAY = 15_000, 20_000
_SHADES = 4_096


def library_of(
    dataset: str, folder: Path, *, photos: int | None = None, progress: Progress | None = None
) -> Library:
    """Make the library that a benchmark's `--dataset` names: `demo` or `plain`.

    Args:
        dataset: `demo` for the bundled photos, `plain` for 60 plain pictures with the lightest
            model, which are enough to see that all works.
        folder: Where the library is made.
        photos: If given, so many synthetic photos are made in their place; see `synthetic_library`.
        progress: Shows every step.
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
    index_photos(library, [check_root(photos)], config=calibrate(Config(model="palette")))
    return library


def synthetic_library(
    seed: Library, folder: Path, n_photos: int, *, index: str | None = None
) -> Library:
    """Make a library of any size from the records and vectors of another one.

    Each photo has the record of one of the seed's photos under an id of its own, and that photo's
    vector with noise half as long. Photographers, days and shades are drawn at random, so that a
    large library has about as many of them as a real one. It has no picture files.

    Args:
        seed: The library that records and vectors come from.
        folder: Where it is made; a million photos take 4 GB of disk and as much memory.
        n_photos: Number of photos.
        index: One of `INDEXES`; the seed's if left out.
    """
    engine = seed.engine
    config = engine.config if index is None else replace(engine.config, index=index)
    rng = np.random.default_rng(0)
    origins = rng.integers(0, len(engine.table), n_photos)
    table = _draw_table(engine.table, origins, rng)
    vectors = _draw_vectors(np.asarray(engine.index.vectors), origins, rng)
    library = create_library(folder)
    write_snapshot(
        library.folder,
        config=config,
        roots=(),
        table=table,
        vectors=vectors,
        index=build_index(vectors, config, table.labels),
        words=WordIndex.build(table),
        next_label=n_photos,
        canaries=CanaryCheck.record(load_model(config.model)),
    )
    return library


def _draw_vectors(
    own: Embeddings, origins: NDArray[np.int64], rng: np.random.Generator
) -> Embeddings:
    vectors = np.empty((len(origins), own.shape[1]), dtype=np.float32)
    for start in range(0, len(origins), _BLOCK):
        block = own[origins[start : start + _BLOCK]]
        noise = rng.standard_normal(size=block.shape, dtype=np.float32)
        vectors[start : start + _BLOCK] = unit_rows(block + noise * _NOISE / own.shape[1] ** 0.5)
    return vectors


def _draw_table(
    seed: PhotoTable, origins: NDArray[np.int64], rng: np.random.Generator
) -> PhotoTable:
    n = len(origins)
    rows = [seed.row(row) for row in range(len(seed))]
    numbers: dict[str, Any] = {
        name: np.array([row[name] for row in rows], dtype=dtype)[origins]
        for name, dtype in NUMBER_COLUMNS.items()
    }
    numbers |= {
        "label": np.arange(n),
        "uploaded_day": rng.integers(_FIRST_DAY, _LAST_DAY, n, dtype=np.int32),
    }
    codes = {name: seed.codes(name) for name in CODED_COLUMNS}
    coded = {name: Codes(column.rows[origins], column.values) for name, column in codes.items()}
    texts = {name: _take_texts([row[name] for row in rows], origins) for name in TEXT_COLUMNS}
    shades = rng.integers(0, 2**24, _SHADES, dtype=np.uint32)
    families = [color_name(f"#{shade:06x}") for shade in shades.tolist()]
    named = sorted(set(families))
    shade_numbers = rng.integers(0, _SHADES, n)
    numbers["shade"] = shades[shade_numbers]
    coded["color_name"] = Codes(
        np.array([*map(named.index, families)], np.int32)[shade_numbers], named
    )
    halves = rng.integers(0, 2**62, (n, 2))
    ids = sorted(str(uuid.UUID(int=(a << 64) + b, version=4)) for a, b in halves.tolist())
    texts["photo_id"] = pack_texts(ids)
    texts["source_photo_id"] = pack_texts(map(str, range(n)))
    # A few photographers have many photos, and most have few.
    n_people = max(1, n // _PHOTOS_EACH)
    people = (n_people * rng.random(n) ** 2).astype(np.int32)
    usernames = [f"{word}_{number:07d}" for number, word in enumerate(_words(rng, n_people))]
    order = np.argsort(usernames)
    place = np.empty(n_people, dtype=np.int32)
    place[order] = np.arange(n_people)
    coded["photographer_username"] = Codes(place[people], [usernames[at] for at in order])
    names = [f"{a.title()} {b.title()}" for a, b in zip(*_words(rng, (2, n_people)), strict=True)]
    texts["photographer_full_name"] = _take_texts(names, people)
    return PhotoTable(numbers, coded, texts)


def _words(rng: np.random.Generator, shape: int | tuple[int, int]) -> Any:
    syllables = np.array([f"{a}{b}" for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "un")])
    first, second, third = (syllables[rng.integers(0, len(syllables), shape)] for _ in range(3))
    return np.char.add(np.char.add(first, second), third).tolist()


def _take_texts(values: list[str], origins: NDArray[Any]) -> Texts:
    encoded = [value.encode() for value in values]
    lengths = np.array([len(one) for one in encoded], dtype=np.int64)[origins]
    data = b"".join([encoded[at] for at in origins.tolist()])
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    return Texts(starts, np.frombuffer(data, dtype=np.uint8))
