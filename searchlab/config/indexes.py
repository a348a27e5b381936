"""The indexes that a config may name: one line each.

A line gives the class, or names it as `module:Class`, so that no index is imported before it is
used; `searchlab.search.indexes.protocol` says what such a class offers. Installed packages add
theirs by entry points of the group `searchlab.indexes`.
"""

from __future__ import annotations

import importlib
from typing import Any

from searchlab.plugins import load_plugin, plugin_names

_GROUP = "searchlab.indexes"

INDEXES: dict[str, Any] = {
    "exact": "searchlab.search.indexes.exact:ExactIndex",
    "hnsw": "searchlab.search.indexes.hnsw:HnswIndex",
    "clustered": "searchlab.search.indexes.ivf.index:IvfIndex",
    "exact-on-device": "searchlab.search.indexes.on_device:DeviceIndex",
}


def index_names() -> list[str]:
    """List the indexes that a config may name, those of installed packages last."""
    return [*INDEXES, *plugin_names(_GROUP)]


def load_index(name: str) -> Any:
    """Return the class of an index, a `VectorIndex`.

    Args:
        name: One of `index_names`.

    Raises:
        MismatchError: It comes with another package, and cannot be imported.
    """
    entry = INDEXES.get(name) or load_plugin(_GROUP, name)
    if not isinstance(entry, str):
        return entry
    module, _, class_name = entry.partition(":")
    return getattr(importlib.import_module(module), class_name)
