"""A library of exactly the photos of a dataset, made if there is none yet."""

from __future__ import annotations

import hashlib
import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from searchlab.errors import InputError
from searchlab.library.ingest import index_photos
from searchlab.library.known_photos import take_known
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from searchlab.library.walk import xmp_beside
from searchlab.photos.photo import photo_id_of
from searchlab.photos.sidecar import SIDECAR_NAME
from searchlab.progress import Progress

if TYPE_CHECKING:
    from searchlab.config import Config
    from searchlab.evaluation.datasets import Dataset
    from searchlab.library.library import Library
    from searchlab.photos.table import PhotoTable
    from searchlab.search.filters.photo_filter import PhotoFilter


@contextmanager
def open_dataset_library(
    dataset: Dataset,
    *,
    config: Config,
    library: Library | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Library]:
    """Yield a library that holds the photos of a dataset.

    Args:
        dataset: The dataset.
        config: Configuration of a new library.
        library: The library to yield, if there is one.
        cache: Folder that keeps a new library, which one process at a time makes; if left out, it
            is deleted after the block.
        progress: Shows the indexing.
    """
    if library is not None:
        yield library
    elif cache is not None:
        with made_by_one(cache):
            made = dataset_library(dataset, cache, config=config, progress=progress)
        yield made
    else:
        with tempfile.TemporaryDirectory(prefix="searchlab-") as folder:
            yield dataset_library(dataset, Path(folder), config=config, progress=progress)


@contextmanager
def made_by_one(cache: Path) -> Iterator[None]:
    """Wait for other processes that make a library in the folder."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache / "making.lock")
        lock.acquire()
    except OSError as error:
        msg = f"a cache must be a folder that can be written, got {cache}: {error.strerror}"
        raise InputError(msg) from error
    try:
        yield
    finally:
        lock.release()


def dataset_library(
    dataset: Dataset,
    cache: Path,
    *,
    config: Config,
    known: Library | None = None,
    progress: Progress | None = None,
) -> Library:
    """Return the library of a dataset's photos in a folder, and index it if it is new.

    Datasets of the same photos share one library, so photos are embedded once.

    Args:
        dataset: The dataset; its photos stay where they are, and the library links to them.
        cache: Folder of such libraries, `photos-<hash>` for each set of photos.
        config: Configuration of a new library. Its model writes the descriptions that `captions`
            reads, so use the default one if figures are to be compared.
        known: A library of which a new one takes over what was computed of the same photos.
        progress: Shows the indexing.

    Raises:
        InputError: The folder cannot be written, or the dataset has no photo that can be read.
    """
    files = {_photo_id(record): Path(str(record["file"])) for record in dataset.records}
    listed = "".join(f"{photo_id} {file}\n" for photo_id, file in sorted(files.items()))
    digest = hashlib.sha256(listed.encode()).hexdigest()[:12]
    library = create_library(cache / f"photos-{digest}" / "library")
    folder = _link_files(dataset, files, library.folder.parent / "links")
    is_new = library.snapshot() is None
    if is_new and known is not None:
        take_known(library, known)
    roots = [check_root(folder)]
    index_photos(library, roots, config=config if is_new else None, progress=progress)
    return library


def newest_library_in(cache: Path) -> Path | None:
    """Find the library that was made last in a folder of them; None if there is none."""
    made = [path for path in cache.glob("photos-*/library") if path.is_dir()]
    return max(made, key=lambda path: path.stat().st_mtime, default=None)


def _link_files(dataset: Dataset, files: Mapping[str, Path], folder: Path) -> Path:
    """Make a folder of links to the photos, with a sidecar of their records."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for record in dataset.records:
        photo_id = _photo_id(record)
        link = folder / f"{photo_id}{files[photo_id].suffix}"
        target = files[photo_id].resolve()
        _link(link, target)
        for beside in xmp_beside(files[photo_id]):
            ending = beside.name[len(files[photo_id].stem) :]
            _link(folder / f"{photo_id}{ending}", beside.resolve())
        lines.append(json.dumps({**record, "file": link.name}, ensure_ascii=False))
    text = "".join(f"{line}\n" for line in lines)
    (folder / SIDECAR_NAME).write_text(text, encoding="utf-8")
    return folder


def _link(link: Path, target: Path) -> None:
    if not (link.is_symlink() and link.readlink() == target):
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _photo_id(record: Mapping[str, str | None]) -> str:
    return photo_id_of(record["source"] or "", record["source_photo_id"] or "")


def check_filters(table: PhotoTable, dataset: Dataset) -> None:
    """Check that the relevant photos of each query pass its own filter.

    Args:
        table: Table of photos of the dataset; photos that it lacks are not checked.
        dataset: A dataset whose queries may have filters.

    Raises:
        InputError: A relevant photo does not pass the filter of its query.
    """
    ids = table.photo_ids(range(len(table)))
    excluded: dict[PhotoFilter, frozenset[str]] = {}
    for query in dataset.queries:
        if query.filter.is_empty:
            continue
        if query.filter not in excluded:
            failing = ~query.filter.mask(table)
            excluded[query.filter] = frozenset(itertools.compress(ids, failing))
        grades = dataset.qrels[query.query_id]
        wrong = [i for i in sorted(excluded[query.filter].intersection(grades)) if grades[i] >= 1]
        if wrong:
            msg = (
                f"relevant photos must pass the filter of their query, got {wrong[0]!r} for "
                f"{query.query_id!r}, which it shuts out; take it out of the judgments, or put "
                "the filter on with Dataset.under"
            )
            raise InputError(msg)


def describe_photos(table: PhotoTable, dataset: Dataset) -> dict[str, Any]:
    """Return `n_photos`, the photos of a dataset that a library holds, and `hash` of their files.

    Raises:
        InputError: The library holds none of them.
    """
    ids = table.photo_ids(range(len(table)))
    lines = [
        f"{photo_id} {content}\n"
        for photo_id, content in zip(ids, table.texts("sha256"), strict=True)
        if photo_id in dataset.photo_ids
    ]
    if not lines:
        msg = (
            f"the library must hold photos of dataset {dataset.name!r}, got none of its "
            f"{len(dataset.photo_ids)} among {len(ids)}; index {dataset.folder} first"
        )
        raise InputError(msg)
    digest = hashlib.sha256("".join(lines).encode())
    return {"n_photos": len(lines), "hash": digest.hexdigest()[:12]}
