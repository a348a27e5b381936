"""Real vectors to measure with: a million texts or photos, in groups that filters follow."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from searchlab.cli.console import ConsoleProgress
from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.ivf.kmeans import assign
from searchlab.studies.vectors.real import POOL, vector_set

SETS = ("spliced", "mixed")
"""First parts of the names of vector sets, `spliced-256` and `mixed-256`."""
_ROWS = 1_000_000
_GROUPS = 1_000
# Queries that nobody is asked, from which an index may learn, as a library's texts are.
_KNOWN = 128


class RealPhotos(NamedTuple):
    """Rows, groups of like ones, queries, and what an index may know of queries.

    Attributes:
        photos: (n, dim) unit rows, memory-mapped.
        groups: (n,) int32 group of each row: the nearest of 1,000 rows.
        nearness: (n_groups,) float32 cosine of each group's row with a caption that is not asked.
        queries: Kind -> (n_queries, dim) unit rows.
        known: (128, dim) unit rows of the kind of query that is unlike the rows; not asked.
    """

    photos: Embeddings
    groups: NDArray[np.int32]
    nearness: NDArray[np.float32]
    queries: dict[str, Embeddings]
    known: Embeddings


def is_real(options: argparse.Namespace) -> bool:
    """Tell whether the vectors that are asked for are real ones."""
    return options.dataset.partition("-")[0] in SETS


def open_real(options: argparse.Namespace, n: int) -> RealPhotos:
    """Read the vectors, made first if they are not in the cache; sizes are parts of one collection.

    Raises:
        InputError: There are more components or rows than there are.
        NotFoundError: The datasets are not in the folder that SEARCHLAB_DATASETS names.
    """
    shape, _, dim = options.dataset.partition("-")
    largest = _ROWS if n > 10_000 else 10_000
    name = f"{shape}-{largest // 1000}k" if largest < _ROWS else f"{shape}-1M"
    progress = ConsoleProgress(Console(stderr=True))
    vectors = vector_set(
        name, n_queries=POOL, seed=options.seed, progress=progress, cache=options.cache
    )
    if n > len(vectors.photos) or dim != str(vectors.photos.shape[1]):
        msg = (
            f"real vectors are at most {len(vectors.photos):,} of {vectors.photos.shape[1]} "
            f"components, got {n:,} of {dim}"
        )
        raise InputError(msg)
    queries = {kind: rows[: options.queries] for kind, rows in vectors.queries.items()}
    unlike = "image" if shape == "spliced" else "text"
    centres = vectors.photos[:: len(vectors.photos) // _GROUPS][:_GROUPS]
    groups = _read_groups(options.cache, name, vectors.photos, np.ascontiguousarray(centres))
    nearness = centres @ vectors.queries["text"][-1]
    known = vectors.queries[unlike][-1 - _KNOWN : -1]
    return RealPhotos(vectors.photos[:n], groups[:n], nearness, queries, known)


def _read_groups(
    cache: Path, name: str, photos: Embeddings, centres: Embeddings
) -> NDArray[np.int32]:
    path = cache / f"groups-{name}.npy"
    if not path.exists():
        groups, _ = assign(photos, centres, threads=1)
        partial = path.with_suffix(".partial.npy")
        np.save(partial, groups.astype(np.int32))
        partial.replace(path)
    read: NDArray[np.int32] = np.load(path)
    return read
