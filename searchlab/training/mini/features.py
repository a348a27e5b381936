"""The image tower that ships, tuned on captioned photos and in 8 bits, and its readings of them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import onnxruntime
import torch
from PIL import Image

from searchlab.files import write_atomically
from searchlab.models.mini import framing
from searchlab.progress import Progress
from searchlab.training.mini import heads, materials, photo_tower, quantise, tune, views
from searchlab.training.mini import photos as photos_module
from searchlab.training.mini.heads import Floats
from searchlab.training.mini.photo_tower import (
    EarlyTower,
    PhotoReader,
    Readings,
    Tower,
    load_tower,
)
from searchlab.training.mini.photos import TrainingPhotos

CALIBRATED = 200
"""Number of photos, the first that are tuned on, from which the ranges of 8 bits are taken."""


class PhotoReadings(NamedTuple):
    """The tuned image tower, and its readings of the training photos.

    Attributes:
        tower: The tower in 32 bits.
        read: The same tower in 8 bits, as a function.
        views: Readings of `read`: of the whole photos first, then of crops of them.
    """

    tower: Tower
    read: PhotoReader
    views: list[Readings]


def read_photos(
    packages: Path,
    cache: Path,
    photos: TrainingPhotos,
    calibration_photos: Sequence[Image.Image],
    captions: Mapping[int, Sequence[int]],
    vectors: Floats,
    *,
    crops: int,
    seed: int,
    progress: Progress | None = None,
) -> PhotoReadings:
    """Tune the image tower, bring it to 8 bits, and let it read the photos.

    Args:
        packages: Where the tower's wheel is unpacked.
        cache: Holds a folder for each recipe (photos, captions, settings, code) with the tuned
            tower and its readings; what is there is not made again.
        photos: The photos.
        calibration_photos: RGB photos from which the ranges of the 8-bit tower are taken.
        captions: Photo row -> rows of its captions in `vectors`.
        vectors: (n_captions, dim) teacher vectors, centred and of about unit length.
        crops: Number of random crops of each photo.
        seed: Seed of everything that is drawn at random.
        progress: Shows photos read and steps done.
    """
    tower = load_tower(packages)
    folder = cache / f"tower-{_recipe(photos.files, captions, vectors, crops=crops, seed=seed)}"
    folder.mkdir(parents=True, exist_ok=True)

    def in_8_bits(network: Tower | EarlyTower, outputs: Sequence[str], name: str) -> Path:
        path = folder / name
        if not path.exists():
            partial = path.with_name(f"partial-{name}")
            quantise.quantise(network, outputs, calibration_photos, partial)
            partial.replace(path)
        return path

    def read(path: Path, name: str) -> list[Readings]:
        reader = quantise.open_reader(path, threads=0)
        return views.read_views(reader, photos.files, folder / name, crops, progress)

    tuned_file = folder / "tower.pt"
    if not tuned_file.exists():
        quantise.export(tower, ["features", "logits"], folder / "plain.onnx")
        plain = read(folder / "plain.onnx", "plain")
        early = quantise.open_cell_reader(
            in_8_bits(EarlyTower(tower), ["cells"], "early.onnx"), threads=0
        )
        cells = views.read_cells(early, photos.files, folder / "early", crops, progress)
        tuned_on = {row: own for row, own in captions.items() if row >= photos.n_spared}
        tune.tune(
            tower, cells, plain, tuned_on, vectors, photos.collections, seed=seed, progress=progress
        )
        file = io.BytesIO()
        torch.save(tower.state_dict(), file)
        write_atomically(tuned_file, file.getvalue())
    tower.load_state_dict(torch.load(tuned_file))
    shipped = in_8_bits(tower, ["features", "logits"], "tower.onnx")
    return PhotoReadings(tower, quantise.open_reader(shipped), read(shipped, "tuned"))


def _recipe(
    photos: Mapping[str, Path],
    captions: Mapping[int, Sequence[int]],
    vectors: Floats,
    *,
    crops: int,
    seed: int,
) -> str:
    """Hash what a tuned tower and its readings depend on, photos by their ids; 12 hex digits."""
    numbers_of = sorted((row, list(numbers)) for row, numbers in captions.items())
    versions = [torch.__version__, onnxruntime.__version__]
    inputs = [list(photos), numbers_of, crops, seed, materials.TOWER.sha256, versions]
    digest = hashlib.sha256(json.dumps(inputs).encode())
    digest.update(vectors.tobytes())
    for module in (framing, heads, photo_tower, photos_module, quantise, tune, views):
        digest.update(Path(str(module.__file__)).read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()[:12]
