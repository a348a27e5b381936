"""A library that changed models without embedding its photos again: `searchlab models migrate`.

The stored vectors of the old model were mapped into the space of the new one; queries, and photos
that come later, are embedded by the new one itself. A mapped vector is not the vector that the new
model gives, so this is a model with an id of its own.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.config.calibration import UNCALIBRATED, Calibration
from searchlab.errors import InputError, MismatchError
from searchlab.models.adapted import damaged_file, derived_id, read_model_file
from searchlab.models.protocol import (
    Embedder,
    Embeddings,
    Tower,
    is_reader,
    towers_of,
    unit_rows,
)
from searchlab.models.registry import load_model
from searchlab.models.remembered import named_by

MAP_FILE: Final = "map.npz"


@dataclass(frozen=True, eq=False)
class LinearMap:
    """From rows of one model to rows of another: x -> unit(x A + b).

    Attributes:
        linear: (old_dim, new_dim) float32.
        bias: (new_dim,) float32.
    """

    linear: NDArray[np.float32]
    bias: NDArray[np.float32]

    def __call__(self, rows: Embeddings) -> Embeddings:
        """Map (n, old_dim) rows to (n, new_dim) unit rows; a zero row stays zero."""
        mapped = unit_rows(rows @ self.linear + self.bias)
        mapped[~rows.any(axis=1)] = 0
        return mapped


def map_id(old_id: str, new_id: str, linear_map: LinearMap) -> str:
    """Return `migrated-`, the new model's short name, and a hash of both ids and the map.

    The hash is the first 12 hex digits of a SHA-256.
    """
    return derived_id("migrated", new_id, [linear_map], hashed=f"{old_id}\n{new_id}")


class MigratedEmbedder(Embedder):
    """The new model, in a library whose older photos have mapped vectors.

    Args:
        name: What `load_model` reads.
        base: The new model.
        old_id: `model_id` of the old one.
        linear_map: From the old model's rows to the new one's.
        calibration: Fitted for mapped vectors.

    Attributes:
        base: The new model.
    """

    reads: Literal["image", "text"] = "image"
    shared = False  # cheap to make, and its folder may be written again

    def __init__(
        self,
        name: str,
        base: Embedder,
        old_id: str,
        linear_map: LinearMap,
        *,
        calibration: Calibration = UNCALIBRATED,
    ) -> None:
        self.name = name
        self.base = base
        self.old_id = old_id
        self.linear_map = linear_map
        self.calibration = calibration
        self.dim = base.dim
        self.input_size = base.input_size
        self.model_id = map_id(old_id, base.model_id, linear_map)
        if hasattr(base, "sights"):
            self.sights = base.sights
        if is_reader(base):  # whose scores depend on how it reads the words
            self.at_large, self.read_text = base.at_large, base.read_text

    @property
    def towers(self) -> frozenset[Tower]:
        """What the model below can embed."""
        return towers_of(self.base)

    def fingerprints(self) -> dict[str, str]:
        """Hash the map, and the old model that it starts from, with the weights of the new one."""
        below = self.base.fingerprints()
        return below | {"weights": map_id(self.old_id, below["weights"], self.linear_map)[-12:]}

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries as the new model does; (n_texts, dim)."""
        return self.base.encode_texts(texts)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed pictures as the new model does; (n_images, dim)."""
        return self.base.encode_images(images)


def load_migrated(folder: str) -> MigratedEmbedder:
    """Load what `searchlab models migrate` wrote.

    Args:
        folder: Path of the model.

    Raises:
        NotFoundError: There is no such folder, or the new model cannot be had.
        DataError: A file of it is damaged.
        MismatchError: The new model is another one now.
    """
    if not folder:
        msg = "a migrated model must be named by its folder, got 'migrated:'"
        raise InputError(msg)
    place = Path(folder).expanduser().resolve()
    values = read_model_file(place, "migrated", "make it with `searchlab models migrate`")
    path = place / MAP_FILE
    try:
        spec, new_id, old_id = (str(values[key]) for key in ("new", "new_model_id", "old_model_id"))
        calibration = Calibration.from_dict(values["calibration"])
        recorded = str(values["model_id"])
        with np.load(io.BytesIO(path.read_bytes())) as arrays:
            linear_map = LinearMap(arrays["linear"], arrays["bias"])
    except Exception as error:  # the errors of numpy and zipfile have no common base class
        raise damaged_file(place, error) from error
    with named_by(place):
        base = load_model(spec)
    if base.model_id != new_id:
        msg = (
            f"{place} must stand on the model that it was mapped to, {new_id}, got "
            f"{base.model_id}; index again with `--model {spec}`, or migrate again"
        )
        raise MismatchError(msg)
    model = MigratedEmbedder(f"migrated:{place}", base, old_id, linear_map, calibration=calibration)
    if model.model_id != recorded:
        raise damaged_file(path, ValueError(f"the map of {model.model_id}, not of {recorded}"))
    return model
