"""The queries that every system gets at every size: of two kinds, with and without filters."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.scale.real import is_real, open_real
from searchlab.cli.console import ConsoleProgress
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes import Neighbors
from searchlab.studies.index.recall import true_neighbors
from searchlab.studies.vectors.made import text_like
from searchlab.studies.vectors.scenes import Scenes, StoredScenes, open_scenes

K = 20
KINDS = ("image", "text")


class Filter(NamedTuple):
    """A set of photos to search among.

    Attributes:
        relation: `random`; `aligned`: all photos of some scenes and none of the others; or `near`:
            of the scenes nearest to a caption.
        share: Share of the photos, 0 to 1; 1 is no filter.
    """

    relation: str
    share: float

    @property
    def name(self) -> str:
        """Name, such as `random 10%`; `none` without a filter."""
        return f"{self.relation} {100 * self.share:g}%" if self.share < 1 else "none"

    def mask(
        self,
        scenes: NDArray[np.int32],
        *,
        seed: int,
        nearness: NDArray[np.float32] | None = None,
    ) -> NDArray[np.bool_] | None:
        """Draw the photos that the filter keeps, at least one.

        Args:
            scenes: (n_photos,) the scene of each photo.
            seed: Seed of the draw.
            nearness: (n_scenes,) how near each scene is to a caption, for `near`.

        Returns:
            (n_photos,) bool, True for exactly its share of the photos; None for all.
        """
        if self.share >= 1:
            return None
        n = len(scenes)
        rng = np.random.default_rng([seed, round(1e6 * self.share)])
        n_allowed = max(1, round(self.share * n))
        if self.relation == "random":
            rows = rng.permutation(n)[:n_allowed]
        else:
            turn = rng.permutation(int(scenes.max()) + 1)
            if self.relation == "near" and nearness is not None:
                turn = np.argsort(np.argsort(-nearness, kind="stable"))
            rows = np.argsort(turn[scenes], kind="stable")[:n_allowed]
        mask = np.zeros(n, dtype=np.bool_)
        mask[rows] = True
        return mask


FILTERS = (
    Filter("random", 1.0),
    *(Filter("random", share) for share in (0.5, 0.1, 0.01, 0.001, 0.0001)),
    *(Filter("aligned", share) for share in (0.5, 0.1, 0.01)),
)

REAL_FILTERS = (
    Filter("random", 1.0),
    *(Filter("random", share) for share in (0.5, 0.1, 0.01, 0.001, 0.0001)),
    *(Filter("aligned", share) for share in (0.1, 0.01)),
    Filter("near", 0.1),
)


class Workload(NamedTuple):
    """Photos, queries, filters and true answers that a system is measured with.

    Attributes:
        photos: (n, dim) unit rows, memory-mapped.
        queries: Kind -> (n_queries, dim) unit rows.
        masks: Name of a filter -> (n,) bool, None for all.
        true: Kind -> name of a filter -> (n_queries, 20) true answers.
        known: (n_known, dim) queries that an index may learn from; None where it may not.
    """

    photos: Embeddings
    queries: Mapping[str, Embeddings]
    masks: Mapping[str, NDArray[np.bool_] | None]
    true: Mapping[str, Mapping[str, Neighbors]]
    known: Embeddings | None = None


def dim_of(options: argparse.Namespace) -> int:
    """Read the components out of a name such as `scenes-512`."""
    return int(options.dataset.rpartition("-")[2])


def photos_of(options: argparse.Namespace, n: int) -> StoredScenes:
    """Open the vectors; they are made first if they are not in the cache."""
    progress = ConsoleProgress(Console(stderr=True))
    return open_scenes(options.cache, n, dim_of(options), seed=options.seed, progress=progress)


def make_workload(n: int, options: argparse.Namespace) -> Workload:
    """Make queries and filters, and read the true answers, computed first if they are missing."""
    known = None
    photos: Embeddings
    if is_real(options):
        photos, groups, nearness, queries, known = open_real(options, n)
        masks = {
            one.name: one.mask(groups, seed=options.seed, nearness=nearness) for one in REAL_FILTERS
        }
    else:
        photos, scenes = photos_of(options, n)
        images = Scenes(dim_of(options), seed=options.seed).queries(options.queries)
        queries = {"image": images, "text": text_like(images, seed=options.seed + 1)}
        masks = {one.name: one.mask(scenes, seed=options.seed) for one in FILTERS}
    path = truth_path(n, options)
    if not path.exists():
        _write_truth(path, photos, queries, masks)
    with np.load(path) as file:
        true = {
            kind: {
                name: Neighbors(file[f"{kind} {name} rows"], file[f"{kind} {name} scores"])
                for name in masks
            }
            for kind in KINDS
        }
    return Workload(photos, queries, masks, true, known)


def make_truth(n: int, largest: int, options: argparse.Namespace) -> None:
    """Make the vectors up to the largest size and the true answers at size n, where missing."""
    if not is_real(options):
        photos_of(options, largest)
    make_workload(n, options)


def truth_path(n: int, options: argparse.Namespace) -> Path:
    """Return where the true answers at one size lie."""
    folder: Path = options.cache
    return folder / f"truth-{n}-{options.dataset}-{options.seed}-{options.queries}.npz"


def _write_truth(
    path: Path,
    photos: Embeddings,
    queries: Mapping[str, Embeddings],
    masks: Mapping[str, NDArray[np.bool_] | None],
) -> None:
    both = np.concatenate([queries[kind] for kind in KINDS])
    values: dict[str, Any] = {}
    for name, neighbors in true_neighbors(photos, both, K, masks=masks).items():
        parts = (np.split(part, len(KINDS)) for part in (neighbors.rows, neighbors.scores))
        for kind, rows, scores in zip(KINDS, *parts, strict=True):
            values[f"{kind} {name} rows"], values[f"{kind} {name} scores"] = rows, scores
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, **values)
    partial.replace(path)
