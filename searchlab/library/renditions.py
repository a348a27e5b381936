"""Renditions: the pictures of photos as files to hand out, the originals and smaller ones.

An original is handed out only from within the folders of the library, and only while it is, byte
for byte, what was indexed: a file that was replaced is never shown under the old photo's name.
Smaller ones are made when they are first requested, and stored by content in DATA/renditions/.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple

from searchlab.errors import ImageError, NotFoundError
from searchlab.files import is_abandoned, write_once
from searchlab.library.decoding import THUMBNAIL_SIDE, thumbnail_path
from searchlab.library.roots import Root
from searchlab.photos.images.decode import MAX_BYTES, open_rgb, thumbnail
from searchlab.photos.images.headers import sniff
from searchlab.photos.images.strip import without_metadata
from searchlab.photos.photo import Photo

SIDES: Final = {"thumb": THUMBNAIL_SIDE, "small": 480, "regular": 1080, "large": 1920}
"""Longest side in pixels of each size but `full`; nothing is scaled up."""
SHOWN: Final = "shown"
"""The size of a copy in full size without what its owner wrote into it."""
MOST_BYTES: Final = 4 * 2**30
CHUNK: Final = 256 * 1024

_KNOWN = 65_536
# A file that was changed just now may be changed again without its times showing it.
_SETTLED_NS = 2 * 10**9
_WRITES_PER_SWEEP = 64
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class State(NamedTuple):
    """Identifies a file and its content: differs once it was replaced or written to."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def _state_of(file: FileIO) -> State:
    status = os.fstat(file.fileno())
    return State(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


class RenditionSource:
    """A picture that is read piece by piece.

    Attributes:
        size: In bytes.
        kind: Format by its first bytes, one of `headers.FORMATS`; empty if it is not a picture.
    """

    def __init__(self, content: FileIO | bytes, *, state: State | None = None) -> None:
        """Take a picture.

        Args:
            content: All of it, or a file that holds it. The file is closed by `close`, or at once
                if it is short.
            state: The state that the file must keep; its present one if left out.

        Raises:
            OSError: The file has changed meanwhile.
        """
        self._file = None if isinstance(content, bytes) else content
        self._content = content if isinstance(content, bytes) else b""
        self._state = state
        self.size = len(self._content)
        if self._file is not None:
            self._state = state or _state_of(self._file)
            self.size = self._state.size
            self._content = self.read(0, CHUNK) if self.size else b""
            if len(self._content) >= self.size:
                self.close()
        self.kind = sniff(self._content) or ""

    def at_hand(self, at: int) -> bool:
        """Whether the byte at a place is in memory."""
        return at < len(self._content)

    def read(self, at: int, n_bytes: int) -> bytes:
        """Read from a place.

        Args:
            at: The place in bytes, below `size`.
            n_bytes: Most bytes to return; there may be fewer, but at least one.

        Raises:
            OSError: The file has changed meanwhile.
        """
        if self.at_hand(at):
            return self._content[at : at + n_bytes]
        if self._file is None:
            msg = "a picture must be as long as it was, got a shorter one"
            raise OSError(msg)
        self._content = b""  # read already, and many may be on their way
        piece = os.pread(self._file.fileno(), n_bytes, at)
        if not piece or _state_of(self._file) != self._state:
            msg = "a picture must stay as it is while it is sent, got a change"
            raise OSError(msg)
        return piece

    def read_all(self) -> bytes:
        """Read all of it from the start.

        Raises:
            OSError: The file has changed meanwhile.
        """
        content = b""
        while len(content) < self.size:
            content += self.read(len(content), self.size - len(content))
        return content

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def is_whole_webp(self) -> bool:
        """Whether it is a WebP file of the length that its header declares."""
        declared = int.from_bytes(self._content[4:8], "little") + 8
        return self.kind == "WEBP" and declared in {self.size, self.size + 1}


class RenditionFiles:
    """The pictures of one library's photos as files; safe for several threads."""

    def __init__(self, data: Path, *, most_bytes: int = MOST_BYTES) -> None:
        """Serve the pictures of a library.

        Args:
            data: Folder of the library.
            most_bytes: About what the renditions may take; beyond it the oldest are deleted.
        """
        self._thumbnails = data / "thumbnails"
        self._folder = data / "renditions"
        self._most_bytes = most_bytes
        self._known: OrderedDict[State, str] = OrderedDict()
        self._lock = threading.Lock()
        self._writes = 0

    def original(self, photo: Photo, roots: Sequence[Root]) -> RenditionSource:
        """Open the file of a photo.

        Args:
            photo: As it was indexed.
            roots: The folders that the library covers.

        Raises:
            NotFoundError: It is not in them, or not what was indexed any more.
        """
        file = _open(photo, roots)
        try:
            state = _state_of(file)
            if self._digest(file, state) != photo.sha256:
                raise _missing(photo, "one that was changed since")
            return RenditionSource(file, state=state)
        except OSError as error:
            file.close()
            raise _missing(photo, "one that is being changed") from error
        except BaseException:
            file.close()
            raise

    def _digest(self, file: FileIO, state: State) -> str:
        with self._lock:
            known = self._known.get(state)
        if known is not None:
            return known
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if time.time_ns() - max(state.modified_ns, state.changed_ns) > _SETTLED_NS:
            with self._lock:
                self._known[state] = digest
                if len(self._known) > _KNOWN:
                    self._known.popitem(last=False)
        return digest

    def find(self, photo: Photo, size: str) -> RenditionSource | None:
        """Open a picture that was made before, of a size of `make`; None where there is none."""
        for place in self._places(photo, size):
            with suppress(OSError):
                source = RenditionSource(place.open("rb", buffering=0))
                if source.is_whole_webp or (size == SHOWN and source.kind):
                    return source
                source.close()
        return None

    def count_bytes(self, photo: Photo, size: str) -> int | None:
        """Count the bytes of a picture that `find` would open; None where there is none."""
        for place in self._places(photo, size):
            with suppress(OSError):
                return place.stat().st_size
        return None

    def _places(self, photo: Photo, size: str) -> list[Path]:
        places = [self._path(photo, size)]
        if size == "thumb":
            places.insert(0, thumbnail_path(self._thumbnails, photo.sha256))
        return places

    def make(self, photo: Photo, size: str, *, roots: Sequence[Root]) -> bytes:
        """Make a smaller picture and store it.

        Args:
            photo: As it was indexed.
            size: One of `SIDES`, or `SHOWN`.
            roots: The folders that the library covers.

        Returns:
            A file without metadata; of the smaller sizes a WebP, upright and in sRGB.

        Raises:
            NotFoundError: The original is not there, or not what was indexed any more.
        """
        with _open(photo, roots) as file:
            content = file.read(MAX_BYTES + 1)
        if hashlib.sha256(content).hexdigest() != photo.sha256:
            raise _missing(photo, "one that was changed since")
        try:
            encoded = _encode(content, size)
        except ImageError as error:  # Indexed by a version that accepted more.
            raise _missing(photo, "one that cannot be decoded") from error
        with suppress(OSError):  # A full disk, or one that cannot be written: it is made again.
            self._store(self._path(photo, size), encoded)
        return encoded

    def _path(self, photo: Photo, size: str) -> Path:
        return thumbnail_path(self._folder / size, photo.sha256)

    def _store(self, path: Path, encoded: bytes) -> None:
        write_once(path, encoded, sync=True)
        with self._lock:
            is_sweep_due = self._writes % _WRITES_PER_SWEEP == 0
            self._writes += 1
        if is_sweep_due:
            self._sweep()

    def _sweep(self) -> None:
        """Delete the oldest files beyond the size limit, and partial files of writers that died."""
        files = []
        for place in self._folder.glob("*/*/*"):
            with suppress(OSError):
                status = place.stat()
                if is_abandoned(place):
                    place.unlink()
                else:
                    files.append((status.st_mtime, status.st_size, place))
        total = sum(size for _, size, _ in files)
        if total <= self._most_bytes:
            return
        for _, size, place in sorted(files):
            place.unlink(missing_ok=True)
            total -= size
            if total <= 0.9 * self._most_bytes:
                return


def _encode(content: bytes, size: str) -> bytes:
    if size == SHOWN:
        return without_metadata(content)
    return thumbnail(open_rgb(content, min_side=SIDES[size]).image, SIDES[size])


def _opener(path: str, _flags: int) -> int:
    return os.open(path, _OPEN)


def _open(photo: Photo, roots: Sequence[Root]) -> FileIO:
    try:
        path = Path(photo.file).resolve(strict=True)
        folders = [root.folder.resolve(strict=True) for root in roots if root.folder.exists()]
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links that go in circles.
        raise _missing(photo, "one that is gone") from error
    if not any(path.is_relative_to(folder) for folder in folders):
        raise _missing(photo, "one outside of the library's folders")
    try:
        file = FileIO(path, "rb", opener=_opener)
    except OSError as error:
        raise _missing(photo, "one that cannot be opened") from error
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        file.close()
        raise _missing(photo, "something else")
    return file


def _missing(photo: Photo, got: str) -> NotFoundError:
    # The message must not reveal where the file lies.
    return NotFoundError(
        f"the picture of photo {photo.photo_id} must be the file that was indexed, got {got}"
    )
