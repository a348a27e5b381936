"""The image tower that ships: tuned on captioned photos, in 8 bits, and what it says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from searchlab.training.heads import Floats
from searchlab.training.photo_tower import Early, Readings, Tower, load_tower, open_rgb, said_by
from searchlab.training.quantise import cells_by_file, quantise, said_by_file
from searchlab.training.tune import tune
from searchlab.training.views import read_cells, read_views

SPARED = 600
"""Photos that settings were chosen on; the tower is not tuned on them."""
CALIBRATED = slice(SPARED, SPARED + 200)
"""Photos by which it is brought to 8 bits."""


def see(
    packages: Path,
    cache: Path,
    photos: Mapping[str, Path],
    captions: Mapping[int, Sequence[int]],
    vectors: Floats,
    *,
    crops: int,
    seed: int,
) -> tuple[Tower, list[Readings]]:
    """Tune the image tower; what it says of the photos once it is in 8 bits.

    Args:
        packages: Where the tower's wheel is unpacked.
        cache: Folder of the tuned tower and of what it says; what is there is not made again.
        photos: Files by photo id.
        captions: Photo row -> rows of its captions in `vectors`.
        vectors: (n_captions, dim) teacher vectors, centred and of about unit length.
        crops: Random crops of each photo.
        seed: Of what is drawn.

    Returns:
        The tower in 32 bits, and its readings in 8: the photos whole first, then crops of them.
    """
    tower = load_tower(packages)
    calibrating = open_rgb(list(photos.values())[CALIBRATED])
    tuned = cache / "tower.pt"
    if not tuned.exists():
        plain = read_views(said_by(tower), photos, cache / "plain", crops)
        early = cache / "early.onnx"
        if not early.exists():
            quantise(Early(tower), ["cells"], calibrating, early)
        cells = read_cells(cells_by_file(early), photos, cache / "early", crops)
        own = {row: numbers for row, numbers in captions.items() if row >= SPARED}
        tune(tower, cells, plain, own, vectors, seed=seed)
        torch.save(tower.state_dict(), tuned)
    tower.load_state_dict(torch.load(tuned))
    path = cache / "tower.onnx"
    if not path.exists():
        quantise(tower, ["features", "logits"], calibrating, path)
    return tower, read_views(said_by_file(path), photos, cache / "tuned", crops)
