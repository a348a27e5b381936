"""Pictures to embed: the bundled photos, and drawn ones of the size that photos have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from searchlab.evaluation.datasets import load_dataset

_OCTAVES = (3, 9, 27, 81, 243)


def list_bundled(n: int) -> list[Path]:
    """List n bundled photos, spread over all of them; their long side has at most 320 pixels."""
    files = sorted(Path(str(record["file"])) for record in load_dataset("demo").records)
    return files[:: max(1, len(files) // n)][:n]


def draw_pictures(folder: Path, n: int, *, width: int, height: int, seed: int) -> list[Path]:
    """Draw JPEGs with detail at every scale, as photos have, so that files are as large as photos'.

    Args:
        folder: Where the files are written.
        n: How many.
        width: Width in pixels.
        height: Height in pixels.
        seed: The same seed draws the same pictures.
    """
    rng = np.random.default_rng(seed)
    files = []
    for number in range(n):
        picture = np.full((height, width, 3), 128.0, dtype=np.float32)
        for cells in _OCTAVES:
            shape = max(2, cells * height // width), cells, 3
            coarse = rng.uniform(0, 255, shape).astype(np.uint8)
            smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
            # Half the strength at three times the detail, about as in natural scenes.
            picture += (np.asarray(smooth, dtype=np.float32) - 128) * (2 / cells) ** 0.63
        picture += rng.normal(0, 5, picture.shape).astype(np.float32)
        file = folder / f"{number}.jpg"
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(file, quality=88)
        files.append(file)
    return files
