"""Several models as one: their vectors side by side, weighted.

A row is the concatenation of sqrt(weight) x unit row of each part, so the dot product of two rows
is the weighted sum of the parts' cosines. A part that has nothing to say about an input gives a
zero row; the others then share its weight, so that every row which says anything has unit length.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from PIL import Image

from searchlab.errors import InputError, MismatchError
from searchlab.models.protocol import (
    Embedder,
    Embeddings,
    Tower,
    rgb_images,
    short_hash,
    towers_of,
    unit_rows,
)
from searchlab.models.registry import load_model


def parse_weights(text: str) -> list[tuple[str, float]]:
    """Read `"mini=0.7,captions=0.3"`; a part may itself hold `=`, `:` and `/`, but no comma.

    Raises:
        InputError: A part without a weight, or a weight that is no number.
    """
    parts = []
    for item in text.split(","):
        part, equals, number = item.strip().rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not (equals and part and math.isfinite(weight)):
            msg = (
                "a hybrid must be written as parts with weights, like "
                f"'hybrid:mini=0.7,captions=0.3', got {item!r} in {'hybrid:' + text!r}"
            )
            raise InputError(msg)
        parts.append((part, weight))
    return parts


def _normalise(parts: Sequence[tuple[Embedder, float]]) -> tuple[tuple[Embedder, float], ...]:
    total = math.fsum(weight for _, weight in parts)
    # A name's rounded weights may miss 1 by a digit; dividing again would rename the model.
    divisor = 1.0 if abs(total - 1) < 1e-5 else total
    rounded = [(model, float(f"{weight / divisor:.6g}")) for model, weight in parts]
    return tuple(sorted(rounded, key=lambda part: part[0].name))


class HybridEmbedder(Embedder):
    """A weighted fusion of plain models.

    The name is canonical, parts sorted and weights summing to 1: equal hybrids have equal names.

    Args:
        parts: Plain models with positive weights, in any order and scale.

    Raises:
        InputError: No part, a part twice, a hybrid as a part, or a weight that is not positive.

    Attributes:
        reads: `"image"` if any part reads pixels. A library then gives each part pixels or
            descriptions, by the part's own `reads`; see `join`.
    """

    shared = False  # made of models that are shared themselves

    def __init__(self, parts: Sequence[tuple[Embedder, float]]) -> None:
        names = [model.name for model, _ in parts]
        if not parts or len(set(names)) < len(names):
            msg = f"a hybrid must have at least one part and each only once, got {names}"
            raise InputError(msg)
        for model, weight in parts:
            if len(model.parts) != 1 or model.parts[0][0] is not model:
                msg = (
                    f"a part of a hybrid must be a plain model, got {model.name!r}; list its parts"
                )
                raise InputError(msg)
            if not (math.isfinite(weight) and weight > 0):
                msg = f"a weight of a hybrid must be positive, got {weight!r} for {model.name!r}"
                raise InputError(msg)
        self._parts = _normalise(parts)
        listed = ",".join(f"{model.name}={weight:.6g}" for model, weight in self._parts)
        identity = ",".join(f"{model.model_id}={weight:.6g}" for model, weight in self._parts)
        self.name = f"hybrid:{listed}"
        self.dim = sum(model.dim for model, _ in self._parts)
        self.model_id = f"hybrid-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
        pixel_models = [model for model, _ in self._parts if model.reads == "image"]
        self.reads: Literal["image", "text"] = "image" if pixel_models else "text"
        self.input_size = max((model.input_size for model in pixel_models), default=0)

    @property
    def parts(self) -> tuple[tuple[Embedder, float], ...]:
        """The plain models and their weights, which sum to 1, sorted by name."""
        return self._parts

    @property
    def towers(self) -> frozenset[Tower]:
        """Texts if every part embeds them; pictures if every part that reads pixels does."""
        towers: set[Tower] = set()
        if all("text" in towers_of(model) for model, _ in self._parts):
            towers.add("text")
        pixel_models = [model for model, _ in self._parts if model.reads == "image"]
        if pixel_models and all("image" in towers_of(model) for model in pixel_models):
            towers.add("image")
        return frozenset(towers)

    def fingerprints(self) -> dict[str, str]:
        """Hash the fingerprints of the parts together, with their weights."""
        parts = [(model.fingerprints(), f"{weight:.6g}") for model, weight in self._parts]
        return {
            name: short_hash(",".join(f"{hashes[name]}={weight}" for hashes, weight in parts))
            for name in ("weights", "preprocessing", "tokenizer")
        }

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries by every part; (n_texts, dim)."""
        return self.join([model.encode_texts(texts) for model, _ in self._parts])

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed pictures by the parts that read pixels; (n_images, dim).

        A part that reads descriptions contributes zeros, for a bare picture has none.

        Raises:
            InputError: No part reads pixels.
        """
        if self.reads == "text":
            msg = f"{self.name} must be given texts, it reads no pixels; add a part such as 'mini'"
            raise InputError(msg)
        pictures = rgb_images(images)
        return self.join(
            [
                model.encode_images(pictures)
                if model.reads == "image"
                else np.zeros((len(pictures), model.dim), dtype=np.float32)
                for model, _ in self._parts
            ]
        )

    def join(self, rows: Sequence[Embeddings]) -> Embeddings:
        """Compose rows of the hybrid from rows of its parts, such as a library has cached.

        Args:
            rows: For each of `parts`, in that order, (n, part.dim) unit or zero rows.

        Returns:
            (n, dim); a row is zero only where every part's row is.

        Raises:
            MismatchError: The arrays do not fit the parts or each other.
        """
        expected = [(len(rows[0]) if rows else 0, model.dim) for model, _ in self._parts]
        shapes = [np.shape(part) for part in rows]
        if shapes != expected:
            msg = f"rows of the parts must have shapes {expected}, got {shapes}"
            raise MismatchError(msg)
        weighted = [
            math.sqrt(weight) * np.asarray(part, dtype=np.float64)
            for part, (_, weight) in zip(rows, self._parts, strict=True)
        ]
        return unit_rows(np.concatenate(weighted, axis=1))


def load_hybrid(weights: str) -> HybridEmbedder:
    """Load several models as one, such as `"mini=0.7,captions=0.3"`; see `HybridEmbedder`."""
    return HybridEmbedder([(load_model(spec), weight) for spec, weight in parse_weights(weights)])
