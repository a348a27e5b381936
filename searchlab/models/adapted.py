"""A model with two small heads, trained on your captioned photos by `searchlab models adapt`.

A head is a residual linear map, x -> unit(x + x A + b), one for the rows of photos and one for
those of texts; the model below stays as it is. A folder holds the two heads, canaries, the
calibration that was fitted beside them and a card that says what they were trained on.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.config.calibration import UNCALIBRATED, Calibration
from searchlab.errors import DataError, InputError, MismatchError, NotFoundError
from searchlab.models.canaries import Canary, canary_image, check_canaries
from searchlab.models.protocol import Embedder, Embeddings, Tower, towers_of, unit_rows
from searchlab.models.registry import load_model
from searchlab.models.remembered import named_by
from searchlab.photos.descriptions import Sight

MODEL_FILE: Final = "model.json"
HEADS_FILE: Final = "heads.npz"
CARD_FILE: Final = "MODEL_CARD.md"
FORMAT: Final = 1
CANARY_TEXTS: Final = ("a photo of a red boat on a quiet lake", "ein Hund", "两个孩子在海滩上玩")
CANARY_IMAGES: Final = (11, 12)


class AffineMap(Protocol):
    """A map of a model's rows: a matrix and an offset, both float32."""

    @property
    def linear(self) -> NDArray[np.float32]:
        """The matrix."""

    @property
    def bias(self) -> NDArray[np.float32]:
        """The offset."""


@dataclass(frozen=True, eq=False)
class Head:
    """A residual linear map of unit rows.

    Attributes:
        linear: (dim, dim) float32; all zeros change nothing.
        bias: (dim,) float32.
    """

    linear: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def identity(cls, dim: int) -> Head:
        """Return the head that leaves rows as they are."""
        return cls(np.zeros((dim, dim), dtype=np.float32), np.zeros(dim, dtype=np.float32))

    def scale(self, share: float) -> Head:
        """Return a head that goes a share of the way, 0 for none of it."""
        factor = np.float32(share)
        return Head(self.linear * factor, self.bias * factor)

    def __call__(self, rows: Embeddings) -> Embeddings:
        """Map (n, dim) rows; a zero row, which says nothing, stays zero."""
        mapped = unit_rows(rows + rows @ self.linear + self.bias)
        mapped[~rows.any(axis=1)] = 0
        return mapped

    def invert(self, mapped: Embeddings) -> Embeddings:
        """Return the unit rows that this head maps to the given ones.

        Raises:
            numpy.linalg.LinAlgError: The map is singular, so it has no inverse.
        """
        inverse = np.linalg.inv(np.eye(len(self.bias)) + self.linear.astype(np.float64))
        # A row was (c u - b) (I + A)^-1, where u is its mapped row and c the length that was
        # divided out. That the row has length 1 is a quadratic equation for c.
        direction, offset = mapped @ inverse, self.bias @ inverse
        a = (direction**2).sum(axis=1)
        half = direction @ offset
        root = np.sqrt(np.maximum(half**2 - a * (offset @ offset - 1), 0))
        lengths = (half + root) / np.maximum(a, 1e-12)
        return unit_rows(lengths[:, None] * direction - offset)


def heads_id(base_id: str, image: Head, text: Head) -> str:
    """Return `adapted-`, the base's short name, and a hash of the base's id and both heads.

    The hash is the first 12 hex digits of a SHA-256.
    """
    return derived_id("adapted", base_id, [image, text], hashed=base_id)


def derived_id(kind: str, base_id: str, maps: Sequence[AffineMap], *, hashed: str) -> str:
    """Return a kind, the short name of the model below, and a hash of a text and of the maps."""
    digest = hashlib.sha256(hashed.encode())
    for one in maps:
        for array in (one.linear, one.bias):
            digest.update(np.ascontiguousarray(array, dtype="<f4").tobytes())
    short = re.sub(r"[^A-Za-z0-9]+", "-", base_id.rpartition("-")[0]).strip("-") or "model"
    return f"{kind}-{short}-{digest.hexdigest()[:12]}"


class AdaptedEmbedder(Embedder):
    """A base model and its heads; see `Embedder` for the contract.

    Args:
        name: What `load_model` reads.
        base: A plain model that reads pixels.
        image: Head of the photo rows.
        text: Head of the text rows.
        calibration: Fitted for these heads.
        canaries: Recorded inputs by tower, checked when a tower is first used.

    Attributes:
        base: The model below.
        calibration: From cosine to `relevance_score`.
    """

    reads: Literal["image", "text"] = "image"
    shared = False  # cheap to make, and its folder may be written again

    def __init__(
        self,
        name: str,
        base: Embedder,
        image: Head,
        text: Head,
        *,
        calibration: Calibration = UNCALIBRATED,
        canaries: Mapping[str, Sequence[Canary]] | None = None,
    ) -> None:
        self.name = name
        self.base = base
        self.image_head, self.text_head = image, text
        self.calibration = calibration
        self.dim = base.dim
        self.input_size = base.input_size
        self.model_id = heads_id(base.model_id, image, text)
        self._unchecked = dict(canaries or {})
        self._lock = threading.Lock()
        if hasattr(base, "sights"):
            self.sights = self._sights

    @property
    def towers(self) -> frozenset[Tower]:
        """What the model below can embed."""
        return towers_of(self.base)

    def fingerprints(self) -> dict[str, str]:
        """Hash the heads with the weights below; photos and texts are read as the base does."""
        below = self.base.fingerprints()
        return below | {
            "weights": heads_id(below["weights"], self.image_head, self.text_head)[-12:]
        }

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries; (n_texts, dim). What says nothing to the base gives a zero row.

        Raises:
            MismatchError: The text tower does not reproduce its canaries.
        """
        self._check("text")
        return self.text_head(self.base.encode_texts(texts))

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed RGB pictures of any size; (n_images, dim).

        Raises:
            InputError: Something else than pictures.
            MismatchError: The image tower does not reproduce its canaries.
        """
        self._check("image")
        return self.map_rows(self.base.encode_images(images))

    def map_rows(self, rows: Embeddings) -> Embeddings:
        """Map (n, dim) rows that the base gave photos, as `encode_images` does."""
        return self.image_head(rows)

    def _sights(self, embeddings: Embeddings, k: int = 5) -> list[Sight]:
        """Name what stands in photos, as the base does."""
        sights: list[Sight] = self.base.sights(  # type: ignore[attr-defined]
            self.image_head.invert(embeddings), k
        )
        return sights

    def _check(self, tower: Literal["text", "image"]) -> None:
        if tower not in self._unchecked:
            return
        with self._lock:
            canaries = self._unchecked.get(tower, ())
            probes = [canary.probe for canary in canaries]
            if tower == "text":
                rows = self.text_head(self.base.encode_texts([str(probe) for probe in probes]))
            else:
                images = [canary_image(int(probe)) for probe in probes]
                rows = self.image_head(self.base.encode_images(images))
            # The tolerance of mini's image tower: processors round an int8 network differently.
            check_canaries(f"the {tower} tower of {self.name}", canaries, rows, tolerance=0.05)
            self._unchecked.pop(tower, None)


def record_canaries(model: AdaptedEmbedder) -> dict[str, list[dict[str, Any]]]:
    """Embed the canary inputs; returns plain values by tower, fit for JSON."""
    texts = model.encode_texts(CANARY_TEXTS)
    images = model.encode_images([canary_image(seed) for seed in CANARY_IMAGES])
    return {
        "text": _canaries(CANARY_TEXTS, texts),
        "image": _canaries(CANARY_IMAGES, images),
    }


def _canaries(probes: Sequence[str | int], rows: Embeddings) -> list[dict[str, Any]]:
    return [
        {"probe": probe, "expected": np.round(row[:32], 5).tolist()}
        for probe, row in zip(probes, rows.astype(np.float64), strict=True)
    ]


def read_model_file(folder: Path, kind: str, command: str) -> dict[str, Any]:
    """Read what a folder says of the model in it.

    Args:
        folder: The model's folder.
        kind: `"adapted"` or `"migrated"`.
        command: How to make such a folder; ends the error message.

    Raises:
        NotFoundError: There is no such model.
        DataError: Its file is damaged or of another version.
    """
    path = folder / MODEL_FILE
    if not path.is_file():
        msg = f"a model {kind}:FOLDER must be a folder with {MODEL_FILE}, got {folder}; {command}"
        raise NotFoundError(msg)
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if (values["kind"], values["format"]) != (kind, FORMAT):
            msg = f"{values['kind']} of format {values['format']}, not {kind} of format {FORMAT}"
            raise ValueError(msg)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise damaged_file(path, error) from error
    return values


def damaged_file(path: Path, error: Exception) -> DataError:
    """Say that a file of a model is not as it was written."""
    return DataError(f"{path} must be as it was written, got: {error}; make the model again")


def load_adapted(folder: str) -> AdaptedEmbedder:
    """Load what `searchlab models adapt` wrote.

    Args:
        folder: Path of the model.

    Raises:
        NotFoundError: There is no such folder, or the base cannot be had.
        DataError: A file of it is damaged.
        MismatchError: The base is another one now than when the heads were trained.
    """
    if not folder:
        msg = "an adapted model must be named by its folder, got 'adapted:'"
        raise InputError(msg)
    place = Path(folder).expanduser().resolve()
    values = read_model_file(place, "adapted", "make it with `searchlab models adapt`")
    path = place / HEADS_FILE
    try:
        spec, base_id = str(values["base"]), str(values["base_model_id"])
        calibration = Calibration.from_dict(values["calibration"])
        canaries = {
            tower: [Canary(entry["probe"], tuple(entry["expected"])) for entry in entries]
            for tower, entries in values["canaries"].items()
        }
        with np.load(io.BytesIO(path.read_bytes())) as arrays:
            image, text = (
                Head(arrays[f"{side}_linear"], arrays[f"{side}_bias"]) for side in ("image", "text")
            )
        recorded = str(values["model_id"])
    except Exception as error:  # the errors of numpy and zipfile have no common base class
        raise damaged_file(place, error) from error
    with named_by(place):
        base = load_model(spec)
    if base.model_id != base_id:
        msg = (
            f"{place} must stand on the model that it was trained on, {base_id}, got "
            f"{base.model_id}; adapt again with `searchlab models adapt`"
        )
        raise MismatchError(msg)
    if any(head.linear.shape != (base.dim, base.dim) for head in (image, text)):
        raise damaged_file(path, ValueError(f"heads that are not of {base.dim} components"))
    model = AdaptedEmbedder(
        f"adapted:{place}", base, image, text, calibration=calibration, canaries=canaries
    )
    if model.model_id != recorded:
        raise damaged_file(path, ValueError(f"the heads of {model.model_id}, not of {recorded}"))
    return model
