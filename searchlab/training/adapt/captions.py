"""Captioned photos: what people wrote of which photo, from a library's records or from a file.

A caption file is UTF-8 text in one of two formats, known by its suffix:

    .tsv     file<TAB>caption[<TAB>lang], one caption per line; the first line may be a header
    .jsonl   {"file": ..., "caption": ..., "lang": ...}, or "captions": [...] in place of "caption"

`file` is relative to the caption file. A photo may stand on many lines. A line that cannot be used
is reported and skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from searchlab.errors import InputError, NotFoundError
from searchlab.library.cache import ContentCache
from searchlab.library.library import Library
from searchlab.photos.descriptions import is_generated
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress

MAX_CAPTION = 2_000
"""Most characters of a caption."""
_NO_NAME = re.compile(r"[\0\ud800-\udfff]")
NO_LANGUAGE = ""
"""The language of a caption for which none is given."""
_BATCH = 256


class PhotoCaption(NamedTuple):
    """A caption of a photo and its language, `NO_LANGUAGE` where none is given."""

    text: str
    lang: str


@dataclass(frozen=True)
class CaptionedPhoto:
    """A photo, known by its content.

    Attributes:
        sha256: Hex digest of its bytes.
        file: One file that holds them.
        captions: At least one; no caption occurs twice.
    """

    sha256: str
    file: Path
    captions: tuple[PhotoCaption, ...]


def read_captions(path: Path) -> Iterator[tuple[Path, PhotoCaption] | Skipped]:
    """Read a caption file; the head of this module describes the two formats.

    Yields:
        A photo's absolute path with one caption of it, or what is wrong with a line.

    Raises:
        InputError: The file has another suffix, or cannot be read.
    """
    readers = {".tsv": _tsv_line, ".jsonl": _jsonl_line}
    read = readers.get(path.suffix.lower())
    if read is None:
        msg = f"captions must be a .tsv or .jsonl file, got {path}"
        raise InputError(msg)
    try:
        with path.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                    if not line.strip() or (number == 1 and line.startswith("file\tcaption")):
                        continue
                    name, captions = read(line)
                    place = Path(os.path.normpath(path.parent.absolute() / name))
                    for caption in captions:
                        yield place, caption
                except (ValueError, TypeError) as error:
                    yield Skipped(f"{path}:{number}", str(error))
    except OSError as error:
        msg = f"captions must be a file that can be read, got {path}: {error.strerror}"
        raise InputError(msg) from error


def _tsv_line(line: str) -> tuple[str, list[PhotoCaption]]:
    name, *rest = line.split("\t")
    if not name or len(rest) not in (1, 2):
        msg = f"a line must be file<TAB>caption[<TAB>lang], got {len(rest) + 1} columns"
        raise InputError(msg)
    return _file_name(name), [_caption(*rest)]


def _jsonl_line(line: str) -> tuple[str, list[PhotoCaption]]:
    try:
        values = json.loads(line)
        name, lang = values["file"], values.get("lang", NO_LANGUAGE)
        texts = values["captions"] if "captions" in values else [values["caption"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = f"a line must be a JSON object with file and caption or captions, got: {error}"
        raise InputError(msg) from error
    if not isinstance(texts, list):
        msg = f"captions must be a list of texts, got {type(texts).__name__}"
        raise InputError(msg)
    return _file_name(name), [_caption(text, lang) for text in texts]


def _file_name(name: object) -> str:
    if not isinstance(name, str) or not name or _NO_NAME.search(name):
        msg = f"file must be a path in Unicode without NUL, got {name!a}"
        raise InputError(msg)
    return name


def _caption(text: object, lang: object = NO_LANGUAGE) -> PhotoCaption:
    if not isinstance(text, str) or not isinstance(lang, str):
        msg = f"caption and lang must be texts, got {text!r:.60} and {lang!r:.20}"
        raise InputError(msg)
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    if not line or len(line) > MAX_CAPTION:
        msg = f"a caption must have 1 to {MAX_CAPTION} characters, got {len(line)}"
        raise InputError(msg)
    return PhotoCaption(line, lang.strip())


def library_captions(library: Library) -> list[CaptionedPhoto]:
    """Take what people wrote of the photos of a library: descriptions, titles, alt texts.

    Descriptions that searchlab generated are left out: a model would learn from itself.

    Raises:
        NotFoundError: Nothing was indexed yet.
    """
    snapshot = library.snapshot()
    if snapshot is None:
        msg = f"a library must hold photos, got an empty one at {library.folder}; index some first"
        raise NotFoundError(msg)
    columns = ("sha256", "file", "source_description", "title", "alt_description")
    photos: dict[str, CaptionedPhoto] = {}
    for sha256, file, *texts in zip(*map(snapshot.table.texts, columns), strict=True):
        captions = tuple(
            PhotoCaption(" ".join(text.split()), NO_LANGUAGE)
            for text in dict.fromkeys(texts)
            if text.strip() and not is_generated(text)
        )
        if captions:
            photos[sha256] = _join(photos.get(sha256), sha256, Path(file), captions)
    return list(photos.values())


def file_captions(
    path: Path, cache: ContentCache, progress: Progress
) -> tuple[list[CaptionedPhoto], list[Skipped]]:
    """Take the photos and captions of a caption file; photos of one content become one.

    Args:
        path: See `read_captions`.
        cache: Remembers files that were read.
        progress: Shows how many photos were read.

    Returns:
        The photos, and lines and files that cannot be used.
    """
    problems: list[Skipped] = []
    by_file: dict[Path, list[PhotoCaption]] = {}
    for item in read_captions(path):
        if isinstance(item, Skipped):
            problems.append(item)
        else:
            by_file.setdefault(item[0], []).append(item[1])
    photos: dict[str, CaptionedPhoto] = {}
    for file, sha256 in _digests(by_file, cache, problems, progress):
        captions = tuple(dict.fromkeys(by_file[file]))
        photos[sha256] = _join(photos.get(sha256), sha256, file, captions)
    return list(photos.values()), problems


def _join(
    known: CaptionedPhoto | None, sha256: str, file: Path, captions: tuple[PhotoCaption, ...]
) -> CaptionedPhoto:
    before = () if known is None else known.captions
    return CaptionedPhoto(sha256, file, tuple(dict.fromkeys([*before, *captions])))


def _digests(
    files: Iterable[Path], cache: ContentCache, problems: list[Skipped], progress: Progress
) -> Iterator[tuple[Path, str]]:
    paths = list(files)
    fresh: list[tuple[str, int, int, str]] = []
    with progress.step("reading photos", len(paths), unit="files") as step:
        for path in paths:
            step.advance(1)
            try:
                stat = path.stat()
                sha256 = cache.known_file(str(path), stat.st_size, stat.st_mtime_ns)
                if sha256 is None:
                    with path.open("rb") as content:
                        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
                    fresh.append((str(path), stat.st_size, stat.st_mtime_ns, sha256))
            except OSError as error:
                problems.append(Skipped(str(path), f"cannot be read: {error.strerror}"))
                continue
            if len(fresh) >= _BATCH:
                cache.keep_files(fresh)
                fresh.clear()
            yield path, sha256
    cache.keep_files(fresh)
