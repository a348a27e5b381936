"""The indexes that a config may name: one line each.

A line gives the class, or says where it stands, so that no index is imported before it is used;
`searchlab.search.indexes` says what such a class offers.
"""

from __future__ import annotations

import importlib
from typing import Any

INDEXES: dict[str, Any] = {
    "exact": "searchlab.search.indexes.exact:ExactIndex",
    "hnsw": "searchlab.search.indexes.hnsw:HnswIndex",
    "clustered": "searchlab.search.indexes.ivf.index:IvfIndex",
}


def load_index(name: str) -> Any:
    """Return the class of an index, a `VectorIndex`.

    Args:
        name: One of `INDEXES`.
    """
    entry = INDEXES[name]
    if not isinstance(entry, str):
        return entry
    module, _, name_there = entry.partition(":")
    return getattr(importlib.import_module(module), name_there)
