"""Vectors of real photos and of what people say about them, by the default model.

`demo-mini` are the bundled photos; `flickr8k-mini` needs the folder that SEARCHLAB_DATASETS names.
A tenth of the photos is held out as queries of kind `image`; queries of kind `text` are those of
the dataset.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from searchlab.datasets import load_dataset
from searchlab.images import WORKING_SIDE, as_rgb, for_model
from searchlab.labs.vectors import VectorSet, made_vectors
from searchlab.models import load_model
from searchlab.models.protocol import Embeddings
from searchlab.progress import Progress

REAL = {"demo-mini": "demo", "flickr8k-mini": "flickr8k"}
_HELD_OUT = 0.1


def vector_set(
    name: str, *, n_queries: int, seed: int, progress: Progress, cache: Path | None = None
) -> VectorSet:
    """Make or read vectors by their name.

    Args:
        name: One of `REAL`, or what `made_vectors` knows.
        n_queries: Most queries of each kind.
        seed: Of what is drawn.
        progress: Told about photos that are embedded.
        cache: Folder that keeps the vectors of real photos.

    Raises:
        InputError: An unknown name.
        NotFoundError: The dataset is not at hand.
    """
    if name not in REAL:
        return made_vectors(name, n_queries=n_queries, seed=seed)
    dataset = load_dataset(REAL[name])
    model = load_model("mini")
    kept = None if cache is None else cache / f"{name}-{dataset.revision}-{model.model_id}.npy"
    if kept is not None and kept.exists():
        photos: Embeddings = np.load(kept)
    else:
        files = [Path(str(record["file"])) for record in dataset.records]
        photos = _embedded(files, progress)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.save(kept, photos)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(photos))
    held_out = order[: int(_HELD_OUT * len(photos))]
    texts = [query.text for query in dataset.queries if query.text]
    some = rng.choice(len(texts), min(n_queries, len(texts)), replace=False)
    queries = {
        "image": photos[held_out[:n_queries]],
        "text": model.encode_texts([texts[place] for place in some]),
    }
    index = photos[np.sort(order[len(held_out) :])]
    about = f"{len(index):,} photos of {dataset.name} by {model.model_id}, {model.dim} components"
    return VectorSet(name, index, queries, about)


def _embedded(files: list[Path], progress: Progress) -> Embeddings:
    model = load_model("mini")
    side = model.input_size
    rows = []
    with progress.step("embedding photos", len(files), unit="photos") as step:
        for file in files:
            picture = for_model(as_rgb(file, min_side=max(WORKING_SIDE, side)), side)
            rows.append(model.encode_images([picture])[0])
            step.advance(1)
    return np.array(rows, dtype=np.float32)
