"""Pinned inputs with known embeddings, so that a wrong tower is an error and not a worse result.

A swapped activation, another resampling filter or a tokenizer of the next version still yields
plausible vectors. A canary is one input whose vector was recorded when the model was made; a
loaded tower that no longer reproduces it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image

from searchlab.errors import MismatchError
from searchlab.models.protocol import Embedder, Embeddings, towers_of


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
        tolerance: Largest Euclidean distance allowed between recorded and new components.

    Raises:
        MismatchError: A canary moved.
    """
    for canary, row in zip(canaries, embeddings, strict=True):
        expected = np.asarray(canary.expected, dtype=np.float64)
        distance = float(np.linalg.norm(expected - row[: len(expected)]))
        if not distance <= tolerance:
            msg = (
                f"{tower} must embed its canary {canary.probe!r} as recorded, "
                f"got a row {distance:.4f} away (allowed {tolerance:g}); "
                "weights, preprocessing or tokenizer are not those it was made with, reinstall them"
            )
            raise MismatchError(msg)


_TEXT = "a photo of a red boat on a quiet lake"
_SEED = 11
_SAMPLED = 32  # components of a row that are recorded, spread over the whole row


class CanaryCheck:
    """Embeddings of two probes, recorded when a library was built and compared when it is queried.

    A checkpoint of the user's own brings no canaries, so the library that was built with it records
    some: a model that reads the same weights in another way is refused at its first query.
    """

    def __init__(self, recorded: Mapping[str, Sequence[float]]) -> None:
        self._unchecked = {kind: tuple(values) for kind, values in recorded.items()}

    @staticmethod
    def record(model: Embedder) -> dict[str, list[float]]:
        """Embed the probes; components rounded to 5 digits, fit for JSON."""
        return {
            kind: np.round(_sample(model, kind), 5).tolist()
            for kind in sorted(towers_of(model), reverse=True)
        }

    def check(self, model: Embedder, kind: Literal["text", "image"]) -> None:
        """Compare a tower with its record, the first time it is used.

        Raises:
            MismatchError: It no longer embeds its probe as it did when the library was built.
        """
        expected = self._unchecked.get(kind)
        if expected is None:
            return
        probe = _TEXT if kind == "text" else _SEED
        row = _sample(model, kind)[np.newaxis].astype(np.float32)
        check_canaries(f"the {kind} tower of {model.name}", [Canary(probe, expected)], row)
        self._unchecked.pop(kind, None)


def _sample(model: Embedder, kind: Literal["text", "image"]) -> Embeddings:
    if kind == "text":
        row = model.encode_texts([_TEXT])[0]
    else:
        row = model.encode_images([canary_image(_SEED)])[0]
    return np.asarray(row[:: max(1, len(row) // _SAMPLED)])
