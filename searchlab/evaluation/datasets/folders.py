"""Reads and writes a dataset of your own as a folder of three files."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from unicodedata import normalize

from searchlab.errors import InputError, NotFoundError, quote
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.judgments import read_origins, read_qrels, write_qrels
from searchlab.evaluation.datasets.labelled import NO_LANGUAGE, WITHHELD, LabelledQuery
from searchlab.evaluation.datasets.rows import make_dataset, read_rows
from searchlab.files import as_spelled, sha256_of, write_atomically
from searchlab.photos.photo import photo_id_of
from searchlab.photos.sidecar import SIDECAR_NAME, Skipped, read_records
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import DEFAULT_TEXT_ALPHA

_COLUMNS = ("query_id", "lang", "kind", "text", "photo_id", "filter", "text_alpha")
DATASET_FILES = (SIDECAR_NAME, "queries.tsv", "qrels.tsv")
_OWN = "local"
_DEFAULT_KIND = "written"


def read_dataset(
    folder: Path | str,
    *,
    name: str | None = None,
    withholds: Mapping[str, Collection[str]] | None = None,
) -> Dataset:
    """Read photos, queries and judgments of your own.

    The folder holds, in UTF-8:

    - `photos.jsonl`: one JSON object a line for every photo to search, the sidecar that
      `searchlab index` reads, with at least `file`, relative to the folder. Photos without `source`
      and `source_photo_id` are known by their content, as they are when they are indexed;
    - `queries.tsv`: a header line, tabs, no quoting. `query_id` is needed, and `text` (with its
      BCP 47 `lang`) or `photo_id` or both; `kind` says where the query comes from, `written` if
      left out; `filter` is a JSON object of PhotoFilter's fields; `text_alpha` is 0 to 10. An
      empty cell is the same as none;
    - `qrels.tsv` (query_id, photo_id, relevance) or `qrels.trec`: grades from 0; 1 and above is
      relevant, a missing pair is unjudged. A column `origin` of the TSV, one word, may say where a
      judgment comes from, and leaderboards count them.

    A `photo_id` in these files may also be the `file` of the photo.

    Args:
        folder: The folder.
        name: Name of the dataset; that of the folder if left out.
        withholds: For each kind of your own, the photo fields that its texts were taken from, such
            as `{"tag": ["title"]}`; an empty list if people wrote them from the picture alone. For
            other kinds every text of a photo is withheld from models.

    Raises:
        NotFoundError: The folder or one of the files does not exist.
        InputError: A line cannot be read, a picture is missing, or the parts do not fit together.
    """
    folder = Path(folder)
    records = _records(folder / SIDECAR_NAME)
    ids = [photo_id_of(record["source"], record["source_photo_id"]) for record in records]
    known: dict[str, str] = {}
    file_of: dict[str, str] = {}
    for record, photo_id in zip(records, ids, strict=True):
        if file_of.setdefault(photo_id, record["file"]) != record["file"]:
            msg = (
                f"{folder / SIDECAR_NAME} must name each photo once, got {file_of[photo_id]} and "
                f"{record['file']}, which are one; remove a line"
            )
            raise InputError(msg)
        known[record["file"]] = photo_id
    for file, photo_id in list(known.items()):
        known.setdefault(normalize("NFC", file), photo_id)
    queries = _queries(folder / "queries.tsv", known)
    qrels, origins = _qrels(folder, known)
    own_kinds = {kind: frozenset(fields) for kind, fields in (withholds or {}).items()}
    absolute = [{**record, "file": str(as_spelled(folder / record["file"]))} for record in records]
    pairs = zip(records, absolute, strict=True)
    missing = [record["file"] for record, there in pairs if not Path(there["file"]).is_file()]
    if missing:
        msg = f"{folder / SIDECAR_NAME} must name pictures that are there, got {missing[0]!r}"
        raise InputError(msg)
    return make_dataset(
        name or folder.resolve().name,
        folder,
        queries,
        qrels,
        absolute,
        photos=folder / SIDECAR_NAME,
        withholds={**WITHHELD, **own_kinds},
        origins=origins,
    )


def write_dataset(dataset: Dataset, folder: Path | str, *, pictures: bool = False) -> Path:
    """Write a dataset as a folder that `read_dataset` reads.

    Reading it gives equal queries and judgments, and the same revision if the dataset was loaded
    whole. A part, such as `.sample(...)`, gets a new revision, since it becomes a whole dataset.

    Args:
        dataset: The dataset; its `withholds` are not written.
        folder: The folder, which is created if it does not exist; files in it are replaced.
        pictures: Whether to copy the pictures into `images/`; otherwise the sidecar has their
            present paths.

    Returns:
        The folder.

    Raises:
        InputError: A text holds a tab or a line break, or two pictures have the same file name.
    """
    folder = Path(folder)
    queries = encode_queries(dataset.queries)
    files = [Path(record["file"] or "") for record in dataset.records]
    if pictures:
        if len({path.name for path in files}) < len(files):
            msg = f"pictures of {dataset.name!r} must have names of their own to lie in one folder"
            raise InputError(msg)
        (folder / "images").mkdir(parents=True, exist_ok=True)
        for path in files:
            with suppress(shutil.SameFileError):
                shutil.copyfile(path, folder / "images" / path.name)
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"images/{path.name}" if pictures else str(path.absolute()) for path in files]
    records = [
        json.dumps({**record, "file": name}, ensure_ascii=False) + "\n"
        for record, name in zip(dataset.records, names, strict=True)
    ]
    records_file, queries_file, qrels_file = (folder / name for name in DATASET_FILES)
    write_atomically(records_file, "".join(records).encode())
    write_atomically(queries_file, queries)
    write_qrels(dataset.qrels, qrels_file, origins=dataset.origins)
    return folder


def encode_queries(queries: Iterable[LabelledQuery]) -> bytes:
    """Write queries as the table `queries.tsv`.

    Raises:
        InputError: A text holds a tab or a line break.
    """
    rows = [_COLUMNS, *map(_row, queries)]
    return "".join("\t".join(row) + "\n" for row in rows).encode()


def _lacking(path: Path) -> str:
    return (
        f"a dataset must have {SIDECAR_NAME}, queries.tsv and qrels.tsv (or qrels.trec), got no "
        f"{path}; add it"
    )


def _records(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise NotFoundError(_lacking(path))
    for entry in read_records(path):
        if isinstance(entry, Skipped):
            msg = f"{entry.where} must be a record, got: {entry.reason}"
            raise InputError(msg)
    lines = path.read_text("utf-8-sig").split("\n")
    records: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    return [_identified(record, path) for record in records]


def _identified(record: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a record with the identity that the photo has in a library."""
    if not record.get("file"):
        msg = f"a record of {path} must have file, got {quote(record)}"
        raise InputError(msg)
    picture = as_spelled(path.parent / record["file"])
    if record.get("source_photo_id") or not picture.is_file():
        identity = record.get("source_photo_id") or record["file"]
    else:
        identity = sha256_of(picture)
    return {**record, "source": record.get("source") or _OWN, "source_photo_id": identity}


def _id_of(photo: str, known: Mapping[str, str]) -> str:
    """Return the id of a photo that is named by its id or its file, in any form of Unicode."""
    return known.get(photo) or known.get(normalize("NFC", photo), photo)


def _qrels(
    folder: Path, known: Mapping[str, str]
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, str]]]:
    path = folder / "qrels.tsv"
    if not path.is_file():
        path = folder / "qrels.trec"
    if not path.is_file():
        raise NotFoundError(_lacking(path))
    qrels: dict[str, dict[str, int]] = {}
    for query_id, grades in read_qrels(path).items():
        qrels[query_id] = {_id_of(photo, known): grade for photo, grade in grades.items()}
        if len(qrels[query_id]) < len(grades):
            msg = f"{folder} must judge a photo once for {query_id!r}, got its file and its id"
            raise InputError(msg)
    origins = {
        query_id: {_id_of(photo, known): origin for photo, origin in told.items()}
        for query_id, told in read_origins(path).items()
    }
    return qrels, origins


def _queries(path: Path, known: Mapping[str, str]) -> list[LabelledQuery]:
    if not path.is_file():
        raise NotFoundError(_lacking(path))
    try:
        rows = read_rows(path)
    except (csv.Error, UnicodeDecodeError) as error:
        msg = f"{path} must be TSV in UTF-8, got: {error}"
        raise InputError(msg) from error
    unknown = sorted({name for row in rows for name in row} - set(_COLUMNS))
    if unknown or (rows and "query_id" not in rows[0]):
        wrong = unknown or sorted(rows[0])
        msg = f"{path} must have query_id and columns among {', '.join(_COLUMNS)}, got {wrong}"
        raise InputError(msg)
    queries = []
    for number, row in enumerate(rows, start=2):
        try:
            queries.append(_query(row, known))
        except (ValueError, TypeError, RecursionError) as error:
            msg = f"{path}:{number} must be a query, got: {error}"
            raise InputError(msg) from error
    return queries


def _query(row: Mapping[str, str], known: Mapping[str, str]) -> LabelledQuery:
    text, photo = row.get("text") or None, row.get("photo_id") or None
    conditions = json.loads(row.get("filter") or "{}")
    if not isinstance(conditions, dict):
        msg = f"filter must be a JSON object, got {quote(conditions)}"
        raise InputError(msg)
    query = LabelledQuery(
        row["query_id"],
        row.get("lang") or ("" if text else NO_LANGUAGE),
        row.get("kind") or _DEFAULT_KIND,
        text,
        None if photo is None else _id_of(photo, known),
        PhotoFilter(**conditions),
        float(row.get("text_alpha") or DEFAULT_TEXT_ALPHA),
    )
    query.query()
    return query


def _row(query: LabelledQuery) -> list[str]:
    conditions = query.filter.to_dict()
    row = [
        query.query_id,
        query.lang,
        query.kind,
        query.text or "",
        query.photo_id or "",
        json.dumps(conditions, sort_keys=True) if conditions else "",
        "" if query.text_alpha == DEFAULT_TEXT_ALPHA else repr(query.text_alpha),
    ]
    if any(character in cell for cell in row for character in "\t\n\r"):
        msg = f"a text must be without tabs and line breaks to be written, got {query.text!r}"
        raise InputError(msg)
    return row
