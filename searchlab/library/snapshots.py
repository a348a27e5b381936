"""Snapshots: one whole state of a library on disk, built beside the old one and swapped in.

A snapshot is a folder that never changes once it has its name. `CURRENT` holds the name of the
one in force and is replaced by one atomic rename, so that readers of the old one finish in peace
and a writer that dies at any moment leaves the last good state.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from searchlab.config import Config
from searchlab.errors import DataError, damaged_file, quote
from searchlab.files import link_or_copy, sync_folder, write_atomically
from searchlab.library.manifests import (
    FORMAT,
    broken,
    check_file,
    read_manifest,
    read_roots,
    root_entry,
    seal,
)
from searchlab.library.retention import DROPPED, drop_old, note_end, number_of, read_retention
from searchlab.library.roots import Root
from searchlab.models.protocol import Embeddings
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.facets import Facets
from searchlab.search.indexes import VectorIndex, open_index
from searchlab.search.words.index import WordIndex

# Files up to this size are read whole and compared with their checksum on every opening.
_CHECKED_BYTES = 64 * 2**20
_VECTORS, _PHOTOS, _FACETS = "vectors.npy", "photos.columns", "facets.columns"
_LONGEST = 65_536  # components of a vector
# What numpy raises where it meets a header that it did not write.
_UNREADABLE = (
    *(OSError, ValueError, TypeError, SyntaxError, EOFError, MemoryError, OverflowError),
    tokenize.TokenError,
)
_NAME = re.compile(r"\d{6,}-[0-9a-f]{8}", re.ASCII)


OpenVectors = Callable[[Path, str, Config, PhotoTable], VectorIndex]
"""Opens the vectors of a snapshot: library, name of the snapshot, configuration and photos."""


@dataclass(frozen=True)
class Snapshot:
    """An opened snapshot.

    Attributes:
        snapshot_id: Its folder's name.
        config: The configuration that it was built under.
        roots: Folders that it covers.
        table: The photos, memory-mapped.
        facets: Sets of photos that filters are answered from, memory-mapped.
        index: The vectors of the photos, memory-mapped, and what the index adds to them.
        next_label: The first label that no photo has had.
        canaries: What the model embedded of its probes when the snapshot was built.
    """

    snapshot_id: str
    config: Config
    roots: tuple[Root, ...]
    table: PhotoTable
    facets: Facets
    index: VectorIndex
    words: WordIndex
    next_label: int
    canaries: dict[str, list[float]]


def current_id(folder: Path) -> str | None:
    """Return the name of the snapshot in force; None before the first."""
    try:
        name = (folder / "CURRENT").read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise broken(folder / "CURRENT", error.strerror or str(error)) from error
    if not _NAME.fullmatch(name):
        raise damaged_file(folder / "CURRENT", "name a snapshot", quote(name))
    return name


def write_snapshot(
    folder: Path,
    *,
    config: Config,
    roots: tuple[Root, ...],
    table: PhotoTable,
    vectors: Embeddings,
    index: VectorIndex,
    words: WordIndex,
    next_label: int,
    canaries: dict[str, list[float]],
    replace_equal: bool = False,
) -> str:
    """Write a snapshot, swap it in and drop the oldest.

    Args:
        folder: The library.
        config: The configuration, with its `model_id`.
        roots: Folders that it covers.
        table: The photos.
        vectors: (n_photos, dim) unit rows in the table's order.
        index: Over these vectors.
        words: What is written about the photos.
        next_label: The first label that no photo has had.
        canaries: What the model embeds of its probes, from `CanaryCheck.record`.
        replace_equal: Whether to write a new snapshot even if nothing changed.

    Returns:
        The new snapshot's name, or that of the one in force where nothing changed.
    """
    with _unfinished(folder) as partial:
        table.save(partial / _PHOTOS)
        Facets(table).save(partial / _FACETS)
        np.save(partial / _VECTORS, vectors)
        index.save(partial)
        words.save(partial)
        names = sorted(path.name for path in partial.iterdir())
        files = {name: seal(partial / name) for name in names}
    manifest = {
        "format": FORMAT,
        "config": config.to_dict(),
        "config_id": config.config_id,
        "n_photos": len(table),
        "next_label": next_label,
        "canaries": canaries,
        "roots": [root_entry(root) for root in roots],
        "files": files,
    }
    return _swap_in(folder, partial, manifest, replace_equal=replace_equal)


def rewrite_snapshot(folder: Path, snapshot_id: str, config: Config) -> str:
    """Swap in the same photos and the same index under another configuration, without a copy.

    Args:
        folder: The library.
        snapshot_id: The snapshot whose files are shared, as links.
        config: With the same `index_id`.

    Returns:
        The new snapshot's name, or that of the one in force where nothing changed.

    Raises:
        DataError: The manifest is damaged, or a file is gone.
    """
    place = folder / "snapshots" / snapshot_id
    manifest = read_manifest(place)
    with _unfinished(folder) as partial:
        for name, sealed in manifest["files"].items():
            check_file(place / name, sealed, whole=False)
            if not link_or_copy(place / name, partial / name):
                seal(partial / name)
    manifest |= {"config": config.to_dict(), "config_id": config.config_id}
    return _swap_in(folder, partial, manifest, replace_equal=False)


def adopt_snapshot(folder: Path, source: Path) -> str:
    """Copy a snapshot out of another library and swap it in; returns its name here.

    Raises:
        DataError: It is damaged.
    """
    manifest = read_manifest(source)

    def copy(name: str, target: Path) -> None:
        shutil.copyfile(source / name, target)
        if seal(target) != manifest["files"][name]:
            raise broken(source / name, "another checksum")

    snapshot_id = take_snapshot(folder, manifest, copy)
    put_in_force(folder, snapshot_id)
    return snapshot_id


def take_snapshot(
    folder: Path,
    manifest: dict[str, Any],
    fetch: Callable[[str, Path], None],
    *,
    number: int | None = None,
) -> str:
    """Bring the files of a snapshot from elsewhere; returns its name here, not in force yet.

    Args:
        folder: The library.
        manifest: From `parse_manifest`.
        fetch: Writes the file of a name to a path, as it was sealed; raises where it cannot.
        number: What its name begins with, in place of the next number. What is there under the
            same name is replaced.
    """
    with _unfinished(folder) as partial:
        for name, sealed in manifest["files"].items():
            fetch(name, partial / name)
            if seal(partial / name)["bytes"] != sealed["bytes"]:
                raise broken(partial / name, "another size")
    return _finish(partial, manifest, number=number)


@contextmanager
def _unfinished(folder: Path) -> Iterator[Path]:
    """Make a folder for a new snapshot; where its files cannot be written, none of them stays."""
    partial = _partial(folder)
    try:
        yield partial
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _partial(folder: Path) -> Path:
    """Make an empty folder for a new snapshot, and delete those of writers that died."""
    snapshots = folder / "snapshots"
    snapshots.mkdir(exist_ok=True)
    for leftover in snapshots.glob(f"{DROPPED}*"):
        shutil.rmtree(leftover)
    partial = snapshots / f"{DROPPED}{os.getpid()}"
    partial.mkdir()
    return partial


def _swap_in(folder: Path, partial: Path, manifest: dict[str, Any], *, replace_equal: bool) -> str:
    retention, before = read_retention(folder), _last_id(folder)
    if not replace_equal and before is not None and before.endswith(_as_written(manifest)[1]):
        shutil.rmtree(partial)
        drop_old(partial.parent, before, retention)
        return before
    snapshot_id = _finish(partial, manifest)
    put_in_force(folder, snapshot_id)
    return snapshot_id


def _finish(partial: Path, manifest: dict[str, Any], *, number: int | None = None) -> str:
    """Give an unfinished snapshot its manifest and its name."""
    snapshots, (content, digest) = partial.parent, _as_written(manifest)
    if number is None:
        number = 1 + max(map(number_of, snapshots.iterdir()), default=0)
    snapshot_id = f"{number:06d}-{digest}"
    write_atomically(partial / "manifest.json", content)
    sync_folder(partial)
    place, aside = snapshots / snapshot_id, snapshots / f"{DROPPED}{snapshot_id}"
    if place.exists():  # damaged, or it would not be brought again
        place.rename(aside)
    partial.rename(place)
    sync_folder(snapshots)
    shutil.rmtree(aside, ignore_errors=True)
    return snapshot_id


def _as_written(manifest: dict[str, Any]) -> tuple[bytes, str]:
    content = json.dumps(manifest, indent=1, sort_keys=True).encode()
    return content, hashlib.sha256(content).hexdigest()[:8]


def put_in_force(folder: Path, snapshot_id: str) -> None:
    """Make a snapshot that is there the one in force, and drop those that need not stay.

    Args:
        folder: The library, which nobody else writes to.
        snapshot_id: The snapshot.
    """
    snapshots, before, retention = folder / "snapshots", _last_id(folder), read_retention(folder)
    if before not in (None, snapshot_id) and (snapshots / str(before)).is_dir():
        note_end(snapshots / str(before))
    write_atomically(folder / "CURRENT", f"{snapshot_id}\n".encode())
    drop_old(snapshots, snapshot_id, retention)


def _last_id(folder: Path) -> str | None:
    try:
        return current_id(folder)
    except DataError:  # a damaged one is being replaced
        return None


def open_snapshot(
    folder: Path, snapshot_id: str, open_vectors: OpenVectors | None = None
) -> Snapshot:
    """Open a snapshot and check that its files are the ones that were written.

    Args:
        folder: The library.
        snapshot_id: The snapshot.
        open_vectors: Opens vectors and index elsewhere, in place of the files here.

    Raises:
        DataError: A file is missing, damaged or of another version; names file and remedy.
    """
    place = folder / "snapshots" / snapshot_id
    manifest = read_manifest(place)
    for name, sealed in manifest["files"].items():
        # Code that reads a graph or facets trusts their numbers, so these are checked whole.
        whole = name.endswith((".hnsw", _FACETS)) or sealed["bytes"] <= _CHECKED_BYTES
        check_file(place / name, sealed, whole=whole)
    config = Config.from_dict(manifest["config"])
    table = PhotoTable.open(place / _PHOTOS)
    labels = np.sort(table.labels)
    if labels.min(initial=0) < 0 or (np.diff(labels) == 0).any():
        raise broken(place / _PHOTOS, "labels below 0, or one of two photos")
    facets = Facets.open(place / _FACETS, table)
    if open_vectors is None:
        index = _open_index(place, config, table)
    else:
        index = open_vectors(folder, snapshot_id, config, table)
    return Snapshot(
        snapshot_id=snapshot_id,
        config=config,
        roots=read_roots(place),
        table=table,
        facets=facets,
        index=index,
        words=WordIndex.open(place, len(table)),
        next_label=manifest["next_label"],
        canaries=manifest["canaries"],
    )


def _open_index(place: Path, config: Config, table: PhotoTable) -> VectorIndex:
    vectors = map_vectors(place)
    if len(vectors) != len(table):
        problem = f"{len(vectors):,} vectors for {len(table):,} photos"
        raise broken(place / _VECTORS, problem)
    return open_index(place, vectors, config, labels=table.labels)


def map_vectors(place: Path) -> Embeddings:
    """Map the vectors of a snapshot, (n_photos, dim) unit rows, from its folder.

    Raises:
        DataError: The file holds something else, or cannot be read.
    """
    try:
        # A plain view of the map: the memmap class costs microseconds at every slice.
        vectors: Embeddings = np.asarray(np.load(place / _VECTORS, mmap_mode="r"))
        if vectors.dtype != np.float32 or vectors.ndim != 2:
            msg = f"{vectors.dtype} {vectors.shape} instead of rows of float32"
            raise ValueError(msg)
        if not vectors.flags.c_contiguous or not 1 <= vectors.shape[1] <= _LONGEST:
            msg = f"rows of {vectors.shape[1]} numbers that do not lie one after the other"
            raise ValueError(msg)
    except _UNREADABLE as error:
        raise broken(place / _VECTORS, str(error)) from error
    return vectors


def check_snapshot(folder: Path, snapshot_id: str) -> list[str]:
    """Read every file of a snapshot and compare checksums; returns their names.

    Raises:
        DataError: One differs; names it and the remedy.
    """
    place = folder / "snapshots" / snapshot_id
    files = read_manifest(place)["files"]
    for name, sealed in files.items():
        check_file(place / name, sealed, whole=True)
    return sorted(files)


def last_readable(folder: Path) -> tuple[Config, tuple[Root, ...], PhotoTable | None] | None:
    """Return what can be read of the newest snapshot with a sound manifest.

    For rebuilding a library that is damaged or of another version.

    Returns:
        Configuration, folders, and the photos if their file is sound; None where there is nothing.
    """
    for place in sorted((folder / "snapshots").glob("[0-9]*"), key=number_of, reverse=True):
        try:
            manifest = read_manifest(place, of_any_format=True)
            roots = read_roots(place, of_any_format=True)
        except DataError:
            continue
        photos = place / _PHOTOS
        try:
            check_file(photos, manifest["files"][photos.name], whole=True)
            table = PhotoTable.open(photos)
        except DataError:
            table = None
        return Config.from_dict(manifest["config"]), roots, table
    return None
