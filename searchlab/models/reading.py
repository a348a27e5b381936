"""What a model can tell of a query before any photo is looked at.

A model that knows its own words says which of a query it does not know, and how near to a query
photos at large are. Models without such knowledge say nothing; see `TextReader`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.models.protocol import Embedder, Embeddings

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
        sentences: Languages that it was taught sentences in, as `LANGUAGES` of
            `searchlab.search.words` names them; empty if it does not say.
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
        """What photos at large are to its queries."""
        ...

    def read_text(self, text: str) -> TextReading:
        """Say how a text is read; cheap, and without a vector."""
        ...


def is_reader(model: Embedder) -> TypeGuard[TextReader]:
    """Say whether a model is a `TextReader`; each query asks, and `isinstance` takes 20 us."""
    return hasattr(model, "read_text") and hasattr(model, "at_large")
