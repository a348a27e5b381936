"""Building a snapshot: embed what is new, number the photos, take over the graph, swap it in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.cache import ContentCache
from searchlab.catalog import assign_labels, build_vectors
from searchlab.config import Config
from searchlab.indexes import INDEXES, HnswIndex, VectorIndex
from searchlab.models import load_model
from searchlab.models.canaries import Witness
from searchlab.models.protocol import Embeddings
from searchlab.progress import Progress
from searchlab.scan import Root
from searchlab.snapshots import Snapshot, write_snapshot
from searchlab.tables import PhotoTable

_IN_THE_GRAPH = ("model_id", "index", "M", "ef_construction", "seed")


def build_snapshot(
    folder: Path,
    table: PhotoTable,
    config: Config,
    roots: tuple[Root, ...],
    cache: ContentCache,
    *,
    thumbnails: Path,
    before: Snapshot | None,
    progress: Progress,
) -> str:
    """Write the next state of a library; the caller holds it against other writers.

    Args:
        folder: The library.
        table: The photos of the new state.
        config: Its `model_id` is filled in.
        roots: Folders that it covers.
        cache: What is known of contents.
        thumbnails: Folder of the small pictures.
        before: The state in force, whose graph is taken over; None to build anew.
        progress: Told about what is done.

    Returns:
        The snapshot's name.
    """
    model = load_model(config.model)
    config = config.with_model_id(model.model_id)
    vectors = build_vectors(
        table, model=model, cache=cache, thumbnails=thumbnails, progress=progress
    )
    known = None if before is None else (before.table, before.index.vectors)
    first = 0 if before is None else before.next_label
    labels = assign_labels(table, vectors, known, first=first)
    same_model = before is not None and before.config.model_id == model.model_id
    canaries = before.canaries if before and same_model else Witness.record(model)
    next_label = max(first, int(labels.max(initial=-1)) + 1)
    with progress.step(f"building the {config.index} index"):
        index = _index(before, config, vectors, labels)
    return write_snapshot(
        folder,
        config=config,
        roots=roots,
        table=table.with_labels(labels),
        vectors=vectors,
        index=index,
        next_label=next_label,
        canaries=canaries,
        replace_equal=before is None,
    )


def _index(
    before: Snapshot | None, config: Config, vectors: Embeddings, labels: NDArray[np.int64]
) -> VectorIndex:
    if before is not None and isinstance(before.index, HnswIndex):
        built = [(getattr(before.config, name), getattr(config, name)) for name in _IN_THE_GRAPH]
        if all(one == other for one, other in built):
            return before.index.updated(vectors, labels, ef_search=config.ef_search)
    return INDEXES[config.index](vectors, config, labels)
