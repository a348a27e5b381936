"""Embedding of queries: text, a picture, or a mix of both; vectors of texts are cached.

Texts of several threads are embedded one by one. In one batch a large text tower in float32 would
take half the time, but the last bits of a vector would then depend on the other texts of the batch,
and the pages of one query, which several processes may answer, would no longer be slices of one
ranking. A tower in eight bits, which is cheaper still, embeds texts one by one anyway.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

import numpy as np

from searchlab.config import Config
from searchlab.errors import DataError
from searchlab.models.canaries import CanaryCheck
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.search.mixing import EVERYDAY, Background, Mixed, add
from searchlab.search.queries import Picture

MAX_BYTES = 64 * 2**20
# What Python needs for a text and an array beside their contents, at most.
_OVERHEAD_BYTES = 400
_LONGEST = 2.0  # that a stored vector may be, which is a unit row but for rounding


class TextVectors:
    """Embeds texts with one model and caches the vectors; those unused for longest go first.

    Safe for several threads. All engines of the model can share it.

    Attributes:
        model_id: Name of the model, with the hash of its weights.
        n_bytes: Memory in use, estimated.
    """

    def __init__(self, model: Embedder, *, max_bytes: int = MAX_BYTES) -> None:
        """Start empty.

        Args:
            model: Embeds the texts.
            max_bytes: Memory that the vectors may take.
        """
        self.model_id = model.model_id
        self.n_bytes = 0
        self._model = model
        self._max_bytes = max_bytes
        self._vectors: OrderedDict[str, Embeddings] = OrderedDict()
        self._everyday: Embeddings | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    def of_model(self, model: Embedder) -> TextVectors:
        """Return this cache if it is of the given model, otherwise an empty one of that model."""
        if model.model_id == self.model_id:
            return self
        return TextVectors(model, max_bytes=self._max_bytes)

    def of(self, text: str) -> Embeddings:
        """Return the (dim,) vector of a text."""
        with self._lock:
            vector = self._vectors.get(text)
            if vector is not None:
                self._vectors.move_to_end(text)
        if vector is None:
            vector = self._model.encode_texts([text])[0]
            self._keep([text], vector[np.newaxis])
        return vector

    @property
    def everyday(self) -> Embeddings:
        """(n_words, dim) vectors of `EVERYDAY`, which are always one batch."""
        if self._everyday is None:
            self._everyday = self._model.encode_texts(EVERYDAY)
        return self._everyday

    def warm(self, texts: Sequence[str]) -> None:
        """Embed texts in one batch and keep their vectors."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._keep(new, self._model.encode_texts(new))

    def _keep(self, texts: Sequence[str], rows: Embeddings) -> None:
        with self._lock:
            for text, row in zip(texts, rows, strict=True):
                if text not in self._vectors:
                    self.n_bytes += _size(text, row)
                # A copy: a row of a batch would keep the whole batch alive.
                self._vectors[text] = row.copy()
            while self.n_bytes > self._max_bytes:
                self.n_bytes -= _size(*self._vectors.popitem(last=False))


def _size(text: str, row: Embeddings) -> int:
    return _OVERHEAD_BYTES + 4 * len(text) + row.nbytes


class QueryVectors:
    """Embeds queries, after a check that the model still is the one that embedded the photos."""

    def __init__(
        self,
        model: Embedder,
        texts: TextVectors,
        canary_check: CanaryCheck,
        photos: Embeddings,
        config: Config,
    ) -> None:
        """Take the parts.

        Args:
            model: The model that made the vectors.
            texts: The cache of text vectors of the same model.
            canary_check: Probes that the model embedded together with the photos.
            photos: (n_photos, dim) vectors of the library.
            config: How words are mixed with a picture, and how much they count.
        """
        self._model = model
        self._texts = texts
        self._canary_check = canary_check
        self._checked: set[str] = set()
        self._photos = photos
        self._config = config
        self._background: Background | None = None

    def warm(self, texts: Sequence[str]) -> None:
        """Embed texts in one batch and keep their vectors."""
        self._check_tower("text")
        self._texts.warm(texts)

    def of_text(self, text: str) -> Embeddings:
        """Return the (dim,) embedding of words."""
        self._check_tower("text")
        return self._texts.of(text)

    def of_picture(self, picture: Picture) -> Embeddings:
        """Return the (dim,) embedding of a picture.

        Raises:
            ImageError: The picture is refused.
        """
        from searchlab.photos.images.decode import WORKING_SIDE, as_rgb, for_model

        self._check_tower("image")
        side = self._model.input_size
        small = for_model(as_rgb(picture, min_side=max(WORKING_SIDE, side)), side)
        return np.array(self._model.encode_images([small])[0])

    def mix(self, picture: Embeddings, text: str, text_alpha: float) -> Mixed:
        """Mix a picture with words.

        Args:
            picture: (dim,) unit row.
            text: Words.
            text_alpha: How much the words count; at 0 the picture stays what it is.
        """
        words = self.of_text(text)
        weight = self._config.steering * text_alpha
        if self._config.mixing == "sum":
            return add(picture, words, weight)
        if self._background is None:
            self._background = Background(self._photos, self._texts.everyday)
        return self._background.mix(picture, words, weight)

    def _check_tower(self, kind: Literal["text", "image"]) -> None:
        if kind not in self._checked:
            self._canary_check.check(self._model, kind)
            self._checked.add(kind)


def stored_vector(vectors: Embeddings, row: int) -> Embeddings:
    """Return the vector of a photo as a query, (dim,).

    Raises:
        DataError: It is no unit row, as in a file that somebody else has written.
    """
    vector = np.array(vectors[row])
    if not 0 <= float(np.linalg.norm(vector)) < _LONGEST:
        msg = (
            f"the vector of row {row} must be a unit row, got another; index again with "
            "`searchlab index --data DIR --rebuild`, nothing is embedded twice"
        )
        raise DataError(msg)
    return vector
