"""Library: photos, vectors and index on disk; open it, search it, change it.

DIR/library.json      format, and when it was made
DIR/CURRENT           name of the snapshot in force
DIR/indexed.json      when it was indexed last, and what was skipped
DIR/snapshots/NAME/   photos, facets, vectors, the index's files, manifest.json; never changed
DIR/cache.db          facts and vectors by content, so that nothing is embedded twice
DIR/thumbnails/       small pictures by content
DIR/renditions/       larger ones that a server has made on demand
DIR/search.html       the page that `searchlab search --open` shows
DIR/cluster/          what workers elsewhere have finished and this library has not taken in yet
DIR/models/           models of one's own: `searchlab models adapt` and `migrate`
DIR/secret.key        signs cursors
DIR/writer.lock       held by the process that writes
"""

from __future__ import annotations

import datetime
import json
import secrets
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import (
    ConflictError,
    DataError,
    ExpiredCursorError,
    InputError,
    NotFoundError,
    shell_word,
)
from searchlab.files import write_atomically
from searchlab.library.building import build_snapshot
from searchlab.library.cache import ContentCache
from searchlab.library.catalog import build_vectors
from searchlab.library.decoding import is_kept, thumbnail_path
from searchlab.library.engines import Engines
from searchlab.library.models import load_model_of
from searchlab.library.roots import (
    KEY_FILE,
    LIBRARY_FILE,
    Root,
    read_description,
    refuse_backup,
    refuse_pictures,
)
from searchlab.library.sample_texts import teach_texts
from searchlab.library.snapshots import (
    OpenVectors,
    Snapshot,
    check_snapshot,
    current_id,
    open_snapshot,
)
from searchlab.photos.photo import Photo
from searchlab.photos.table import PhotoTable
from searchlab.progress import Progress
from searchlab.search.cursors import KEY_BYTES, Cursor, read_key
from searchlab.search.engine import SearchEngine
from searchlab.search.indexes import build_index
from searchlab.search.queries import DEFAULT_PER_PAGE, Page, Query
from searchlab.search.words.fields import NAMES
from searchlab.search.words.index import WordIndex

_FORMAT = 3  # of the folder; snapshots have their own


class Library:
    """A searchlab library on disk.

    Reading needs no lock: a snapshot never changes once it is in force.

    Attributes:
        folder: The library's folder.
        key: Secret that signs its tokens.
        for_others: Whether words are looked up only in texts that others are shown.
    """

    def __init__(
        self, folder: Path, *, for_others: bool = False, open_vectors: OpenVectors | None = None
    ) -> None:
        """Open a library that exists; `create_library` makes one.

        Args:
            folder: The library's folder.
            for_others: Whether words are looked up only in texts that others are shown.
            open_vectors: Opens the vectors that are searched where they do not lie here.

        Raises:
            NotFoundError: There is none.
            DataError: It is of another version, or damaged.
        """
        self.folder, self.for_others = folder, for_others
        description = folder / LIBRARY_FILE
        try:
            stored_format = read_description(folder).get("format")
        except FileNotFoundError as error:
            command = f"`searchlab index --data {shell_word(folder)} PHOTOS` or `searchlab demo`"
            msg = f"a library must hold library.json, got {folder} without; make one with {command}"
            raise NotFoundError(msg) from error
        if stored_format != _FORMAT:
            msg = (
                f"{description} must be of format {_FORMAT}, got {stored_format!r}; "
                "index into a new folder"
            )
            raise DataError(msg)
        self.key = read_key(folder / KEY_FILE)
        self._engines = Engines(
            folder, self.key, self.thumbnail, for_others=for_others, open_vectors=open_vectors
        )
        self._live: dict[tuple[str, str], NDArray[np.bool_]] = {}
        self._opening_live = threading.Lock()

    def __repr__(self) -> str:
        return f"<Library {self.folder}>"

    @property
    def thumbnails(self) -> Path:
        """Folder of the small pictures."""
        return self.folder / "thumbnails"

    def cache(self) -> ContentCache:
        """Open the cache of facts and vectors; a context manager."""
        return ContentCache(self.folder / "cache.db")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the library against other writers.

        Raises:
            ConflictError: Somebody else is writing.
        """
        from filelock import FileLock, Timeout

        refuse_backup(self.folder)
        lock = FileLock(self.folder / "writer.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            msg = f"only one process may write to {self.folder}, and another one does; wait for it"
            raise ConflictError(msg) from error
        except OSError as error:
            msg = f"{self.folder} must be a folder that can be written, got: {error.strerror}"
            raise InputError(msg) from error
        try:
            yield
        finally:
            lock.release()

    def snapshot(self) -> Snapshot | None:
        """Open the state in force; None where nothing was indexed yet.

        Raises:
            DataError: It is damaged or of another version.
        """
        name = current_id(self.folder)
        return None if name is None else open_snapshot(self.folder, name)

    @property
    def engine(self) -> SearchEngine:
        """The engine over the snapshot in force.

        Raises:
            NotFoundError: Nothing was indexed yet.
            DataError: The snapshot is damaged.
            MismatchError: The installed model is not the one that embedded the photos.
        """
        name = current_id(self.folder)
        if name is None:
            raise NotFoundError(_nothing_indexed(self.folder))
        return self._engines.of(name)

    def search(
        self,
        query: Query | str | None = None,
        *,
        per_page: int = DEFAULT_PER_PAGE,
        page: int = 1,
        cursor: str | None = None,
        audience: str = "",
    ) -> Page:
        """Answer a query, a further page of it, or go on from a cursor; see `SearchEngine.search`.

        A cursor of an earlier snapshot continues in that snapshot while it exists.
        """
        if cursor is None:
            return self.engine.search(query, per_page=per_page, page=page, audience=audience)
        opened = self.open_cursor(cursor, audience=audience)
        engine, live = self.open_kept(opened.snapshot_id)
        return engine.page(engine.slice(cursor=opened, page=page, audience=audience, live=live))

    def open_cursor(self, token: str, *, audience: str) -> Cursor:
        """Open a token of this library.

        Raises:
            CursorError: It is no token of this library, or one of another audience.
        """
        return Cursor.unseal(token, self.key, audience=audience)

    def open_kept(self, name: str) -> tuple[SearchEngine, NDArray[np.bool_] | None]:
        """Open a snapshot that is still kept, and find which of its photos are still there.

        Returns:
            Its engine, and (n_photos,) bool whether each photo is in the snapshot in force; None
            instead of the mask if it is that snapshot itself.

        Raises:
            ExpiredCursorError: The snapshot is gone.
        """
        snapshot_folder = self.folder / "snapshots" / name
        msg = f"cursor must belong to a snapshot that is kept, got one of {name!r}; search again"
        if not snapshot_folder.is_dir():
            raise ExpiredCursorError(msg)
        try:
            engine = self._engines.of(name)
        except DataError:
            if snapshot_folder.is_dir():
                raise
            raise ExpiredCursorError(msg) from None  # deleted while it was opened
        current = current_id(self.folder)
        if current is None or current == name:
            return engine, None
        with self._opening_live:
            live = self._live.get((name, current))
            if live is None:
                # Only its photo table: opening the whole new engine would make this request wait.
                table = PhotoTable.open(self.folder / "snapshots" / current / "photos.columns")
                live = engine.table.rows_in(table)
                known = {pair: mask for pair, mask in self._live.items() if pair[1] == current}
                self._live = known | {(name, current): live}
        return engine, live

    def thumbnail(self, photo: Photo) -> Path | None:
        """Find the small picture of a photo; None where there is none."""
        path = thumbnail_path(self.thumbnails, photo.sha256)
        return path if photo.sha256 and is_kept(path) else None

    def engine_for(
        self,
        config: Config,
        *,
        withheld: frozenset[str] = frozenset(),
        photo_ids: Collection[str] | None = None,
        progress: Progress | None = None,
        cache: ContentCache | None = None,
    ) -> SearchEngine:
        """Build an engine over the same photos under another configuration, in memory.

        Args:
            config: Its `model_id` is filled in.
            withheld: Photo fields that neither the text index nor models of descriptions may read,
                because the judgments were made from them, or because nobody wrote them to be read.
            photo_ids: The photos to search, all if left out; ids of no photo are ignored.
            progress: Told about what must be embedded.
            cache: Holds the vectors; the library's own if left out.

        Raises:
            MismatchError: The configuration was measured with other weights.
            NotFoundError: Nothing was indexed yet, or a picture that must be embedded is gone.
        """
        engine = self.engine
        table = engine.table if photo_ids is None else engine.table.select(photo_ids)
        model = load_model_of(self.folder, config)
        config = config.with_model_id(model.model_id)
        with self.cache() if cache is None else nullcontext(cache) as opened:
            vectors = build_vectors(
                table,
                model=model,
                cache=opened,
                thumbnails=self.thumbnails,
                progress=progress or Progress(),
                withheld=withheld,
            )
        started = time.perf_counter()
        index = build_index(vectors, config)
        if NAMES.issuperset(withheld):
            teach_texts(index, table, model)
        texts = self._engines.texts_of(model)
        words = WordIndex.build(table, withheld=withheld) if config.words else None
        built = SearchEngine(
            table, index, model, config, thumbnail=self.thumbnail, texts=texts, words=words
        )
        built.build_s = time.perf_counter() - started
        return built

    def publish(self, config: Config, *, progress: Progress | None = None) -> str:
        """Serve the same photos under another configuration; returns the new snapshot's name.

        Raises:
            ConflictError: Somebody else is writing.
            NotFoundError: Nothing was indexed yet.
        """
        with self.writing():
            current = self.snapshot()
            if current is None:
                raise NotFoundError(_nothing_indexed(self.folder))
            with self.cache() as cache:
                return self.write(
                    current.table, config, current.roots, cache, before=current, progress=progress
                )

    def write(
        self,
        table: PhotoTable,
        config: Config,
        roots: tuple[Root, ...],
        cache: ContentCache,
        *,
        before: Snapshot | None,
        progress: Progress | None = None,
    ) -> str:
        """Embed what is new and swap in a snapshot; the caller holds `writing`.

        Args:
            table: The photos of the new state.
            config: Its `model_id` is filled in.
            roots: Folders that it covers.
            cache: The open cache.
            before: The state in force, whose index is updated; None to build a new one.
            progress: Told about what is done.

        Returns:
            The snapshot's name.
        """
        return build_snapshot(
            self.folder,
            table,
            config,
            roots,
            cache,
            thumbnails=self.thumbnails,
            before=before,
            progress=progress or Progress(),
        )

    def check(self) -> list[str]:
        """Read every file of the snapshot in force and compare checksums; returns their names.

        Raises:
            DataError: One differs; names it and the remedy.
            NotFoundError: Nothing was indexed yet.
        """
        name = current_id(self.folder)
        if name is None:
            raise NotFoundError(_nothing_indexed(self.folder))
        return check_snapshot(self.folder, name)


def _nothing_indexed(folder: Path) -> str:
    return (
        "a library must hold photos, got an empty one; "
        f"run `searchlab index --data {shell_word(folder)} PHOTOS`"
    )


def open_library(
    folder: Path | str, *, for_others: bool = False, open_vectors: OpenVectors | None = None
) -> Library:
    """Open a library on disk; takes and raises what `Library` does."""
    place = Path(folder).expanduser().resolve()
    return Library(place, for_others=for_others, open_vectors=open_vectors)


def create_library(folder: Path | str) -> Library:
    """Open a library on disk, and make an empty one first where there is none.

    Raises:
        DataError: It is of another version, or damaged.
        InputError: The folder cannot be made, or pictures lie in it.
    """
    place = Path(folder).expanduser().resolve()
    refuse_backup(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not (place / LIBRARY_FILE).exists():
            refuse_pictures(place)
    except OSError as error:
        msg = f"a library must lie in a folder that can be written, got {place}: {error.strerror}"
        raise InputError(msg) from error
    if not (place / KEY_FILE).exists():
        write_atomically(place / KEY_FILE, secrets.token_bytes(KEY_BYTES), mode=0o600)
    if not (place / LIBRARY_FILE).exists():
        made = datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")
        description = json.dumps({"format": _FORMAT, "created_at": made})
        write_atomically(place / LIBRARY_FILE, description.encode())
    return Library(place)
