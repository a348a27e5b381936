"""The part of a snapshot that a shard answers for, mapped from the snapshot's own files.

DIR/cluster/indexes/KEY/   the index over a part, built once and named by the vectors it is over
DIR/cluster/cut-N.json     where a library of N shards was cut last

Nothing else is written for shards, so that a library may be cut anew at any time. An index that
nobody has used for a week is deleted when another one is built; who still has it open keeps it.
"""

from __future__ import annotations

import bisect
import errno
import hashlib
import itertools
import json
import logging
import os
import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from searchlab.cluster.shards import Part, cut_evenly
from searchlab.config import Config
from searchlab.errors import DataError, MismatchError
from searchlab.files import write_atomically
from searchlab.library.manifests import broken, check_file, parse_manifest
from searchlab.library.models import load_model_of
from searchlab.library.sample_texts import teach_texts
from searchlab.library.snapshots import map_vectors
from searchlab.models.protocol import Embeddings
from searchlab.models.remembered import named_by
from searchlab.photos.table import PhotoTable
from searchlab.search.indexes import VectorIndex, build_index, index_class, open_index

_VECTORS, _PHOTOS = "vectors.npy", "photos.columns"
_BLOCK_ROWS = 65_536
_KEPT_S = 7 * 24 * 3600  # seconds since an index was last in use, after which it may be deleted
_UNEVEN = 2.0  # a shard larger than this many times the mean is cut anew
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Where a shard's photos stand.

    Attributes:
        snapshot_id: The snapshot.
        manifest: SHA-256 of its manifest, by which a snapshot of the same name is told apart.
        start: Row of the first photo.
        stop: Row after the last one.
    """

    snapshot_id: str
    manifest: str
    start: int
    stop: int


def manifest_digest(folder: Path, snapshot_id: str) -> str:
    """Return the SHA-256 of a snapshot's manifest.

    Raises:
        MismatchError: It is not there.
        DataError: It cannot be read.
    """
    return hashlib.sha256(_read_manifest(folder, snapshot_id)).hexdigest()


def open_part(folder: Path, place: Place) -> Part:
    """Map a shard's part of a snapshot, and build or open the index over it.

    Args:
        folder: The library as this node sees it.
        place: The part.

    Raises:
        MismatchError: The snapshot here is another one, or there is none.
        DataError: Its files are damaged, or cannot be read.
    """
    content = _read_manifest(folder, place.snapshot_id)
    if hashlib.sha256(content).hexdigest() != place.manifest:
        msg = (
            f"snapshot {place.snapshot_id} in {folder} must be the one that is served, got another "
            "of that name; bring the same to every node, as by `searchlab pull`"
        )
        raise MismatchError(msg)
    snapshot = folder / "snapshots" / place.snapshot_id
    manifest = parse_manifest(content, snapshot)
    check_file(snapshot / _VECTORS, manifest["files"][_VECTORS], whole=False)
    vectors = map_vectors(snapshot)
    if place.stop > len(vectors):
        msg = f"a shard must be of {len(vectors)} photos, got {place}"
        raise MismatchError(msg)
    config = Config.from_dict(manifest["config"])
    return _open_index(folder, snapshot, vectors[place.start : place.stop], config)


def _open_index(folder: Path, snapshot: Path, vectors: Embeddings, config: Config) -> Part:
    if not index_class(config).approximate:  # which costs nothing to build
        return Part(build_index(vectors, config))
    kept = folder / "cluster" / "indexes" / _key(vectors, config)
    opened = _open_kept(kept, vectors, config)
    if opened is not None:
        return Part(opened, kept=kept)
    index = build_index(vectors, config)
    if index.wants_texts:
        with named_by(folder):
            model = load_model_of(folder, config)
        teach_texts(index, PhotoTable.open(snapshot / _PHOTOS), model)
    try:
        index = _keep_index(index, kept, vectors, config)
        _delete_old(kept.parent)
    except OSError as error:
        problem = (
            f"the index over a shard must be kept in {kept.parent}, got: {error}; it answers from "
            "memory, and is built anew at every start until there is room there"
        )
        return Part(index, problem)
    return Part(index, kept=kept)


def _open_kept(kept: Path, vectors: Embeddings, config: Config) -> VectorIndex | None:
    """Open an index that was kept; None where there is none, or a damaged one."""
    if not kept.is_dir():
        return None
    with suppress(DataError):
        index = open_index(kept, vectors, config, labels=np.arange(len(vectors)))
        note_use(kept)
        return index
    return None


def note_use(kept: Path) -> None:
    """Note that an index is in use, so that nobody deletes it within a week."""
    try:
        os.utime(kept)
    except OSError as error:
        # Another replica has deleted it, which is open here nevertheless; or this node only reads.
        if error.errno not in (errno.ENOENT, errno.EROFS, errno.EACCES, errno.EPERM):
            raise


def _keep_index(index: VectorIndex, kept: Path, vectors: Embeddings, config: Config) -> VectorIndex:
    """Write an index whole or not at all, in place of a damaged one.

    Returns:
        It, or the one that another replica has kept meanwhile: an engine's table that no folder
        names is soon dropped, so that the index of whoever was late must not be searched.
    """
    partial = _unfinished(kept.parent)
    partial.mkdir(parents=True)
    try:
        index.save(partial)
        while not _take_name(partial, kept):
            opened = _open_kept(kept, vectors, config)
            if opened is not None:
                return opened
            with suppress(FileNotFoundError):  # another replica has done so
                shutil.rmtree(kept.rename(_unfinished(kept.parent)))
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # it is still there only where it is not kept
    return index


def _take_name(partial: Path, kept: Path) -> bool:
    try:
        partial.rename(kept)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _delete_old(folder: Path) -> None:
    """Delete indexes that nobody opened for long, and what writers that died have left."""
    # A file beside them says whose the tables of an engine are, for as long as the library lives.
    for old in filter(Path.is_dir, folder.iterdir()):
        with suppress(FileNotFoundError):  # another replica deletes it, too
            if time.time() - old.stat().st_mtime > _KEPT_S:
                # Renamed first: an index is there as a whole or not at all.
                shutil.rmtree(old.rename(_unfinished(folder)))


def _unfinished(folder: Path) -> Path:
    return folder / f".{uuid.uuid4().hex}.part"


def _key(vectors: Embeddings, config: Config) -> str:
    digest = hashlib.sha256(config.index_id.encode())
    for start in range(0, len(vectors), _BLOCK_ROWS):
        digest.update(np.ascontiguousarray(vectors[start : start + _BLOCK_ROWS]).data)
    return digest.hexdigest()[:32]


def _read_manifest(folder: Path, snapshot_id: str) -> bytes:
    path = folder / "snapshots" / snapshot_id / "manifest.json"
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        msg = (
            f"snapshot {snapshot_id} must be in {folder} on every node, got none; bring it there, "
            "as by `searchlab pull`"
        )
        raise MismatchError(msg) from error
    except OSError as error:
        raise broken(path, error.strerror or str(error)) from error


# -- where shards begin ---------------------------------------------------------------------------


def cut_table(table: PhotoTable, n_shards: int, firsts: Sequence[str] = ()) -> list[range]:
    """Cut a table where it was cut before, so that shards whose photos stayed are the same.

    Args:
        table: The photos, sorted by `photo_id`.
        n_shards: How many.
        firsts: `photo_id` of the first photo of each shard of the snapshot before.

    Returns:
        A range for each shard; even ones where there was no cut before, or where one shard has
        grown to more than twice the mean.
    """
    even = cut_evenly(len(table), n_shards)
    if len(firsts) != n_shards:
        return even
    ids = table.column("photo_id")
    starts = [0, *(bisect.bisect_left(ids, first) for first in firsts[1:]), len(table)]
    ranges = [range(start, stop) for start, stop in itertools.pairwise(starts)]
    largest = max(map(len, ranges))
    return even if largest * n_shards > _UNEVEN * max(len(table), n_shards) else ranges


def first_ids(table: PhotoTable, ranges: Sequence[range]) -> list[str]:
    """Return the `photo_id` that each range begins with; for an empty one that of the next."""
    ids = table.column("photo_id")
    return [ids[rows.start] if rows.start < len(table) else "~" for rows in ranges]


def read_cut(folder: Path, n_shards: int) -> list[str]:
    """Return what `first_ids` said of a library of so many shards last; nothing if it never was."""
    try:
        firsts = json.loads(_cut_file(folder, n_shards).read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        return _cut_evenly(folder, n_shards, error)
    is_cut = isinstance(firsts, list) and all(isinstance(first, str) for first in firsts)
    if not is_cut or firsts != sorted(firsts):
        return _cut_evenly(folder, n_shards, "other content")
    return list(firsts)


def _cut_evenly(folder: Path, n_shards: int, problem: object) -> list[str]:
    _LOG.warning(
        "%s must tell where the library is cut, got: %s; it is cut evenly",
        _cut_file(folder, n_shards),
        problem,
    )
    return []


def write_cut(folder: Path, firsts: Sequence[str]) -> None:
    """Keep where a library was cut, so that a server cuts it alike when it is started again."""
    if read_cut(folder, len(firsts)) == list(firsts):
        return
    kept = _cut_file(folder, len(firsts))
    try:
        kept.parent.mkdir(exist_ok=True)
        write_atomically(kept, json.dumps(list(firsts)).encode())
    except OSError as error:
        # Processes of one server write the same, and may get into each other's way.
        if read_cut(folder, len(firsts)) != list(firsts):
            _LOG.warning(
                "%s must be written, got: %s; whoever starts anew may cut the library otherwise, "
                "and builds the indexes of its shards again",
                kept,
                error,
            )


def _cut_file(folder: Path, n_shards: int) -> Path:
    return folder / "cluster" / f"cut-{n_shards}.json"
