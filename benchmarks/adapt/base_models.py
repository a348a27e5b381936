"""Models that the benchmark adapts and migrates from: ConSE, and one of which vectors are left."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.errors import NotFoundError
from searchlab.files import sha256_of
from searchlab.models.openclip.torchvision_shim import import_torchvision
from searchlab.models.protocol import Embedder, Embeddings, unit_rows

SHARPNESS = 3
"""Power of the standard scores of the classes: classes with low scores then hardly count."""


class ConseEmbedder:
    """ConSE made from pinned packages; see `Embedder` for the contract.

    References:
        Norouzi et al., Zero-shot learning by convex combination of semantic embeddings, ICLR 2014.
    """

    name = "conse"
    reads = "image"
    input_size = 256
    dim = 384

    def __init__(self, packages: Path) -> None:
        import_torchvision()
        from open_clip import IMAGENET_CLASSNAMES

        from searchlab.training.mini.encoders import read_minilm
        from searchlab.training.mini.materials import ENGLISH_TEACHER, TOWER, locate
        from searchlab.training.mini.photo_tower import load_tower, make_reader

        weights = locate(ENGLISH_TEACHER, packages)
        self._read = make_reader(load_tower(packages))
        self._encoder = read_minilm(weights.parent)
        names = self._encoder.encode([f"a photo of a {name}" for name in IMAGENET_CLASSNAMES])
        self._mean = names.mean(axis=0)
        self._classes = names - self._mean
        described = f"{sha256_of(weights)}{sha256_of(locate(TOWER, packages))}{SHARPNESS}"
        self.model_id = f"conse-{hashlib.sha256(described.encode()).hexdigest()[:12]}"

    @property
    def parts(self) -> tuple[tuple[Embedder, float], ...]:
        """Itself: a plain model."""
        return ((self, 1.0),)

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed texts; (n_texts, 384)."""
        return unit_rows(self._encoder.encode(texts) - self._mean)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed pictures; (n_images, 384)."""
        from searchlab.training.mini.photo_tower import read_pictures

        return self.embed_logits(read_pictures(self._read, images)[1])

    def embed_logits(self, logits: NDArray[np.float32]) -> Embeddings:
        """Turn class logits, (n_images, 1000), into rows, (n_images, 384)."""
        scores = logits - logits.mean(axis=1, keepdims=True)
        scores /= scores.std(axis=1, keepdims=True)
        return unit_rows(np.maximum(scores, 0) ** SHARPNESS @ self._classes)


class StoredEmbedder:
    """A model of which only the vectors are left."""

    reads = "image"
    input_size = 1

    def __init__(self, model_id: str, dim: int) -> None:
        self.name = self.model_id = model_id
        self.dim = dim

    @property
    def parts(self) -> tuple[tuple[Embedder, float], ...]:
        """Itself: a plain model."""
        return ((self, 1.0),)

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Refuse to embed: a vector that is not stored cannot be made any more.

        Raises:
            NotFoundError: Always.
        """
        msg = f"the vectors of {self.name} must all be stored, got {len(texts)} that are not"
        raise NotFoundError(msg)

    encode_images = encode_texts
