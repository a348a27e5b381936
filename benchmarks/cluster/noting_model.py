"""A model for workers on other nodes: it embeds mean colours, and writes down when it begins."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from searchlab.models.protocol import Embedder, Embeddings, unit_rows

SPEC = "benchmarks.cluster.noting_model:Noting"
BLUE = 7
"""How blue the pictures are that are noted, 0 to 255; others are probes of the model."""
_TAKES_S = 0.8  # for a batch, so that a kill falls into one


class Noting(Embedder):
    """Notes each picture in a file of its process.

    Args:
        rest: Folder of these files.
    """

    dim = 3
    reads = "image"
    input_size = 8

    def __init__(self, rest: str) -> None:
        self._folder = Path(rest)
        self.name = f"{SPEC}:{rest}"
        self.model_id = "noting-000000000001"

    def fingerprints(self) -> dict[str, str]:
        """Return what the model is made of, which is nothing."""
        return dict.fromkeys(("weights", "preprocessing", "tokenizer"), "0" * 12)

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed texts by their lengths."""
        return unit_rows(np.array([[len(text), 1, 1] for text in texts], dtype=float))

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed pictures by their mean colours, and note each of them."""
        colours = np.array([np.asarray(image).reshape(-1, 3).mean(axis=0) for image in images])
        rounded = colours.round().astype(int).tolist()
        if all(blue == BLUE for _, _, blue in rounded):
            now = time.monotonic()
            with (self._folder / f"{os.getpid()}.seen").open("a") as file:
                file.writelines(f"{red} {now}\n" for red, _, _ in rounded)
            time.sleep(_TAKES_S)
        return unit_rows(colours + 1)


def read_notes(folder: Path) -> dict[int, list[float]]:
    """Read when each picture was embedded, by how red it is, and forget it."""
    notes: dict[int, list[float]] = {}
    for file in folder.glob("*.seen"):
        for line in file.read_text().splitlines():
            red, at = line.split()
            notes.setdefault(int(red), []).append(float(at))
        file.unlink()
    return notes
