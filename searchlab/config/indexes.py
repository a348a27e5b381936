"""The indexes that a config may name: one line each.

A line gives the class, or names it as `module:Class`, so that no index is imported before it is
used; `searchlab.search.indexes.protocol` says what such a class offers. Installed packages add
theirs by entry points of the group `searchlab.indexes`. An engine elsewhere is named with the
address of its data, as `pgvector:URL`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from searchlab.config.engine_addresses import check_milvus_uri, check_postgres_url
from searchlab.errors import InputError, quote
from searchlab.plugins import load_plugin, plugin_names

_GROUP = "searchlab.indexes"

INDEXES: dict[str, Any] = {
    "exact": "searchlab.search.indexes.exact:ExactIndex",
    "hnsw": "searchlab.search.indexes.hnsw:HnswIndex",
    "clustered": "searchlab.search.indexes.ivf.index:IvfIndex",
    "exact-on-device": "searchlab.search.indexes.on_device:DeviceIndex",
}

ENGINES: dict[str, tuple[Any, Callable[[str, str], None]]] = {
    "pgvector": ("searchlab.search.indexes.foreign.pgvector:PgvectorIndex", check_postgres_url),
    "milvus": ("searchlab.search.indexes.foreign.milvus:MilvusIndex", check_milvus_uri),
}
"""Indexes that need an address, as `pgvector:URL`: their class, and what checks the address."""


def index_names() -> list[str]:
    """List the indexes that a config may name without an address, those of packages last."""
    return [*INDEXES, *plugin_names(_GROUP)]


def check_index_name(name: object) -> None:
    """Check that a config may name an index so.

    Raises:
        InputError: There is no such index, or the address of an engine cannot be used.
    """
    if isinstance(name, str):
        kind, colon, address = name.partition(":")
        if kind in ENGINES:
            return ENGINES[kind][1](kind, address if colon else "")
        if name in INDEXES or name in index_names():
            return None
    known = ", ".join([*index_names(), *(f"{kind}:ADDRESS" for kind in ENGINES)])
    msg = f"index must be one of {known}, got {quote(name)}"
    raise InputError(msg)


def index_kind(name: str) -> str:
    """Return the name of an index without the address of its engine."""
    kind = name.partition(":")[0]
    return kind if kind in ENGINES else name


def load_index(name: str) -> Any:
    """Return the class of an index, a `VectorIndex`.

    Args:
        name: One of `index_names`, or an engine with its address.

    Raises:
        MismatchError: It comes with another package, and cannot be imported.
    """
    if index_kind(name) in ENGINES:
        entry = ENGINES[index_kind(name)][0]
    else:
        entry = INDEXES.get(name) or load_plugin(_GROUP, name)
    if not isinstance(entry, str):
        return entry
    module, _, class_name = entry.partition(":")
    return getattr(importlib.import_module(module), class_name)
