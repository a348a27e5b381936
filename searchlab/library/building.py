"""Building a snapshot: embed what is new, number the photos, take over the index, swap it in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.indexes import index_kind
from searchlab.library.cache import ContentCache
from searchlab.library.catalog import assign_labels, build_vectors
from searchlab.library.models import load_model_of
from searchlab.library.roots import Root
from searchlab.library.sample_texts import teach_texts
from searchlab.library.snapshots import Snapshot, rewrite_snapshot, write_snapshot
from searchlab.models.canaries import CanaryCheck
from searchlab.models.protocol import Embeddings
from searchlab.photos.table import PhotoTable
from searchlab.progress import Progress
from searchlab.search.indexes import VectorIndex, build_index, update_index
from searchlab.search.words.index import WordIndex


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
    """Write the next state of a library; the caller holds the lock for writing.

    Args:
        folder: The library.
        table: The photos of the new state.
        config: Its `model_id` is filled in.
        roots: Folders that it covers.
        cache: Stores facts and vectors by content.
        thumbnails: Folder of the small pictures.
        before: The state in force, whose index is updated; None to build a new one.
        progress: Told about what is done.

    Returns:
        The snapshot's name.
    """
    model = load_model_of(folder, config)
    config = config.with_model_id(model.model_id)
    if before is not None and _keeps_all(before, table, config, roots):
        return rewrite_snapshot(folder, before.snapshot_id, config)
    vectors = build_vectors(
        table, model=model, cache=cache, thumbnails=thumbnails, progress=progress
    )
    known = None if before is None else (before.table, before.index.vectors)
    first = 0 if before is None else before.next_label
    labels = assign_labels(table, vectors, known, first=first)
    same_model = before is not None and before.config.model_id == model.model_id
    canaries = before.canaries if before and same_model else CanaryCheck.record(model)
    next_label = max(first, int(labels.max(initial=-1)) + 1)
    with progress.step(f"building the {index_kind(config.index)} index"):
        index = _make_index(before, config, vectors, labels)
        teach_texts(index, table, model)
    words = WordIndex.build(
        table,
        before=None if before is None else before.words,
        folder=folder,
        progress=progress,
    )
    return write_snapshot(
        folder,
        config=config,
        roots=roots,
        table=table.with_labels(labels),
        vectors=vectors,
        index=index,
        words=words,
        next_label=next_label,
        canaries=canaries,
        replace_equal=before is None,
    )


def _keeps_all(
    before: Snapshot, table: PhotoTable, config: Config, roots: tuple[Root, ...]
) -> bool:
    # Photos and index are unchanged, only the configuration is new.
    same = table is before.table and roots == before.roots
    return same and config.index_id == before.config.index_id


def _make_index(
    before: Snapshot | None, config: Config, vectors: Embeddings, labels: NDArray[np.int64]
) -> VectorIndex:
    if before is not None and before.config.index_id == config.index_id:
        return update_index(before.index, vectors, config, labels=labels)
    return build_index(vectors, config, labels)
