"""ContentCache: what was computed from a file's bytes, so that nothing is computed twice.

Everything is keyed by content: a moved file is known, an edited one is new. SQLite's journal makes
each batch all or nothing, so that a killed writer loses at most the batch under way.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from searchlab.errors import ConflictError, DataError, SearchlabError
from searchlab.models.protocol import Embeddings
from searchlab.photos.sidecar import NO_RECORD, Record

_VERSION = 1
_FACTS_VERSION = 3
"""Of how facts are computed. Facts of another version are computed again, vectors are kept."""
_CHUNK = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
    path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, sha256 TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (sha256 TEXT PRIMARY KEY, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (
    model_id TEXT NOT NULL, key TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model_id, key)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Facts:
    """What is computed from a picture's bytes.

    Attributes:
        width: Pixels of the displayed picture.
        height: Pixels of the displayed picture.
        shade: Dominant colour as a 24-bit number.
        palette: Up to five (hex, share) pairs.
        blur_hash: Compact placeholder.
        problem: Why the picture is refused; empty for a good one.
        record: What the file says of the photo: its XMP, IPTC and EXIF.
    """

    width: int = 0
    height: int = 0
    shade: int = 0
    palette: tuple[tuple[str, float], ...] = ()
    blur_hash: str = ""
    problem: str = ""
    record: Record = NO_RECORD

    @property
    def shades(self) -> tuple[str, ...]:
        """The dominant colour and those of the palette, as `#rrggbb`."""
        return f"#{self.shade:06x}", *(shade for shade, _ in self.palette)


class ContentCache:
    """Digests of files, and facts and vectors by content.

    Several processes may use it: what one of them adds, all can read.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the cache.

        Raises:
            DataError: The file is no cache, damaged, or of a newer version.
        """
        self._path = path
        try:
            self._db = sqlite3.connect(path, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                msg = f"version {version}, this searchlab writes {_VERSION}"
                raise sqlite3.DatabaseError(msg)
            if version == 0:
                self._db.executescript(_SCHEMA)
                self._db.execute(f"PRAGMA user_version={_VERSION}")
        except sqlite3.DatabaseError as error:
            if hasattr(self, "_db"):
                self._db.close()
            raise _describe_error(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._db.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise _describe_error(self._path, error) from error

    def known_file(self, path: str, size: int, mtime_ns: int) -> str | None:
        """Return the digest of a file if it has not changed since it was read; None otherwise."""
        sql = "SELECT sha256 FROM files WHERE path=? AND size=? AND mtime_ns=?"
        row = self._db.execute(sql, (path, size, mtime_ns)).fetchone()
        return None if row is None else str(row[0])

    def forget_file(self, path: str) -> None:
        """Forget a file, so that it is read again."""
        with self._db:
            self._db.execute("DELETE FROM files WHERE path=?", (path,))

    def keep_files(self, rows: Iterable[tuple[str, int, int, str]]) -> None:
        """Remember (path, size, mtime_ns, sha256) of files that were read."""
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", rows)

    def facts(self, digests: Sequence[str]) -> dict[str, Facts]:
        """Return what is known of some contents, as this version of searchlab computes it."""
        sql = "SELECT sha256, facts FROM contents WHERE sha256 IN ({})"
        try:
            known = {digest: _facts(text) for digest, text in self._by_keys(sql, digests)}
            return {digest: facts for digest, facts in known.items() if facts is not None}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            msg = f"{self._path} must hold facts as JSON, got: {error}; delete it and index again"
            raise DataError(msg) from error

    def known_vectors(self, model_id: str, keys: Sequence[str]) -> set[str]:
        """Return which of some keys have a vector of a model."""
        sql = "SELECT key, 1 FROM vectors WHERE model_id=? AND key IN ({})"
        return {key for key, _ in self._by_keys(sql, keys, model_id)}

    def vectors(self, model_id: str, keys: Sequence[str], dim: int) -> Embeddings:
        """Return the rows of a model for keys that are all known.

        Args:
            model_id: The model.
            keys: Content digests.
            dim: Components of a row.

        Returns:
            (n_keys, dim) float32.

        Raises:
            DataError: A key is missing or its row has another length.
        """
        sql = "SELECT key, vector FROM vectors WHERE model_id=? AND key IN ({})"
        blobs = dict(self._by_keys(sql, keys, model_id))
        rows = np.zeros((len(keys), dim), dtype=np.float32)
        for row, key in zip(rows, keys, strict=True):
            blob = blobs.get(key)
            if blob is None or len(blob) != 4 * dim:
                msg = (
                    f"{self._path} must hold a vector of {model_id} for {key}, got none; "
                    "delete it and index again"
                )
                raise DataError(msg)
            row[:] = np.frombuffer(blob, dtype="<f4")
        return rows

    def take_from(self, other: Path) -> None:
        """Add the facts and vectors of another cache that are not here; all of them or none.

        Raises:
            DataError: The other is damaged, or of another version.
        """
        with ContentCache(other):  # which says what is wrong with it
            self._db.execute("ATTACH DATABASE ? AS other", (str(other),))
            try:
                with self._db:
                    for table in ("contents", "vectors"):
                        self._db.execute(
                            f"INSERT OR IGNORE INTO {table} SELECT * FROM other.{table}"
                        )
            finally:
                self._db.execute("DETACH DATABASE other")

    def prune(self, digests: set[str], keys: set[str], model_ids: set[str] | None = None) -> None:
        """Forget everything but some contents and some vectors, and free the disk space.

        Args:
            digests: Contents to keep.
            keys: Keys of the vectors to keep.
            model_ids: Models whose vectors to keep; every one if left out.
        """
        with self._db:
            rows = self._db.execute("SELECT sha256 FROM contents").fetchall()
            unused = [row for row in rows if row[0] not in digests]
            self._db.executemany("DELETE FROM contents WHERE sha256=?", unused)
            self._db.executemany("DELETE FROM files WHERE sha256=?", unused)
            rows = self._db.execute("SELECT DISTINCT key FROM vectors").fetchall()
            unused = [row for row in rows if row[0] not in keys]
            self._db.executemany("DELETE FROM vectors WHERE key=?", unused)
            rows = self._db.execute("SELECT DISTINCT model_id FROM vectors").fetchall()
            if model_ids is not None:
                unused = [row for row in rows if row[0] not in model_ids]
                self._db.executemany("DELETE FROM vectors WHERE model_id=?", unused)
        self._db.execute("VACUUM")

    def _by_keys(self, sql: str, keys: Sequence[str], *first: str) -> Iterator[tuple[str, Any]]:
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            marked = sql.format(",".join("?" * len(chunk)))
            yield from self._db.execute(marked, (*first, *chunk)).fetchall()

    def keep(
        self,
        facts: Mapping[str, Facts] | None = None,
        vectors: Iterable[tuple[str, Sequence[str], Embeddings]] = (),
    ) -> None:
        """Write a batch, all of it or none.

        Args:
            facts: Facts by content digest.
            vectors: (model_id, keys, rows) triples.
        """
        with self._db:
            self._db.executemany(
                "INSERT OR REPLACE INTO contents VALUES (?, ?)",
                ((digest, _facts_text(one)) for digest, one in (facts or {}).items()),
            )
            for model_id, keys, rows in vectors:
                self._db.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                    (
                        (model_id, key, row.astype("<f4").tobytes())
                        for key, row in zip(keys, rows, strict=True)
                    ),
                )


def _describe_error(path: Path, error: sqlite3.DatabaseError) -> SearchlabError:
    # Only a damaged file may be deleted: it holds every embedding.
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ConflictError(f"{path} is in use by another process; wait until it has finished")
    not_writable = (
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY),
        *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL),
    )
    if code in not_writable or (code == sqlite3.SQLITE_CANTOPEN and not path.is_dir()):
        return SearchlabError(f"{path} must be a file that can be written, got: {error}")
    msg = f"{path} must be a cache of this version, got: {error}; delete it and index again"
    return DataError(msg)


def _facts_text(facts: Facts) -> str:
    return json.dumps({"version": _FACTS_VERSION, **asdict(facts)})


def _facts(text: str | bytes) -> Facts | None:
    values = json.loads(text)
    if values.pop("version", 1) != _FACTS_VERSION:
        return None
    values["palette"] = tuple((shade, share) for shade, share in values["palette"])
    record = values["record"]
    values["record"] = Record(**{**record, "tags": tuple(record["tags"])})
    return Facts(**values)
