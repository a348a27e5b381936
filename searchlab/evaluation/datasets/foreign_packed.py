"""Pictures packed with their captions: tars of CLIP_benchmark, Parquet of MTEB and MIEB.

    test/0.tar          KEY.jpg (or .webp, .png) and KEY.txt, a caption a line
    corpus/*.parquet    id, image; queries/ or query/: id, text; qrels/: query-id, corpus-id, score

They are read as streams, a picture at a time, and unpacked once into `unpacked-test` beside them.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from searchlab.errors import InputError, MissingExtraError, NotFoundError
from searchlab.evaluation.datasets.foreign_parts import ForeignParts, whole_grade
from searchlab.evaluation.datasets.judgments import is_grade
from searchlab.files import write_atomically

_PICTURES: Final = ("jpg", "jpeg", "png", "webp", "avif", "gif", "bmp", "tif", "tiff")
_QUERIES: Final = ("queries", "query")
_MOST_TEXT: Final = 1_000_000  # bytes of one sample's captions


# -- tars -------------------------------------------------------------------------------------


def is_packed_in_tars(folder: Path) -> bool:
    """Tell whether a folder holds tars of CLIP_benchmark, a folder for each part."""
    return any(folder.glob("*/*.tar"))


def read_tars(folder: Path, split: str | None, lang: str) -> ForeignParts:
    """Read tars for retrieval, as `clip_benchmark_export_wds` writes them.

    Raises:
        NotFoundError: There is no such part.
        InputError: They are no retrieval tars, or cannot be read or unpacked.
    """
    splits = sorted({path.parent.name for path in folder.glob("*/*.tar")})
    chosen = split or ("test" if "test" in splits else splits[0])
    if chosen not in splits:
        msg = f"the split must be one of {', '.join(splits)}, got {chosen!r}"
        raise NotFoundError(msg)
    parts = ForeignParts(folder.resolve().name)
    texts: dict[str, str] = {}
    for path in sorted((folder / chosen).glob("*.tar"), key=_by_number):
        try:
            for key, ending, data in _members(path):
                if ending == "txt":
                    texts[key] = data.decode("utf-8")
                elif key in parts.pictures:
                    msg = f"{path} must hold each sample once, got {key!r} again"
                    raise InputError(msg)
                else:
                    parts.pictures[key] = _unpack(folder, chosen, key, ending, data)
        except tarfile.TarError as error:
            msg = f"{path} must be a whole tar, got: {error}; fetch it again"
            raise InputError(msg) from error
    for key, text in texts.items():
        for number, caption in enumerate(text.split("\n")):
            if key in parts.pictures:
                parts.add_caption(f"{key}-{number}", caption, lang, key)
    if not parts.qrels:
        msg = (
            f"{folder / chosen} must hold tars for retrieval, KEY.jpg with KEY.txt, got "
            f"{len(parts.pictures)} pictures and {len(texts)} texts"
        )
        raise InputError(msg)
    return parts


def _by_number(path: Path) -> tuple[int, str]:
    return int(path.stem) if path.stem.isdecimal() else -1, path.name


def _members(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield key, ending and bytes of each picture and text, reading the tar once from its start."""
    with tarfile.open(path, mode="r|*") as tar:
        for member in tar:
            folder, _, name = member.name.rpartition("/")
            stem, _, ending = name.partition(".")
            ending = ending.lower()
            is_text = ending == "txt" and member.size <= _MOST_TEXT
            if member.isfile() and (is_text or ending in _PICTURES):
                file = tar.extractfile(member)
                if file is not None:
                    yield f"{folder}/{stem}".lstrip("./"), ending, file.read()


# -- Parquet ----------------------------------------------------------------------------------


def is_packed_in_parquet(folder: Path) -> bool:
    """Tell whether a folder holds a retrieval task of MTEB or MIEB in Parquet."""
    has_queries = any(any((folder / name).glob("*.parquet")) for name in _QUERIES)
    return has_queries and all(any((folder / n).glob("*.parquet")) for n in ("corpus", "qrels"))


def read_parquet_retrieval(folder: Path, split: str | None, lang: str) -> ForeignParts:
    """Read a task from texts to pictures.

    Raises:
        NotFoundError: There is no such part.
        InputError: A document has no picture, a query no text, or a judgment is of neither.
        MissingExtraError: pyarrow is not installed.
    """
    chosen = split or "test"
    parts = ForeignParts(folder.resolve().name)
    for row in _rows(folder, ("corpus",), chosen):
        picture, image = _id_of(row), row.get("image")
        if not image or not image.get("bytes"):
            msg = f"{folder / 'corpus'} must have a picture in each row, got none for {picture!r}"
            raise InputError(msg)
        ending = Path(str(image.get("path") or "")).suffix.lower().lstrip(".")
        known = ending if ending in _PICTURES else "jpg"
        parts.pictures[picture] = _unpack(folder, chosen, picture, known, image["bytes"])
    for row in _rows(folder, _QUERIES, chosen):
        query_id, text = _id_of(row), str(row.get("text") or "").strip()
        if not text:
            msg = f"{folder} must have texts as queries, got none for {query_id!r}"
            raise InputError(msg)
        parts.add_query(query_id, text, str(row.get("lang") or row.get("language") or lang))
    for row in _rows(folder, ("qrels",), chosen):
        query_id, picture, score = str(row["query-id"]), str(row["corpus-id"]), row["score"]
        grade = whole_grade(score)
        if query_id not in parts.texts or picture not in parts.pictures or not is_grade(grade):
            msg = (
                f"{folder / 'qrels'} must judge what is there by whole numbers, got {query_id}, "
                f"{picture}, {score}"
            )
            raise InputError(msg)
        parts.judge(query_id, picture, grade)
    parts.qrels = {q: grades for q, grades in parts.qrels.items() if any(grades.values())}
    return parts


def _id_of(row: Mapping[str, Any]) -> str:
    return str(row["_id"] if row.get("id") is None else row["id"])


def _rows(folder: Path, names: tuple[str, ...], split: str) -> Iterator[Mapping[str, Any]]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        msg = f"{folder} must be read by pyarrow, got none; pip install 'searchlab[tables]'"
        raise MissingExtraError(msg) from error
    everything = sorted(file for name in names for file in (folder / name).glob("*.parquet"))
    splits = sorted({file.stem.partition("-")[0] for file in everything})
    files = [file for file in everything if file.stem.partition("-")[0] == split]
    if not files and len(splits) == 1:
        files = everything
    if not files:
        msg = f"the split must be one of {', '.join(splits)}, got {split!r}"
        raise NotFoundError(msg)
    for file in files:
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=64):
            yield from batch.to_pylist()


def _unpack(folder: Path, split: str, key: str, ending: str, data: bytes) -> str:
    """Write a picture below the folder if it is not there yet; returns its path in the folder."""
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", key)
    if stem != key:  # others may read the same
        stem += f"-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    name = f"unpacked-{split}/{stem}.{ending}"
    path = folder / name
    if not (path.is_file() and path.read_bytes() == data):
        try:
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, data)
        except OSError as error:
            msg = f"{path.parent} must be a folder that can be written, got: {error.strerror}"
            raise InputError(msg) from error
    return name
