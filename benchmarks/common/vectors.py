"""Many vectors by their name, made or real, and queries that are not among them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from searchlab.models import load_model
from searchlab.models.protocol import Embeddings
from searchlab.progress import Progress
from searchlab.studies.vectors.real import vector_set
from searchlab.studies.vectors.scenes import Scenes, open_scenes

_SIZES: Final = {"k": 1_000, "M": 1_000_000}


def read_vectors(
    name: str, cache: Path, *, n_queries: int, seed: int, progress: Progress
) -> tuple[Embeddings, Mapping[str, Embeddings]]:
    """Make or read vectors as long as those of `mini`.

    Args:
        name: `scenes-N`, where N ends in k or M, or what `vector_set` knows.
        cache: Folder that keeps the vectors.
        n_queries: Queries of each kind.
        seed: Seed of everything that is drawn at random.
        progress: Shows how many were made.

    Returns:
        (n, dim) unit rows, and the queries by kind: `made` of made vectors, else `image` and
        `text`.
    """
    kind, _, size = name.rpartition("-")
    if kind == "scenes":
        n, dim = int(size[:-1]) * _SIZES[size[-1]], load_model("mini").dim
        rows, _ = open_scenes(cache, n, dim, seed=seed, progress=progress)
        return rows, {"made": Scenes(dim, seed=seed).queries(n_queries)}
    real = vector_set(name, n_queries=n_queries, seed=seed, progress=progress, cache=cache)
    return real.photos, real.queries
