"""Parts: what a worker computed of one shard of pictures, written whole, with a marker of its own.

PLAN.json           the shards of the run under way, written before the first of them is begun
parts/SHARD.db      facts and vectors of a shard, as a cache of its own with its thumbnails
parts/SHARD.json    the marker, written last: checksum and size of the part, what was refused

A shard is named by what is asked for, so that a task that runs twice writes the same. Nothing is
found by listing: a plan names its shards, and a shard is done if its marker can be read.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from searchlab.cluster.storage import Store
from searchlab.errors import DataError, NotFoundError
from searchlab.files import sha256_of, write_once
from searchlab.library.cache import ContentCache, Facts
from searchlab.library.decoding import is_kept, thumbnail_path
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.photos.sidecar import Skipped

PLAN: Final = "PLAN.json"
_FORMAT: Final = 1


_ROOMS: Final = ("config", "library", "models", "photos")  # whose code makes a part


@cache
def code_here() -> str:
    """16 hex digits of the code that reads and embeds pictures, as it is installed here."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for room in _ROOMS for path in (package / room).rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Shard:
    """Pictures that one task reads, and the models that embed them.

    Attributes:
        files: Content digest -> path, as every worker sees it.
        models: (spec, model_id, dim) of each model.
    """

    files: dict[str, str]
    models: tuple[tuple[str, str, int], ...]

    @property
    def name(self) -> str:
        """32 hex digits that are the same for the same contents and models."""
        asked = json.dumps([_FORMAT, sorted(self.files), [one[1] for one in self.models]])
        return hashlib.sha256(asked.encode()).hexdigest()[:32]


def cut_shards(
    todo: Mapping[str, Sequence[Embedder]],
    files: Mapping[str, Path],
    *,
    at_once: int,
    most_pictures: int,
    most_bytes: int,
) -> list[Shard]:
    """Cut pictures into shards of whole batches, so that batches are as on one machine.

    Args:
        todo: Digest -> models whose vectors are missing.
        files: Digest -> a file that holds it.
        at_once: Pictures of a batch.
        most_pictures: Pictures of a shard, at most, if that is a batch or more.
        most_bytes: Bytes of a shard's files after which it takes no further batch.
    """
    groups: dict[tuple[tuple[str, str, int], ...], list[str]] = {}
    for digest, missing in todo.items():
        models = tuple((model.name, model.model_id, model.dim) for model in missing)
        groups.setdefault(models, []).append(digest)
    shards = []
    for models, digests in groups.items():
        chosen: dict[str, str] = {}
        n_bytes = 0
        for start in range(0, len(digests), at_once):
            batch = {digest: str(files[digest]) for digest in digests[start : start + at_once]}
            if chosen and (len(chosen) + len(batch) > most_pictures or n_bytes >= most_bytes):
                shards.append(Shard(chosen, models))
                chosen, n_bytes = {}, 0
            chosen |= batch
            n_bytes += sum(_size(path) for path in batch.values())
        shards.append(Shard(chosen, models))
    return shards


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:  # whoever reads it refuses and reports the picture
        return 0


def write_plan(store: Store, shards: Sequence[Shard]) -> None:
    """Write down what is about to be done."""
    stored = {"format": _FORMAT, "shards": [asdict(shard) for shard in shards]}
    store.write(PLAN, json.dumps(stored).encode())


def read_plan(store: Store) -> list[Shard]:
    """Read what the run before was about to do; nothing where it finished.

    Raises:
        DataError: The plan is damaged.
    """
    try:
        stored = json.loads(store.read(PLAN))
        if stored["format"] != _FORMAT:
            return []
        return [
            Shard(
                shard["files"],
                tuple((spec, model_id, int(dim)) for spec, model_id, dim in shard["models"]),
            )
            for shard in stored["shards"]
        ]
    except NotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{store.place(PLAN)} must be a plan as it was written, got: {error}; delete it"
        raise DataError(msg) from error


def is_done(store: Store, shard: Shard) -> bool:
    """Whether a shard's part was written and marked."""
    return store.size(_marker_of(shard)) is not None


def write_part(
    store: Store, shard: Shard, folder: Path, thumbnails: Path, problems: Sequence[Skipped]
) -> None:
    """Write what was computed, then its marker.

    Args:
        store: Where the driver reads.
        shard: What was asked for.
        folder: Holds the closed cache as `cache.db`.
        thumbnails: Folder of the small pictures, which are put beside the facts.
        problems: Pictures that were refused.
    """
    path = folder / "cache.db"
    with closing(sqlite3.connect(path)) as db:
        with db:
            db.execute("CREATE TABLE thumbnails (sha256 TEXT PRIMARY KEY, webp BLOB NOT NULL)")
            db.executemany("INSERT INTO thumbnails VALUES (?, ?)", _small(shard, thumbnails))
        db.execute("PRAGMA journal_mode=DELETE")  # one file, without a journal beside it
    marker = {
        "sha256": sha256_of(path),
        "bytes": path.stat().st_size,
        "problems": [asdict(problem) for problem in problems],
    }
    store.upload(path, _part_of(shard))
    store.write(_marker_of(shard), json.dumps(marker).encode())


def take_part(
    store: Store, shard: Shard, cache: ContentCache, thumbnails: Path
) -> list[Skipped] | None:
    """Take a shard's part into the library's cache; returns what was refused.

    A part that is lost, damaged or not whole is as if it had never been: None. One that there is no
    room for here stays where it is.

    Raises:
        OSError: A small picture cannot be written.
        sqlite3.DatabaseError: The cache cannot be written.
        SearchlabError: The store cannot be reached or read.
    """
    try:
        marker: dict[str, Any] = json.loads(store.read(_marker_of(shard)))
        problems = [Skipped(**problem) for problem in marker["problems"]]
        with TemporaryDirectory(prefix="searchlab-part-") as folder:
            path = Path(folder) / "cache.db"
            store.download(_part_of(shard), path, sha256=marker["sha256"], n_bytes=marker["bytes"])
            small, facts, vectors = _read(path, shard)
    except (NotFoundError, DataError, ValueError, KeyError, TypeError):
        return None
    refused = {problem.where for problem in problems}
    # A picture of which nothing is said would be missing in the library without a word.
    if any(digest not in facts and path not in refused for digest, path in shard.files.items()):
        return None
    for digest, picture in small:
        write_once(thumbnail_path(thumbnails, digest), picture)
    # Last, and in one transaction: until then the shard counts as not done.
    cache.keep(facts, vectors)
    return problems


def drop_part(store: Store, shard: Shard) -> None:
    """Delete a part, its marker first, so that no marker stands for a part that is gone."""
    store.delete(_marker_of(shard))
    store.delete(_part_of(shard))


def _small(shard: Shard, thumbnails: Path) -> Iterator[tuple[str, bytes]]:
    for digest in shard.files:
        path = thumbnail_path(thumbnails, digest)
        if is_kept(path):
            yield digest, path.read_bytes()


def _read(
    path: Path, shard: Shard
) -> tuple[list[tuple[str, bytes]], dict[str, Facts], list[tuple[str, list[str], Embeddings]]]:
    """Read the small pictures, facts and vectors of a part."""
    with closing(sqlite3.connect(path)) as db:
        small = db.execute("SELECT sha256, webp FROM thumbnails").fetchall()
    digests = list(shard.files)
    with ContentCache(path) as part:
        vectors = []
        for _, model_id, dim in shard.models:
            known = part.known_vectors(model_id, digests)
            keys = [digest for digest in digests if digest in known]
            vectors.append((model_id, keys, part.vectors(model_id, keys, dim)))
        return small, part.facts(digests), vectors


def _part_of(shard: Shard) -> str:
    return f"parts/{shard.name}.db"


def _marker_of(shard: Shard) -> str:
    return f"parts/{shard.name}.json"
