"""Tables of foreign engines: one for each built index, and what tells whose it is.

A table is written under a random name and noted in the snapshot's folder when the index is saved.
Nobody tells an engine that a snapshot was deleted. So whoever saves a snapshot drops the tables of
the same library that no snapshot on disk names, and those that were built and never saved.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, SearchlabError, quote
from searchlab.files import id_of_folder, write_atomically
from searchlab.models.protocol import Embeddings

FILE = "engine.json"
_OWNER_FILE = "engine-owner.json"
PREFIX = "searchlab_"
_NAME = f"^{PREFIX}[0-9a-f]{{32}}$"
REMEDY = "write it again with `searchlab index --rebuild`"
_FORGOTTEN_S = 7 * 86_400.0  # how long a built table may wait to be saved
_PROBES = 64  # rows of which the fingerprint is taken


@dataclass(frozen=True)
class Table:
    """A table of an engine.

    Attributes:
        name: Its name there.
        n_rows: Rows that it holds.
        fingerprint: 32 hex digits of the hash over its shape and some of its rows.
    """

    name: str
    n_rows: int
    fingerprint: str

    @classmethod
    def of(cls, vectors: Embeddings) -> Table:
        """Name a new table for (n_photos, dim) rows."""
        return cls(f"{PREFIX}{uuid.uuid4().hex}", len(vectors), fingerprint_of(vectors))


class _Named(msgspec.Struct):
    """What a snapshot's folder says of a table, which a stranger may have written."""

    engine: str
    name: Annotated[str, msgspec.Meta(pattern=_NAME)]
    n_rows: Annotated[int, msgspec.Meta(ge=0)]
    fingerprint: str


@dataclass(frozen=True)
class Owned:
    """What an engine keeps beside a table.

    Attributes:
        fingerprint: That of the table.
        library: Id of the library whose snapshot names it; empty until it was saved.
        made: Seconds since 1970 when the table was built.
    """

    fingerprint: str
    library: str = ""
    made: float = 0.0

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str | None) -> Owned | None:
        """Read it; None where it is not ours."""
        try:
            values = json.loads(text or "")
            return cls(str(values["fingerprint"]), str(values["library"]), float(values["made"]))
        except (ValueError, KeyError, TypeError):
            return None


class Engine(ABC):
    """Where tables lie. Every method raises `UnavailableError` where the engine is not there."""

    name: str
    most_rows: int
    """Rows that one search may ask for."""

    @abstractmethod
    def write(self, table: Table, vectors: Embeddings, **settings: int) -> None:
        """Write (n_photos, dim) rows and their graph; on failure nothing of it stays."""

    @abstractmethod
    def check(self, table: Table, probes: NDArray[np.int64]) -> Embeddings:
        """Return some rows of a table, in the order asked for.

        Raises:
            DataError: It is not there, or is another one.
        """

    @abstractmethod
    def search(self, table: Table, query: Embeddings, k: int, ef: int) -> NDArray[np.int64]:
        """Return up to k rows near a query, each once, in any order.

        Raises:
            DataError: The table is gone.
        """

    @abstractmethod
    def own(self, table: Table, library: str) -> None:
        """Note that a library's snapshot names a table."""

    @abstractmethod
    def list_tables(self) -> dict[str, Owned]:
        """Return every table of any library, by name."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Delete a table if it is there."""


def is_ours(name: str) -> bool:
    """Tell whether a table may be one of a library; others choose names for theirs, too."""
    return re.match(_NAME, name) is not None


def fingerprint_of(vectors: Embeddings) -> str:
    """Hash the shape of (n_photos, dim) rows and some of them."""
    digest = hashlib.sha256(repr(vectors.shape).encode())
    digest.update(np.ascontiguousarray(vectors[probes_of(len(vectors))]).tobytes())
    return digest.hexdigest()[:32]


def probes_of(n_rows: int) -> NDArray[np.int64]:
    """Choose rows spread over all; (n,) int64, ascending, each once."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, _PROBES)).astype(np.int64))


def save_name(engine: Engine, table: Table, folder: Path) -> None:
    """Note a table in a snapshot's folder, and drop the tables that no snapshot needs any more.

    Args:
        engine: Where the table lies.
        table: The table.
        folder: The new snapshot's folder, beside those of the library's other snapshots.
    """
    # A copy of the library has its own, so that it drops no tables of the original.
    library = id_of_folder(folder.resolve().parent, _OWNER_FILE)
    write_atomically(folder / FILE, json.dumps({"engine": engine.name, **asdict(table)}).encode())
    # After the file: who saves at the same time drops what is owned and named nowhere. So what is
    # owned is read first, and the names twice, since a folder may get another one meanwhile.
    engine.own(table, library)
    tables = engine.list_tables()
    kept = {table.name, *_named_beside(folder), *_named_beside(folder)}
    for name, owned in tables.items():
        forgotten = not owned.library and time.time() - owned.made > _FORGOTTEN_S
        if name not in kept and (owned.library == library or forgotten):
            # What another role made, or is busy with, stays; the next run tries again.
            with suppress(SearchlabError):
                engine.drop(name)


def read_name(folder: Path, engine: str) -> Table:
    """Read which table a snapshot's folder names.

    Raises:
        DataError: The file is missing or damaged.
    """
    path = folder / FILE
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_Named)
        if stored.engine != engine:
            raise ValueError(quote(stored.engine))
        return Table(stored.name, stored.n_rows, stored.fingerprint)
    except (OSError, ValueError, RecursionError) as error:
        msg = f"{path} must name this snapshot's table in {engine}, got: {error}; {REMEDY}"
        raise DataError(msg) from error


def _named_beside(folder: Path) -> set[str]:
    names = set()
    for path in folder.resolve().parent.glob(f"*/{FILE}"):
        try:
            names.add(msgspec.json.decode(path.read_bytes(), type=_Named).name)
        except (OSError, ValueError, RecursionError):
            continue  # a snapshot that cannot be opened needs no table
    return names
