"""QueryVectors: what queries bring, embedded: words, a picture, or both mixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from searchlab.models.canaries import CanaryCheck
from searchlab.models.protocol import Embedder, Embeddings, unit_rows
from searchlab.search.queries import Picture
from searchlab.search.text_cache import TextVectors


class QueryVectors:
    """Embeds with the model of the photos, as long as it still is that model."""

    def __init__(self, model: Embedder, texts: TextVectors, canary_check: CanaryCheck) -> None:
        """Put together what belongs together.

        Args:
            model: The model that made the vectors.
            texts: Keeps the vectors of texts by the same model.
            canary_check: What the model embedded when the photos were.
        """
        self._model = model
        self._texts = texts
        self._witness = canary_check

    def warm(self, texts: Sequence[str]) -> None:
        """Embed texts in one batch and keep their vectors."""
        self._witness.check(self._model, "text")
        self._texts.warm(texts)

    def of_text(self, text: str) -> Embeddings:
        """Return the (dim,) embedding of words."""
        self._witness.check(self._model, "text")
        return self._texts.of(text)

    def of_picture(self, picture: Picture) -> Embeddings:
        """Return the (dim,) embedding of a picture.

        Raises:
            ImageError: The picture is refused.
        """
        from searchlab.photos.images.decode import WORKING_SIDE, as_rgb, for_model

        self._witness.check(self._model, "image")
        side = self._model.input_size
        small = for_model(as_rgb(picture, min_side=max(WORKING_SIDE, side)), side)
        return np.array(self._model.encode_images([small])[0])

    def steered(self, picture: Embeddings, text: str, weight: float) -> Embeddings:
        """Return the (dim,) unit row between a picture and words.

        Args:
            picture: (dim,) unit row.
            text: Words.
            weight: Of the words beside the picture.
        """
        mixed = picture + weight * self.of_text(text)
        return np.array(unit_rows(mixed[np.newaxis])[0])
