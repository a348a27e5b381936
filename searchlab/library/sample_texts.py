"""Sample texts: what is written about some photos, as queries that an index can learn from."""

from __future__ import annotations

import numpy as np

from searchlab.models.protocol import Embedder
from searchlab.photos.table import PhotoTable
from searchlab.search.indexes.protocol import VectorIndex

N_TEXTS = 128
_LEAST = 64
_LOOKED_AT = 20_000  # photos at most, for a large library with few texts
_FIELDS = ("title", "alt_description", "description", "source_description")
_SEED = 0


def teach_texts(index: VectorIndex, table: PhotoTable, model: Embedder) -> None:
    """Let an index that wants it learn from texts of its photos, if enough of them have one.

    Args:
        index: Over the photos of the table.
        table: The photos.
        model: Has embedded the photos.
    """
    if not index.wants_texts:
        return
    texts = sample_texts(table)
    if len(texts) >= _LEAST:
        index.learn(model.encode_texts(texts))


def sample_texts(table: PhotoTable) -> list[str]:
    """Draw photos that have a text, and of each photo one text; at most `N_TEXTS`, all different.

    >>> sample_texts(PhotoTable.from_photos([]))
    []
    """
    rng = np.random.default_rng(_SEED)
    texts: dict[str, None] = {}
    for row in rng.permutation(len(table))[:_LOOKED_AT].tolist():
        written = [text for text in (table.column(name)[row] for name in _FIELDS) if text]
        if written:
            texts[written[int(rng.integers(len(written)))]] = None
        if len(texts) == N_TEXTS:
            break
    return list(texts)
