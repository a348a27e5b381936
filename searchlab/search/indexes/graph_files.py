"""The file of hnswlib's graph, checked before hnswlib reads it, which follows any number in it.

header    offsets and sizes, nodes, the highest level and its entry, M, and more; 96 bytes
nodes     each: links of level 0 (their count, a flag for deleted ones, 2 M nodes), vector, label
levels    for each node the bytes of its links above level 0, and then these, M nodes a level
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError

_HEADER = struct.Struct("<6QiI3QdQ")
_DELETED = 1 << 16
_NODES_AT_ONCE = 65_536
_SPARE = 1_024  # nodes that a graph may have room for beyond those that it has


class _Header(NamedTuple):
    offset_level0: int
    max_nodes: int
    n_nodes: int
    node_bytes: int
    label_at: int
    vector_at: int
    top_level: int
    entry: int
    max_links: int
    max_links_0: int
    M: int
    mult: float
    ef_construction: int


def check_graph_file(path: Path, *, dim: int, M: int, labels: NDArray[np.int64]) -> None:
    """Check every count, node, level and label of a graph; vectors are numbers like any others.

    Args:
        path: The file.
        dim: Components of a vector.
        M: Links of a node, as the graph was built with.
        labels: (n_photos,) int64 that must be the labels of the nodes that are not deleted.

    Raises:
        InputError: It is damaged, or another library's; says how.
        OSError: It cannot be read.
    """
    if path.stat().st_size < _HEADER.size:
        msg = "it is cut short"
        raise InputError(msg)
    whole = np.memmap(path, dtype=np.uint8, mode="r")
    header = _Header(*_HEADER.unpack(whole[: _HEADER.size].tobytes()))
    _check_header(header, dim, M)
    end = _HEADER.size + header.n_nodes * header.node_bytes
    if end > len(whole) or (len(whole) - end) % 4:
        msg = f"it is cut short: {header.n_nodes:,} nodes in {len(whole):,} bytes"
        raise InputError(msg)
    nodes = whole[_HEADER.size : end].reshape(header.n_nodes, header.node_bytes)
    _check_nodes(nodes, header, labels)
    _check_levels(whole[end:].view(np.uint32), header)


def _check_header(header: _Header, dim: int, M: int) -> None:
    vector_at = 4 + 4 * 2 * M
    wanted = {
        "offset_level0": 0,
        "vector_at": vector_at,
        "label_at": vector_at + 4 * dim,
        "node_bytes": vector_at + 4 * dim + 8,
        "max_links": M,
        "max_links_0": 2 * M,
        "M": M,
    }
    wrong = [name for name, value in wanted.items() if getattr(header, name) != value]
    n_nodes = header.n_nodes
    if not n_nodes <= header.max_nodes <= 2 * n_nodes + _SPARE:
        wrong.append("max_nodes")
    if not math.isclose(header.mult, 1 / math.log(M)):
        wrong.append("mult")
    if not 1 <= header.ef_construction <= 2**20:
        wrong.append("ef_construction")
    is_empty = (header.entry, header.top_level) == (2**32 - 1, -1)
    if is_empty if n_nodes else not is_empty:
        wrong.append("entry")
    if wrong:
        msg = f"its header has a wrong {wrong[0]}: {getattr(header, wrong[0])}"
        raise InputError(msg)


def _check_nodes(nodes: NDArray[np.uint8], header: _Header, labels: NDArray[np.int64]) -> None:
    stored = np.empty(header.n_nodes, dtype=np.uint64)
    is_live = np.empty(header.n_nodes, dtype=np.bool_)
    for start in range(0, header.n_nodes, _NODES_AT_ONCE):
        block = slice(start, start + _NODES_AT_ONCE)
        links = np.ascontiguousarray(nodes[block, : header.vector_at]).view(np.uint32)
        _check_links(links, header.max_links_0, header.n_nodes)
        is_live[block] = links[:, 0] & _DELETED == 0
        label = np.ascontiguousarray(nodes[block, header.label_at :])
        stored[block] = label.view(np.uint64)[:, 0]
    live = np.sort(stored[is_live])
    if not np.array_equal(live, np.sort(labels.astype(np.uint64))):
        msg = f"it has {len(live):,} nodes, which are not those of the {len(labels):,} photos"
        raise InputError(msg)
    if len(np.unique(stored)) != len(stored) or int(stored.max(initial=0)) >= 2**62:
        msg = "two of its nodes have the same label, or one has none"
        raise InputError(msg)


def _check_links(links: NDArray[np.uint32], most: int, n_nodes: int) -> NDArray[np.bool_]:
    """Check rows of a count and of as many nodes; returns which of the nodes are linked."""
    counts = links[:, 0] & 0xFFFF
    is_linked = np.arange(most, dtype=np.uint32) < counts[:, np.newaxis]
    farthest = np.where(is_linked, links[:, 1:], 0).max(initial=0)
    if int(counts.max(initial=0)) > most or farthest >= max(n_nodes, 1):
        msg = f"a node links to one that is not there, or to more than {most}"
        raise InputError(msg)
    return is_linked


def _check_levels(words: NDArray[np.uint32], header: _Header) -> None:
    """Check what follows the nodes: of most of them just a zero."""
    width = header.max_links + 1  # words of one level: how many links, and the links
    levels = np.zeros(header.n_nodes, dtype=np.int32)
    higher, starts = [], []
    node = place = 0
    # Zeros are skipped all at once: a few nodes in a hundred have links above level 0.
    filled = np.flatnonzero(words)
    at = 0
    while (at := at + int(np.searchsorted(filled[at:], place))) < len(filled):
        node += int(filled[at]) - place
        place = int(filled[at])
        n_words, rest = divmod(int(words[place]), 4)
        n_levels, odd = divmod(n_words, width)
        if node >= header.n_nodes or rest or odd or place + n_words >= len(words):
            break
        levels[node] = n_levels
        higher.append(node)
        starts.append(place + 1)
        place += 1 + n_words
        node += 1
    if at < len(filled) or node + len(words) - place != header.n_nodes:
        msg = "the links above level 0 are not as many as they say"
        raise InputError(msg)
    top = int(levels.max(initial=0)) if header.n_nodes else -1
    if header.top_level != top or (header.n_nodes and header.entry >= header.n_nodes):
        msg = f"its highest level is {top}, not {header.top_level}, or its entry is not there"
        raise InputError(msg)
    if header.n_nodes and levels[header.entry] != top:
        msg = "its entry is not on the highest level"
        raise InputError(msg)
    node_of, start_of = np.array(higher, dtype=np.int64), np.array(starts, dtype=np.int64)
    for level in range(1, top + 1):
        first = start_of[levels[node_of] >= level] + (level - 1) * width
        links = words[first[:, np.newaxis] + np.arange(width)]
        is_linked = _check_links(links, header.max_links, header.n_nodes)
        if (levels[links[:, 1:][is_linked]] < level).any():
            msg = f"a node of level {level} links to one that is not on this level"
            raise InputError(msg)
