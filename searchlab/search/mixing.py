"""Mixing a picture with words into one vector.

Cosines of words and photos vary less than those of photos among each other (Liang and others, "Mind
the gap", 2022), by how much depends on the picture and on the words: "snow" beside a flower would
hardly count. So both are brought to the same spread over the photos of the library. And what words
have in common with all words is taken away from them, for it draws the same photos near to any
words (Radovanovic and others, "Hubs in space", 2010).

The score of a photo stays a cosine to one vector, and all indexes can be searched with it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.models.protocol import Embeddings, unit_rows

_EVERYDAY = (
    "man woman child people face hand dog cat horse bird fish insect "
    "flower tree grass forest mountain rock river lake sea beach sky cloud "
    "snow rain sunset night city street house castle church bridge window door "
    "room kitchen table chair bed lamp book clock computer phone tool machine "
    "car bicycle train ship airplane food fruit bread drink clothes shoes hat "
    "music sport ball toy "
)
EVERYDAY: Final = tuple(_EVERYDAY.split())
"""Words for what photos usually show; a change of them changes rankings."""

_MOST_PHOTOS = 1_024
_SHARPNESS = 2.0  # of the share of a photo that each word gets, in spreads of the cosines
_LEAST_SPREAD = 0.5  # words that fit no photo better than another are not made to
_NO_SPREAD = 1e-6


class Mixed(NamedTuple):
    """A picture and words as one vector.

    Attributes:
        vector: (dim,) unit row.
        text_share: Weight of the words' cosine in that of the vector.
    """

    vector: Embeddings
    text_share: float


def add(picture: Embeddings, words: Embeddings, weight: float) -> Mixed:
    """Add words to a picture as they are.

    Args:
        picture: (dim,) unit row.
        words: (dim,) unit row.
        weight: How much the words count; the picture counts 1.
    """
    mixed = picture + weight * words
    length = float(np.linalg.norm(mixed))
    return Mixed(np.array(unit_rows(mixed[np.newaxis])[0]), weight / length if length else 0.0)


def background_rows(n_photos: int) -> NDArray[np.int64]:
    """Return the rows of a library that stand for all of them, at most 1,024, spread evenly."""
    return np.linspace(0, n_photos - 1, min(n_photos, _MOST_PHOTOS)).astype(np.int64)


class Background:
    """Some photos of a library, against which pictures and words are seen.

    Attributes:
        photos: (n, dim) float64 rows, at most 1,024, spread evenly over the library.
        common: (dim,) what words for these photos have in common.
        text_spread: Standard deviation that the cosines of a word without it usually have.
    """

    def __init__(self, vectors: Embeddings, everyday: Embeddings) -> None:
        """Take photos of a library.

        Args:
            vectors: (n_photos, dim) unit rows; of more than 1,024 those of `background_rows`.
            everyday: (n_words, dim) unit rows of `EVERYDAY`.
        """
        # In double precision, so that the float32 vector is the same in every process.
        self.photos = np.asarray(vectors[background_rows(len(vectors))], dtype=np.float64)
        words = everyday.astype(np.float64)
        cosines = self.photos @ words.T
        self.common = _weigh(cosines) @ words if len(cosines) else np.zeros(words.shape[1])
        bare = cosines - (self.photos @ self.common)[:, np.newaxis]
        self.text_spread = float(np.median(bare.std(axis=0))) if len(bare) else 0.0

    def mix(self, picture: Embeddings, words: Embeddings, weight: float) -> Mixed:
        """Add words to a picture so that their cosines have the weight times its spread.

        Args:
            picture: (dim,) unit row.
            words: (dim,) unit row, or zeros where the model knows none of the words.
            weight: How much the words count; at 1 they move the scores as much as the picture.
        """
        # Where a model has nothing to say of the words, as colours of "quick", it stays silent.
        bare = np.where(words == 0, 0.0, words - self.common)
        of_picture, of_words = self._spread(picture), self._spread(bare)
        of_words = max(of_words, _LEAST_SPREAD * self.text_spread)
        both_vary = of_picture > _NO_SPREAD and of_words > _NO_SPREAD
        ratio = of_picture / of_words if both_vary else 1.0
        return add(picture, bare.astype(np.float32), weight * ratio)

    def _spread(self, row: NDArray[np.floating]) -> float:
        return float((self.photos @ row).std()) if len(self.photos) else 0.0


def _weigh(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n_words,) the share of each word, which the photos that are near to it give it."""
    spread = float(cosines.std())
    scaled = _SHARPNESS * cosines / (spread if spread > _NO_SPREAD else 1.0)
    shares = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return np.asarray(shares.mean(axis=0))
