"""PictureStore: a folder of pictures that belong to records; where each one lies.

FOLDER/pictures.jsonl              which picture belongs to which record; the last line counts
FOLDER/pictures/ab/abcd....jpg     pictures by the SHA-256 of their content
FOLDER/ID.jpg                      pictures that somebody named by a record's id, %-escaped
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from searchlab.sources.record import SourceRecord

LIST_NAME = "pictures.jsonl"
_KINDS = ("jpg", "jpeg", "png", "webp", "avif", "heic", "heif", "gif", "tif", "tiff")
_SUFFIXES = [f".{ending}" for kind in _KINDS for ending in (kind, kind.upper())]  # as cameras do
_LONGEST_NAME = 255


class PictureStore:
    """Finds the picture of a record; `add` notes one that was fetched.

    Attributes:
        folder: The folder of the pictures and their list.
    """

    def __init__(self, folder: Path) -> None:
        """Open a folder and read its list of pictures."""
        self.folder = folder
        self._files: dict[tuple[str, str], tuple[str, str]] = {}
        path = folder / LIST_NAME
        if path.is_file():
            with path.open("rb") as lines:
                for line in lines:
                    self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        # Lines that cannot be read are ignored: the last one may have been cut short.
        try:
            values: Any = json.loads(line)
            source, photo_id, file, url = (
                values[name] for name in ("source", "source_photo_id", "file", "url")
            )
            place = PurePosixPath(file)
            if not (place.is_absolute() or ".." in place.parts or "\0" in file):
                self._files[(source, photo_id)] = (file, url)
        except (ValueError, TypeError, KeyError, RecursionError):
            return

    def find(self, record: SourceRecord) -> Path | None:
        """Return the picture of a record; None where there is none."""
        entry = self._files.get((record.source, record.source_photo_id))
        if entry is not None and (self.folder / entry[0]).is_file():
            return self.folder / entry[0]
        stem = quote(record.source_photo_id, safe="")
        if len(stem) + 5 > _LONGEST_NAME or stem.startswith("."):
            return None
        apart = self.folder / record.source
        folder = apart if apart.is_dir() else self.folder
        named = (folder / f"{stem}{suffix}" for suffix in _SUFFIXES)
        return next((path for path in named if path.is_file()), None)

    def has(self, record: SourceRecord, url: str) -> bool:
        """Say whether the folder has a record's picture, downloaded from this very address."""
        entry = self._files.get((record.source, record.source_photo_id))
        return entry is not None and entry[1] == url and (self.folder / entry[0]).is_file()

    def add(self, record: SourceRecord, url: str, file: Path) -> None:
        """Note the picture of a record.

        Args:
            record: The record that the picture belongs to.
            url: Address from which it was downloaded.
            file: Path of the picture, which must lie under `folder`.
        """
        values = {
            "source": record.source,
            "source_photo_id": record.source_photo_id,
            "file": file.relative_to(self.folder).as_posix(),
            "url": url,
        }
        line = json.dumps(values, ensure_ascii=False).encode() + b"\n"
        with (self.folder / LIST_NAME).open("ab") as lines:
            if lines.tell() and not _ends_a_line(self.folder / LIST_NAME):
                line = b"\n" + line
            lines.write(line)
        self._read_line(line)


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
