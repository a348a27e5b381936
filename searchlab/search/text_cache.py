"""TextVectors: the embeddings of texts that were asked before, within a bound of memory.

Texts that several threads ask for at once are embedded one by one. Together they would cost a large
text tower in float32 half as much, but then a vector would differ in its last bits with who else
asked, and the pages of one query, which several processes may answer, would no longer be slices of
one ranking. A tower in eight bits, which is cheaper still, is asked one by one anyway.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from searchlab.models.protocol import Embedder, Embeddings

MAX_BYTES = 64 * 2**20
# What Python needs for a text and an array beside their contents, at most.
_OVERHEAD_BYTES = 400


class TextVectors:
    """Embeds texts with one model and keeps the vectors, those asked last for longest.

    For several threads at once. They hold for every engine of the model, and for no other model.

    Attributes:
        model_id: Of the model, with the hash of its weights.
        n_bytes: Memory in use, as good as it can be told.
    """

    def __init__(self, model: Embedder, *, max_bytes: int = MAX_BYTES) -> None:
        """Start with none.

        Args:
            model: What embeds.
            max_bytes: Memory that they may take.
        """
        self.model_id = model.model_id
        self.n_bytes = 0
        self._model = model
        self._max_bytes = max_bytes
        self._known: OrderedDict[str, Embeddings] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def of_model(self, model: Embedder) -> TextVectors:
        """Return these, if they are of this model, else vectors of that one, with none kept yet."""
        if model.model_id == self.model_id:
            return self
        return TextVectors(model, max_bytes=self._max_bytes)

    def of(self, text: str) -> Embeddings:
        """Return the (dim,) vector of a text."""
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
        if known is None:
            known = self._model.encode_texts([text])[0]
            self._keep([text], known[np.newaxis])
        return known

    def warm(self, texts: Sequence[str]) -> None:
        """Embed texts in one batch and keep their vectors."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            self._keep(new, self._model.encode_texts(new))

    def _keep(self, texts: Sequence[str], rows: Embeddings) -> None:
        with self._lock:
            for text, row in zip(texts, rows, strict=True):
                if text not in self._known:
                    self.n_bytes += _size(text, row)
                # A copy: a row of a batch would keep the whole batch alive.
                self._known[text] = row.copy()
            while self.n_bytes > self._max_bytes:
                self.n_bytes -= _size(*self._known.popitem(last=False))


def _size(text: str, row: Embeddings) -> int:
    return _OVERHEAD_BYTES + 4 * len(text) + row.nbytes
