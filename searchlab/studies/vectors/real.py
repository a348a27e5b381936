"""Vectors of real photos and of their captions, by the default model.

`demo-mini` are the bundled photos; `flickr8k-mini` and `photos-mini`, which is every real photo of
the datasets, need the folder that SEARCHLAB_DATASETS names. A tenth of the photos is held out as
queries of kind `image`; queries of kind `text` are those of the datasets, in all their languages.

`spliced-1M` are a million real text vectors, of captions spliced from halves of real ones. Queries
are real: `image` are photos, which ask across modalities, and `text` captions, within one.

`mixed-1M` are a million vectors of photos, each mixed of two real ones. Queries are real: photos
kept apart, within one modality, and their captions, across.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets import ENVIRONMENT, external_root, load_dataset
from searchlab.models import load_model
from searchlab.models.protocol import Embeddings
from searchlab.photos.images.decode import WORKING_SIDE, as_rgb, for_model
from searchlab.progress import Progress
from searchlab.studies.vectors import mixed
from searchlab.studies.vectors.made import VectorSet, made_vectors
from searchlab.studies.vectors.spliced import NAME, spliced_vectors

REAL = {
    "demo-mini": ("demo",),
    "flickr8k-mini": ("flickr8k",),
    "photos-mini": ("demo", "flickr8k-captions", "flickr8k-train"),
}
POOL = 2_000
"""Queries of each kind that a benchmark may choose from."""
_HELD_OUT = 0.1


class _Source(NamedTuple):
    name: str
    revision: str
    files: list[Path]
    texts: list[str]


def vector_set(
    name: str,
    *,
    n_queries: int,
    seed: int,
    progress: Progress | None = None,
    cache: Path | None = None,
) -> VectorSet:
    """Make or read vectors by their name.

    Args:
        name: One of `REAL`, `spliced-N` or `mixed-N` where N ends in k or M, or what
            `made_vectors` knows.
        n_queries: Largest number of queries of each kind.
        seed: Seed of everything that is drawn at random.
        progress: Shows how many photos were embedded.
        cache: Folder that keeps the vectors of real photos.

    Raises:
        InputError: The name is unknown.
        NotFoundError: The dataset is not in the folder that SEARCHLAB_DATASETS names.
    """
    progress = progress or Progress()
    if NAME.fullmatch(name):
        return _spliced_set(name, n_queries, seed, progress, cache)
    if mixed.NAME.fullmatch(name):
        return _mixed_set(name, n_queries, seed, progress, cache)
    if name not in REAL:
        return made_vectors(name, n_queries=n_queries, seed=seed)
    sources = [_read_source(one) for one in REAL[name]]
    model = load_model("mini")
    photos = np.concatenate([_read_or_embed(source, progress, cache) for source in sources])
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(photos))
    held_out = order[: int(_HELD_OUT * len(photos))]
    texts = [text for source in sources for text in source.texts]
    text_numbers = rng.choice(len(texts), min(n_queries, len(texts)), replace=False)
    queries = {
        "image": photos[held_out[:n_queries]],
        "text": model.encode_texts([texts[number] for number in text_numbers]),
    }
    index = photos[np.sort(order[len(held_out) :])]
    names = " and ".join(source.name for source in sources)
    about = f"{len(index):,} photos of {names} by {model.model_id}, {model.dim} components"
    return VectorSet(name, index, queries, about)


def _find_root(name: str) -> Path:
    root = external_root()
    if root is None:
        msg = f"{name} is made of data in the folder that {ENVIRONMENT} names, got no folder"
        raise NotFoundError(msg)
    return root


def _mixed_set(
    name: str, n_queries: int, seed: int, progress: Progress, cache: Path | None
) -> VectorSet:
    root = _find_root(name)
    sources = [_read_captioned(root / source) for source in mixed.SOURCES]
    photos = np.concatenate([_read_or_embed(source, progress, cache) for source, _ in sources])
    captions = [texts for _, each in sources for texts in each]
    mixing, apart, texts = mixed.hold_out(captions, POOL, seed=seed)
    model = load_model("mini")
    path = None if cache is None else cache / f"{name}-{seed}-{model.model_id}.npy"
    if path is None or not path.exists():
        rows = mixed.mix_vectors(photos[mixing], mixed.count_rows(name), seed=seed)
        if path is not None:
            np.save(path, rows)
    if path is not None:
        rows = np.load(path, mmap_mode="r")
    queries = {
        "image": photos[apart[:n_queries]],
        "text": model.encode_texts(texts[:n_queries]),
    }
    about = (
        f"{len(rows):,} mixtures of two of {len(mixing):,} photos (real photo vectors, mixed), by "
        f"{model.model_id}, {model.dim} components; queries are other photos, and their captions"
    )
    return VectorSet(name, rows, queries, about)


def _read_captioned(folder: Path) -> tuple[_Source, list[list[str]]]:
    """Read a collection's photos but those for tests, and the captions of each."""
    records = [row for row in _read_tsv(folder / "photos.tsv") if row.get("split") != "test"]
    captions: dict[str, list[str]] = {row["photo_id"]: [] for row in records}
    for row in _read_tsv(folder / "captions.tsv"):
        if row["photo_id"] in captions:
            captions[row["photo_id"]].append(row["text"])
    files = [folder / row["file"] for row in records]
    revision = hashlib.sha256("\n".join(file.name for file in files).encode()).hexdigest()[:12]
    return _Source(folder.name, revision, files, []), [captions[row["photo_id"]] for row in records]


def _spliced_set(
    name: str, n_queries: int, seed: int, progress: Progress, cache: Path | None
) -> VectorSet:
    root = _find_root(name)
    rows, captions = spliced_vectors(name, root, seed=seed, progress=progress, cache=cache)
    model = load_model("mini")
    photos = _read_tsv(root / "web-photos" / "photos.tsv")
    drawn = np.random.default_rng(seed).permutation(len(photos))[:POOL]
    files = [root / "web-photos" / photos[number]["file"] for number in drawn.tolist()]
    revision = hashlib.sha256("\n".join(file.name for file in files).encode()).hexdigest()[:12]
    asking = _read_or_embed(_Source("web-photos", revision, files, []), progress, cache)
    queries = {"image": asking[:n_queries], "text": model.encode_texts(captions[:n_queries])}
    about = (
        f"{len(rows):,} captions spliced from halves of real ones (real text vectors), by "
        f"{model.model_id}, {model.dim} components; queries are photos, and real captions"
    )
    return VectorSet(name, rows, queries, about)


def _read_source(name: str) -> _Source:
    if name == "flickr8k-train":
        return _read_training_photos()
    dataset = load_dataset(name)
    files = [Path(str(record["file"])) for record in dataset.records]
    texts = [query.text for query in dataset.queries if query.text]
    return _Source(name, dataset.revision, files, texts)


def _read_training_photos() -> _Source:
    # The other photos of flickr8k: no dataset to evaluate on, as `mini` was trained on them.
    root = external_root()
    files: list[Path] = []
    texts: list[str] = []
    for name in ("flickr8k", "flickr8k-train"):
        folder = Path(root or "") / name
        rows = [row for row in _read_tsv(folder / "photos.tsv") if row.get("split") != "test"]
        files += [folder / row["file"] for row in rows]
        photo_ids = {row["photo_id"] for row in rows}
        captions = _read_tsv(folder / "captions.tsv")
        texts += [row["text"] for row in captions if row["photo_id"] in photo_ids]
    revision = hashlib.sha256("\n".join(file.name for file in files).encode()).hexdigest()[:12]
    return _Source("flickr8k-train", revision, files, texts)


def _read_tsv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _read_or_embed(source: _Source, progress: Progress, cache: Path | None) -> Embeddings:
    model_id = load_model("mini").model_id
    path = None if cache is None else cache / f"{source.name}-{source.revision}-{model_id}.npy"
    if path is not None and path.exists():
        vectors: Embeddings = np.load(path)
        return vectors
    photos = _embed(source.files, progress)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, photos)
    return photos


def _embed(files: Sequence[Path], progress: Progress) -> Embeddings:
    model = load_model("mini")
    side = model.input_size
    rows = []
    with progress.step("embedding photos", len(files), unit="photos") as step:
        for file in files:
            picture = for_model(as_rgb(file, min_side=max(WORKING_SIDE, side)), side)
            rows.append(model.encode_images([picture])[0])
            step.advance(1)
    return np.array(rows, dtype=np.float32)
