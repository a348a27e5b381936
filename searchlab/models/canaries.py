"""Pinned inputs with known embeddings, so that a wrong tower is an error and not a worse result.

A swapped activation, another resampling filter or a tokenizer of the next version still yields
plausible vectors. A canary is one input whose vector was recorded when the model was made; a
loaded tower that no longer reproduces it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from searchlab.errors import MismatchError
from searchlab.models.protocol import Embeddings


@dataclass(frozen=True)
class Canary:
    """One pinned input and the head of its embedding.

    Attributes:
        probe: The text, or for an image tower the seed of `canary_image`.
        expected: First components of the unit row that the tower must return.
    """

    probe: str | int
    expected: tuple[float, ...]


def canary_image(seed: int, *, size: int = 320) -> Image.Image:
    """Draw a smooth coloured picture from a seed, (size, size) RGB, equal on every platform."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:size, 0:size] / size
    channels = []
    for _ in range(3):
        a, b, c, d = rng.uniform(1, 6, 4)
        channels.append(np.sin(a * rows * 3 + b) * np.cos(c * columns * 3 + d))
    pixels = np.rint(127.5 + 127.5 * np.stack(channels, axis=-1))
    return Image.fromarray(pixels.astype(np.uint8))


def check_canaries(
    tower: str, canaries: Sequence[Canary], embeddings: Embeddings, *, tolerance: float = 1e-2
) -> None:
    """Refuse a tower whose embeddings of its canaries are not the recorded ones.

    Args:
        tower: Name used in the message.
        canaries: Recorded inputs.
        embeddings: (n_canaries, dim) of the tower just loaded.
        tolerance: Largest distance allowed between the recorded and the found components.

    Raises:
        MismatchError: A canary moved.
    """
    for canary, row in zip(canaries, embeddings, strict=True):
        expected = np.asarray(canary.expected, dtype=np.float64)
        moved = float(np.linalg.norm(expected - row[: len(expected)]))
        if not moved <= tolerance:
            msg = (
                f"{tower} must embed its canary {canary.probe!r} as recorded, "
                f"got a row {moved:.4f} away (allowed {tolerance:g}); "
                "weights, preprocessing or tokenizer are not those it was made with, reinstall them"
            )
            raise MismatchError(msg)
