"""The image tower that ships: tuned on captioned photos, in 8 bits, and what it says of them."""

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
from searchlab.training.mini.heads import Floats
from searchlab.training.mini.photo_tower import (
    Early,
    PhotoReader,
    Readings,
    Tower,
    load_tower,
    reader_of,
)

SPARED = 600
"""Photos that settings were chosen on; the tower is not tuned on them."""
CALIBRATED = slice(SPARED, SPARED + 200)
"""Photos by which it is brought to 8 bits."""


class PhotoReadings(NamedTuple):
    """The tuned image tower, and what it says of the training photos.

    Attributes:
        tower: In 32 bits.
        read: The same in 8 bits, as a function.
        views: What that says: of the photos whole first, then of crops of them.
    """

    tower: Tower
    read: PhotoReader
    views: list[Readings]


def read_photos(
    packages: Path,
    cache: Path,
    photos: Mapping[str, Path],
    calibrating: Sequence[Image.Image],
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
            tower and what it says; what is there is not made again.
        photos: Files by photo id.
        calibrating: RGB photos by which the tower is brought to 8 bits.
        captions: Photo row -> rows of its captions in `vectors`.
        vectors: (n_captions, dim) teacher vectors, centred and of about unit length.
        crops: Random crops of each photo.
        seed: Of what is drawn.
        progress: Told of photos read and steps done.
    """
    tower = load_tower(packages)
    folder = cache / f"tower-{_recipe(photos, captions, vectors, crops=crops, seed=seed)}"
    folder.mkdir(parents=True, exist_ok=True)

    def in_8_bits(network: Tower | Early, outputs: Sequence[str], name: str) -> Path:
        path = folder / name
        if not path.exists():
            partial = path.with_name(f"partial-{name}")
            quantise.quantise(network, outputs, calibrating, partial)
            partial.replace(path)
        return path

    tuned = folder / "tower.pt"
    if not tuned.exists():
        plain = views.read_views(reader_of(tower), photos, folder / "plain", crops, progress)
        early = quantise.cells_by_file(in_8_bits(Early(tower), ["cells"], "early.onnx"))
        cells = views.read_cells(early, photos, folder / "early", crops, progress)
        own = {row: numbers for row, numbers in captions.items() if row >= SPARED}
        tune.tune(tower, cells, plain, own, vectors, seed=seed, progress=progress)
        file = io.BytesIO()
        torch.save(tower.state_dict(), file)
        write_atomically(tuned, file.getvalue())
    tower.load_state_dict(torch.load(tuned))
    read = quantise.reader_of_file(in_8_bits(tower, ["features", "logits"], "tower.onnx"))
    return PhotoReadings(
        tower, read, views.read_views(read, photos, folder / "tuned", crops, progress)
    )


def _recipe(
    photos: Mapping[str, Path],
    captions: Mapping[int, Sequence[int]],
    vectors: Floats,
    *,
    crops: int,
    seed: int,
) -> str:
    """12 hex digits over what a tuned tower and its readings depend on; photos go by their ids."""
    own = sorted((row, list(numbers)) for row, numbers in captions.items())
    versions = [torch.__version__, onnxruntime.__version__]
    inputs = [list(photos), own, crops, seed, materials.TOWER.sha256, versions]
    digest = hashlib.sha256(json.dumps(inputs).encode())
    digest.update(vectors.tobytes())
    for module in (framing, heads, photo_tower, quantise, tune, views):
        digest.update(Path(str(module.__file__)).read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()[:12]
