"""Whether opened lists are of the vectors beside them, by looking at a few rows."""

from __future__ import annotations

import numpy as np

from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.ivf.heads import decode_heads
from searchlab.search.indexes.ivf.lists import Lists

_PROBES = 16


def check_probes(lists: Lists, vectors: Embeddings) -> None:
    """Check codes and heads of some rows.

    Args:
        lists: Opened lists.
        vectors: (n, dim) unit rows that they must be of.

    Raises:
        InputError: They are of others.
    """
    n, dim = vectors.shape
    rows = np.unique(np.linspace(0, max(n - 1, 0), _PROBES).astype(np.int64))[:n]
    places = lists.positions[rows]
    codes = lists.codes[places, :dim].astype(np.float64) - 128
    away = codes * lists.scales[places, np.newaxis] - vectors[rows]
    if (np.linalg.norm(away, axis=1) > lists.errors[places] + 1e-5).any():
        msg = "it was built from other vectors"
        raise InputError(msg)
    rest = vectors[rows] - lists.centres[lists.find_lists(rows)]
    components, steps = decode_heads(lists.head_codes[places])
    if (np.abs(components - rest @ lists.axes).max(axis=1, initial=0) > steps + 1e-5).any():
        msg = "its heads are of other vectors"
        raise InputError(msg)
