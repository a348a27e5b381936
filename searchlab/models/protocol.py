"""What every embedding model offers: input checks, and unit rows as output.

A model that knows its own words also says which of a query it does not know, and how near to a
query photos at large are. Models without such knowledge say nothing; see `TextReader`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.errors import DataError, InputError

Embeddings: TypeAlias = NDArray[np.float32]
"""(n, dim) float32, C-contiguous, rows of unit length, so that a dot product is a cosine."""


@runtime_checkable
class Embedder(Protocol):
    """A model that places texts and photos in one space.

    Attributes:
        name: The spec that `load_model` reads, such as `"hybrid:captions=0.3,mini=0.7"`.
        dim: Components of a row.
        model_id: Short name and 12 hex digits of the SHA-256 over weights, preprocessing and
            tokenizer. Vectors of two models compare only where their `model_id` agrees.
        reads: What of a photo the model embeds: its pixels (`"image"`) or descriptions (`"text"`).
        input_size: Shortest side in pixels that `encode_images` makes use of; 0 for `"text"`.
    """

    name: str
    dim: int
    model_id: str
    reads: Literal["image", "text"]
    input_size: int

    @property
    def parts(self) -> tuple[tuple[Embedder, float], ...]:
        """The plain models and weights that make up this one; itself for a plain model."""
        return ((self, 1.0),)

    def fingerprints(self) -> dict[str, str]:
        """Hash apart what `model_id` holds together: `weights`, `preprocessing`, `tokenizer`.

        12 hex digits each. Where vectors differ, they tell which of the three is to blame.
        """
        ...

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries; (n_texts, dim). A text that says nothing to the model gives a zero row."""
        ...

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed RGB pictures of any size; (n_images, dim).

        Raises:
            InputError: The model reads descriptions only.
        """
        ...


Tower: TypeAlias = Literal["image", "text"]


def towers_of(model: Embedder) -> frozenset[Tower]:
    """Say what a model can embed: texts, and pictures if it reads them.

    Stored vectors without the model that made them embed nothing; a model says so by `towers`.
    """
    towers: frozenset[Tower] | None = getattr(model, "towers", None)
    if towers is None:
        return frozenset({"text", "image"} if model.reads == "image" else {"text"})
    return towers


# -- models that know their own words --------------------------------------------------------

_ONE_IN_A_HUNDRED = 2.326  # standard deviations above the mean of a normal distribution


@dataclass(frozen=True)
class TextReading:
    """How a model reads a text.

    Attributes:
        n_pieces: Pieces that it cuts the text into.
        familiarity: Natural logarithm of the pieces' probabilities, a letter, -6 to 0; a character
            of a script that writes no spaces counts as three letters. Everyday language has about
            -3, rare words -4.5, letters at random -6.
        unknown: Words that it knows no piece of.
        spelled: Words that it knows only in short pieces, which say little.
        whole: Words that it knows as one piece each: it has met them often, as they are written.
        sentences: English names, in lower case, of the languages whose sentences it reads; empty
            if it does not say.
    """

    n_pieces: int
    familiarity: float
    unknown: tuple[str, ...] = ()
    spelled: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class PhotosAtLarge:
    """Mean and spread of the vectors of many photos, of all kinds.

    Attributes:
        mean: (dim,) float32.
        factors: (k, dim) float32; their products summed up are nearly the covariance.
    """

    mean: NDArray[np.float32]
    factors: NDArray[np.float32]

    @classmethod
    def of_vectors(cls, vectors: Embeddings, *, n_factors: int = 32) -> PhotosAtLarge:
        """Summarise the vectors of photos.

        Args:
            vectors: (n_photos, dim) unit rows, more than `n_factors`.
            n_factors: Directions that are kept.
        """
        wide = np.asarray(vectors, dtype=np.float64)
        mean = wide.mean(axis=0)
        _, lengths, directions = np.linalg.svd(wide - mean, full_matrices=False)
        factors = directions[:n_factors] * (lengths[:n_factors, None] / np.sqrt(len(wide)))
        # Half precision is enough, and what ships is what is computed with.
        halves = [part.astype(np.float16).astype(np.float32) for part in (mean, factors)]
        return cls(*halves)

    def background(self, vector: Embeddings) -> float:
        """Return the cosine that about one photo in a hundred reaches.

        Args:
            vector: (dim,) unit row of a query.
        """
        spread = float(np.linalg.norm(self.factors @ vector))
        return float(self.mean @ vector) + _ONE_IN_A_HUNDRED * spread

    @cached_property
    def digest(self) -> str:
        """12 hex digits of the SHA-256 over the numbers."""
        numbers = np.concatenate([self.mean, self.factors.ravel()]).astype("<f4")
        return hashlib.sha256(numbers.tobytes()).hexdigest()[:12]

    def save(self, path: Path) -> None:
        """Write the numbers in half precision."""
        np.savez_compressed(
            path, mean=self.mean.astype(np.float16), factors=self.factors.astype(np.float16)
        )

    @classmethod
    def load(cls, path: Path) -> PhotosAtLarge:
        """Read what `save` wrote.

        Raises:
            DataError: The file is missing or damaged.
        """
        try:
            with np.load(path) as stored:
                return cls(*(stored[name].astype(np.float32) for name in ("mean", "factors")))
        except (OSError, ValueError, KeyError) as error:
            msg = f"{path} must be readable, got {error}; reinstall searchlab"
            raise DataError(msg) from error


class TextReader(Embedder, Protocol):
    """A model that says how it reads a text."""

    @property
    def at_large(self) -> PhotosAtLarge:
        """Mean and spread of photos at large."""
        ...

    def read_text(self, text: str) -> TextReading:
        """Say how a text is read; cheap, and without a vector."""
        ...


def is_reader(model: Embedder) -> TypeGuard[TextReader]:
    """Say whether a model is a `TextReader`; each query asks, and `isinstance` takes 20 us."""
    return hasattr(model, "read_text") and hasattr(model, "at_large")


class MappedEmbedder(Embedder, Protocol):
    """A model whose rows of photos are those of another, mapped.

    Photos that the other has embedded are not read again.
    """

    @property
    def base(self) -> Embedder:
        """The model below, which reads pictures."""
        ...

    def map_rows(self, rows: Embeddings) -> Embeddings:
        """Make the rows of photos from (n, base.dim) rows of the model below; (n, dim)."""
        ...


def is_mapped(model: Embedder) -> TypeGuard[MappedEmbedder]:
    """Say whether a model is a `MappedEmbedder`."""
    return hasattr(model, "map_rows") and hasattr(model, "base")


# -- what goes in and what comes out ----------------------------------------------------------


def short_hash(text: str) -> str:
    """Return 12 hex digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def unit_rows(vectors: NDArray[np.floating]) -> Embeddings:
    """Scale each row to unit length; a zero row stays zero.

    Args:
        vectors: (n, dim), any float dtype.

    Returns:
        (n, dim) float32, C-contiguous.
    """
    wide = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.ascontiguousarray(wide / np.where(norms > 0, norms, 1), dtype=np.float32)


def readable_texts(texts: Sequence[str], *, max_length: int) -> list[str]:
    """Make texts safe to tokenize: no lone surrogates, no NUL, cut to a length.

    Args:
        texts: Any strings.
        max_length: Code points that are read of each.

    Raises:
        InputError: `texts` is one string instead of a sequence of them, or holds something else.
    """
    if isinstance(texts, str):
        msg = (
            f"texts must be a sequence of strings, got the string {texts[:40]!r}; wrap it in a list"
        )
        raise InputError(msg)
    for text in texts:
        if not isinstance(text, str):
            msg = f"texts must be strings, got {type(text).__name__}"
            raise InputError(msg)
    return [
        text[:max_length].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
        for text in texts
    ]


def rgb_images(images: Sequence[Image.Image]) -> list[Image.Image]:
    """Check that pictures are pictures with pixels, and bring them to RGB.

    Raises:
        InputError: Something else than a picture, or one without pixels.
    """
    if isinstance(images, Image.Image):
        msg = "images must be a sequence of pictures, got a single picture; wrap it in a list"
        raise InputError(msg)
    pictures = []
    for image in images:
        if not isinstance(image, Image.Image):
            msg = f"images must be PIL pictures, got {type(image).__name__}"
            raise InputError(msg)
        if 0 in image.size:
            msg = f"a picture must be at least 1 x 1 pixels, got {image.width} x {image.height}"
            raise InputError(msg)
        pictures.append(image if image.mode == "RGB" else image.convert("RGB"))
    return pictures
