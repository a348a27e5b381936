"""Vectors of a large collection, made block by block, with scenes of different size and shape.

A row is the sum of the direction that all pictures share, its topic, its scene, and a part of its
own: a few strong axes whose strength differs from scene to scene, and a little of every other axis.
So there are nearer and farther photos at every scale, also in small scenes. Each block is made
without the blocks before it, so a million rows need the memory of some thousand, and the first n
rows are a sample of the same collection for every n.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings, unit_rows
from searchlab.progress import Progress

N_SCENES = 2_000
_TOPICS = 100
_STRETCH = 16_384
_AXES = 64
# Squared lengths of the shared direction, the topic, the scene, a row's strong axes, and the rest.
_SHARED, _TOPIC, _SCENE, _OWN, _REST = 0.3, 0.2, 0.2, 0.2, 0.1


class Scenes:
    """A collection of vectors, of which any range of rows can be made on its own.

    Attributes:
        dim: Number of components of a row.
    """

    def __init__(self, dim: int, *, seed: int = 0, n_scenes: int = N_SCENES) -> None:
        """Draw the scenes.

        Args:
            dim: Number of components of a row.
            seed: Seed of all random choices.
            n_scenes: Number of scenes; their sizes differ by a factor of ten and more.
        """
        rng = np.random.default_rng([seed, 3])
        self.dim = dim
        self._seed = seed
        shared, topics, scenes = (
            unit_rows(rng.standard_normal((n, dim))) for n in (1, _TOPICS, n_scenes)
        )
        centres = np.sqrt(_SHARED) * shared + np.sqrt(_SCENE) * scenes
        centres += np.sqrt(_TOPIC) * topics[rng.integers(0, _TOPICS, n_scenes)]
        self._centres = centres.astype(np.float32)
        axes = min(_AXES, dim)
        self._axes = unit_rows(rng.standard_normal((axes, dim)))
        decay = 1 / np.arange(1, axes + 1)
        strengths = np.array([rng.permutation(decay) for _ in range(n_scenes)])
        strengths *= np.exp(0.3 * rng.standard_normal((n_scenes, 1)))
        self._strengths = (strengths * np.sqrt(_OWN / (decay**2).sum())).astype(np.float32)
        sizes = np.exp(0.8 * rng.standard_normal(n_scenes))
        self._up_to = np.cumsum(sizes / sizes.sum())

    def rows(self, start: int, stop: int) -> tuple[Embeddings, NDArray[np.int32]]:
        """Make the rows from `start` to before `stop`.

        Returns:
            (stop - start, dim) unit rows, and (stop - start,) the scene of each.
        """
        first, last = start // _STRETCH, -(-stop // _STRETCH)
        made = [self._draw(_STRETCH, stretch, 1) for stretch in range(first, last)]
        cut = slice(start - first * _STRETCH, stop - first * _STRETCH)
        vectors = np.concatenate([rows for rows, _ in made])[cut]
        return vectors, np.concatenate([scenes for _, scenes in made])[cut]

    def queries(self, n: int) -> Embeddings:
        """Make (n, dim) rows that are drawn as the photos are, but are not among them."""
        return self._draw(n, 0, 2)[0]

    def _draw(self, n: int, stretch: int, stream: int) -> tuple[Embeddings, NDArray[np.int32]]:
        rng = np.random.default_rng([self._seed, stream, stretch])
        scenes = np.searchsorted(self._up_to, rng.random(n)).astype(np.int32)
        scenes = np.minimum(scenes, len(self._centres) - 1)
        own = rng.standard_normal((n, len(self._axes)), dtype=np.float32) * self._strengths[scenes]
        rest = rng.standard_normal((n, self.dim), dtype=np.float32)
        rest *= np.float32(np.sqrt(_REST / self.dim))
        rest += self._centres[scenes]
        rest += own @ self._axes
        rest /= np.sqrt(np.einsum("ij,ij->i", rest, rest))[:, np.newaxis]
        return rest, scenes


class StoredScenes(NamedTuple):
    """Rows of a collection that lie on disk.

    Attributes:
        photos: (n, dim) unit rows, memory-mapped.
        scenes: (n,) int32, the scene of each, memory-mapped.
    """

    photos: Embeddings
    scenes: NDArray[np.int32]


def open_scenes(
    folder: Path, n: int, dim: int, *, seed: int = 0, progress: Progress | None = None
) -> StoredScenes:
    """Open the first n rows of a collection, and make them first if they are not on disk yet.

    Args:
        folder: Folder with a file of vectors and one of scenes for each (n, dim, seed); a file of
            more rows is used for fewer.
        n: Number of rows, at least 1.
        dim: Number of components of a row.
        seed: Seed of all random choices.
        progress: Shows the making.

    Raises:
        InputError: n is below 1.
    """
    if n < 1:
        msg = f"n must be at least 1, got {n}"
        raise InputError(msg)
    size = min((size for size in _list_sizes(folder, dim, seed) if size >= n), default=None)
    if size is None:
        size = n
        _make(folder, n, dim, seed, progress or Progress())
    photos, scenes = (np.load(path, mmap_mode="r") for path in _paths(folder, size, dim, seed))
    return StoredScenes(photos[:n], scenes[:n])


def _paths(folder: Path, n: int, dim: int, seed: int) -> tuple[Path, Path]:
    name = f"scenes-{n}-{dim}-{seed}"
    return folder / f"{name}.npy", folder / f"{name}.scenes.npy"


def _list_sizes(folder: Path, dim: int, seed: int) -> list[int]:
    files = folder.glob(f"scenes-*-{dim}-{seed}.scenes.npy")
    return [int(path.name.split("-")[1]) for path in files]


def _make(folder: Path, n: int, dim: int, seed: int, progress: Progress) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    paths = _paths(folder, n, dim, seed)
    partial = [path.with_suffix(".partial") for path in paths]
    made = Scenes(dim, seed=seed)
    kinds: tuple[tuple[type[np.generic], tuple[int, ...]], ...]
    kinds = ((np.float32, (n, dim)), (np.int32, (n,)))
    files = [
        np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        for path, (dtype, shape) in zip(partial, kinds, strict=True)
    ]
    with progress.step(f"making {n:,} x {dim} vectors", n, unit="vectors") as step:
        for start in range(0, n, _STRETCH):
            stop = min(start + _STRETCH, n)
            for file, values in zip(files, made.rows(start, stop), strict=True):
                file[start:stop] = values
            step.advance(stop - start)
    for file in files:
        file.flush()
    # The scenes last: `_list_sizes` takes their file as the sign that the vectors are complete.
    for old, new in zip(partial, paths, strict=True):
        old.replace(new)
