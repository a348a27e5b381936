"""The training photos as the tower reads them, whole and in random crops, each view once."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from searchlab.errors import InputError
from searchlab.files import write_atomically
from searchlab.models.mini import framing
from searchlab.progress import Progress
from searchlab.training.mini.heads import Floats
from searchlab.training.mini.photo_tower import BATCH, PhotoReader, Readings, open_rgb

OPENED = 64  # Photos held in memory at a time.
SMALLEST = 0.4  # Least share of a photo's area that a crop shows.
CELLS = 64  # Cells of the largest frame; a cell is 32 x 32 pixels.


@dataclass
class Cells:
    """Outputs of the tower's early part for photos, kept so that its late part can be tuned.

    Attributes:
        rows: (n, 64, 208) cells row by row, filled up with zeros; float16.
        sizes: (n, 2) rows and columns of each photo's cells.
    """

    rows: NDArray[np.float16]
    sizes: NDArray[np.uint8]

    def groups(self, photos: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """Yield the cells of some photos, those of one size together.

        Args:
            photos: Rows of the photos.

        Yields:
            Positions in `photos`, and cells (n, 208, height, width).
        """
        sizes = self.sizes[photos]
        for height, width in np.unique(sizes, axis=0).tolist():
            members = np.flatnonzero((sizes == (height, width)).all(axis=1))
            rows = self.rows[photos[members], : height * width].astype(np.float32)
            cells = torch.from_numpy(rows).reshape(len(members), height, width, -1).movedim(3, 1)
            yield members, cells.contiguous(memory_format=torch.channels_last)


def read_views(
    read: PhotoReader,
    photos: Mapping[str, Path],
    cache: Path,
    crops: int,
    progress: Progress | None = None,
) -> list[Readings]:
    """Read photos by a tower: whole first, then in random crops.

    Args:
        read: What `make_reader` or `quantise.open_reader` gives.
        photos: Files by photo id.
        cache: Folder that keeps the readings; made if absent.
        crops: Number of random crops of each photo.
        progress: Shows how many photos were read.

    Raises:
        InputError: The folder holds readings of other photos.
    """

    def columns(framed: Iterable[tuple[list[int], Floats]]) -> dict[str, NDArray[Any]]:
        features = np.empty((len(photos), 2560), dtype=np.float16)
        logits = np.empty((len(photos), 1000), dtype=np.float16)
        for rows, pixels in framed:
            features[rows], logits[rows] = read(pixels)
        return {"features": features, "logits": logits}

    views = _read_or_compute("view", columns, photos, cache, crops, progress or Progress())
    return [
        Readings(list(photos), *(view[name].astype(np.float32) for name in ("features", "logits")))
        for view in views
    ]


def read_cells(
    early: Callable[[Floats], Floats],
    photos: Mapping[str, Path],
    cache: Path,
    crops: int,
    progress: Progress | None = None,
) -> list[Cells]:
    """Read the same views as `read_views` by the tower's early part.

    Args:
        early: What `quantise.open_cell_reader` gives.
        photos: Files by photo id.
        cache: Folder that keeps the cells; made if absent.
        crops: Number of random crops of each photo.
        progress: Shows how many photos were read.

    Raises:
        InputError: The folder holds cells of other photos.
    """

    def columns(framed: Iterable[tuple[list[int], Floats]]) -> dict[str, NDArray[Any]]:
        cell_rows = np.zeros((len(photos), CELLS, 208), dtype=np.float16)
        sizes = np.zeros((len(photos), 2), dtype=np.uint8)
        for rows, pixels in framed:
            cells = early(pixels)
            sizes[rows] = cells.shape[2:]
            flat = cells.reshape(*cells.shape[:2], -1).transpose(0, 2, 1)
            cell_rows[rows, : flat.shape[1]] = flat
        return {"rows": cell_rows, "sizes": sizes}

    views = _read_or_compute("cells", columns, photos, cache, crops, progress or Progress())
    return [Cells(view["rows"], view["sizes"]) for view in views]


def _read_or_compute(
    name: str,
    columns: Callable[[Iterable[tuple[list[int], Floats]]], dict[str, NDArray[Any]]],
    photos: Mapping[str, Path],
    cache: Path,
    crops: int,
    progress: Progress,
) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Yield the arrays of each view, from its file if it was computed before."""
    cache.mkdir(parents=True, exist_ok=True)
    for view in range(crops + 1):
        path = cache / f"{name}_{view}.npz"
        if not path.exists():
            title = f"{cache.name}: {name} {view} of {crops}"
            with progress.step(title, len(photos), unit="photos") as step:
                arrays = columns(_frame(photos, view, step.advance))
            file = io.BytesIO()
            np.savez(file, allow_pickle=False, ids=np.array(list(photos)), **arrays)
            write_atomically(path, file.getvalue())
        stored = np.load(path)
        if stored["ids"].tolist() != list(photos):
            msg = f"{path} must hold these photos, got others; give them another cache folder"
            raise InputError(msg)
        yield stored


def crop(image: Image.Image, rng: np.random.Generator) -> Floats:
    """Cut a random part from an RGB picture, maybe mirrored, in slightly other colours.

    Returns:
        Framed pixels, (3, height, width) in -1..1.
    """
    width, height = image.size
    left, top, right, bottom = _random_box(rng, width, height)
    if rng.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        left, right = width - right, width - left
    size, (inner_left, inner_top, inner_right, inner_bottom) = framing.frame(
        right - left, bottom - top
    )
    box = (left + inner_left, top + inner_top, left + inner_right, top + inner_bottom)
    pixels = framing.pixels_of(image, size, box)
    contrast = np.float32(np.exp(rng.uniform(-0.25, 0.25)))
    brightness = np.float32(rng.uniform(-0.15, 0.15))
    tint = 1 + rng.uniform(-0.06, 0.06, (3, 1, 1)).astype(np.float32)
    tinted: Floats = np.clip((pixels * contrast + brightness) * tint, -1, 1)
    return tinted


def _random_box(rng: np.random.Generator, width: int, height: int) -> framing.Box:
    for _ in range(10):
        area = width * height * rng.uniform(SMALLEST, 1)
        aspect = width / height * np.exp(rng.uniform(-0.25, 0.25))
        across, down = float((area * aspect) ** 0.5), float((area / aspect) ** 0.5)
        if across <= width and down <= height:
            left, top = rng.uniform(0, width - across), rng.uniform(0, height - down)
            return left, top, left + across, top + down
    return 0, 0, width, height


def _frame(
    photos: Mapping[str, Path], view: int, advance: Callable[[int], None]
) -> Iterator[tuple[list[int], Floats]]:
    """Yield rows and framed pixels of one view, batch by batch; view 0 is the whole photos."""
    paths = list(photos.values())
    rng = np.random.default_rng(view)
    for start in range(0, len(paths), OPENED):
        pictures = open_rgb(paths[start : start + OPENED])
        batches: Any
        if view == 0:
            batches = framing.batches(pictures, BATCH)
        else:
            pixels = [crop(picture, rng) for picture in pictures]
            batches = _stack(pixels)
        for members, batch in batches:
            yield [start + member for member in members], batch
            advance(len(members))


def _stack(pixels: list[Floats]) -> Iterator[tuple[list[int], Floats]]:
    for size in framing.SIZES:
        members = [number for number, framed in enumerate(pixels) if framed.shape[1:] == size]
        for start in range(0, len(members), BATCH):
            batch = members[start : start + BATCH]
            yield batch, np.stack([pixels[number] for number in batch])
