"""Judgments and runs as files: TREC text that a person can check, or TSV with a header line.

    dunes 0 3f0c...  3                      qrels, TREC: query, 0, photo, grade
    dunes Q0 3f0c... 1 1.0 searchlab        run, TREC: query, Q0, photo, rank, score, system

A file whose name ends in `.tsv` is TSV; everything else is TREC.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from searchlab.errors import InputError, NotFoundError, shown
from searchlab.photos import photo_id_of

_QRELS_COLUMNS = ("query_id", "photo_id", "relevance")
_QRELS_BY_SOURCE = ("query_id", "source", "source_photo_id", "relevance")
_QRELS_TREC = ("query_id", "0", "photo_id", "relevance")
_RUN_TREC = ("query_id", "Q0", "photo_id", "rank", "score", "tag")
_RUN_COLUMNS = ("query_id", "photo_id", "rank")


def read_qrels(source: Path | str) -> dict[str, dict[str, int]]:
    """Read judgments.

    Args:
        source: A file, or the text itself. TSV has the columns query_id, photo_id and relevance;
            in place of photo_id there may be source and source_photo_id.

    Returns:
        query_id -> photo_id -> grade.

    Raises:
        InputError: A line cannot be read, a photo is judged twice for a query, there is none, or
            the file is no text that can be read.
        NotFoundError: There is no such file.
    """
    qrels: dict[str, dict[str, int]] = {}
    for where, row in _lines(source, _QRELS_TREC, (_QRELS_COLUMNS, _QRELS_BY_SOURCE)):
        if "photo_id" in row:
            photo_id = row["photo_id"]
        else:
            photo_id = photo_id_of(row["source"], row["source_photo_id"])
        grades = qrels.setdefault(row["query_id"], {})
        if photo_id in grades:
            msg = f"{where} must judge a photo once, got {photo_id!r} again for {row['query_id']!r}"
            raise InputError(msg)
        grades[photo_id] = int(_number(where, "relevance", row["relevance"]))
    if not qrels:
        msg = "qrels must hold at least one judgment, got none"
        raise InputError(msg)
    return qrels


def read_run(source: Path | str) -> dict[str, list[str]]:
    """Read the answers of one system.

    Args:
        source: A file, or the text itself. TREC is ordered by score, equal scores by rank.

    Returns:
        query_id -> photo_ids, best first.

    Raises:
        InputError: A line cannot be read, a query has a photo twice, or the file is no text that
            can be read.
        NotFoundError: There is no such file.
    """
    found: dict[str, list[tuple[float, float, str]]] = {}
    for where, row in _lines(source, _RUN_TREC, (_RUN_COLUMNS,)):
        rank = _number(where, "rank", row["rank"])
        score = _number(where, "score", row.get("score", "0"))
        found.setdefault(row["query_id"], []).append((-score, rank, row["photo_id"]))
    run = {query_id: [photo_id for *_, photo_id in sorted(r)] for query_id, r in found.items()}
    for query_id, photo_ids in run.items():
        if len(set(photo_ids)) < len(photo_ids):
            twice = min(photo_id for photo_id, n in Counter(photo_ids).items() if n > 1)
            msg = f"a run must name a photo once for {query_id!r}, got {twice!r} again"
            raise InputError(msg)
    return run


def write_qrels(qrels: Mapping[str, Mapping[str, int]], path: Path) -> None:
    """Write judgments, sorted, as TSV or TREC by the name's ending.

    Raises:
        InputError: An id has a space in it or is empty.
    """
    rows = [
        (query_id, photo_id, str(grade))
        for query_id, grades in sorted(qrels.items())
        for photo_id, grade in sorted(grades.items())
    ]
    if path.suffix == ".tsv":
        _write(path, [_QRELS_COLUMNS, *rows], "\t")
    else:
        _write(path, [(query_id, "0", photo, grade) for query_id, photo, grade in rows], " ")


def write_run(run: Mapping[str, Sequence[str]], path: Path, *, tag: str = "searchlab") -> None:
    """Write the answers of one system, as TSV or TREC by the name's ending.

    Args:
        run: query_id -> photo_ids, best first.
        path: Where to.
        tag: Name of the system, the last column of TREC; the score there is 1 / rank.

    Raises:
        InputError: An id or the tag has a space in it or is empty.
    """
    rows = [
        (query_id, photo_id, rank)
        for query_id, photo_ids in sorted(run.items())
        for rank, photo_id in enumerate(photo_ids, start=1)
    ]
    if path.suffix == ".tsv":
        _write(path, [_RUN_COLUMNS, *((q, photo, str(rank)) for q, photo, rank in rows)], "\t")
    else:
        lines = [(q, "Q0", photo, str(rank), repr(1 / rank), tag) for q, photo, rank in rows]
        _write(path, lines, " ")


def _write(path: Path, rows: Sequence[Sequence[str]], separator: str) -> None:
    for row in rows:
        for value in row:
            if len(value.split()) != 1 or value != value.strip():
                msg = f"an id must be text without spaces, got {value!r}"
                raise InputError(msg)
    text = "".join(f"{separator.join(row)}\n" for row in rows)
    path.write_text(text, encoding="utf-8", newline="\n")


def _lines(
    source: Path | str, trec: Sequence[str], tsv: Sequence[Sequence[str]]
) -> Iterator[tuple[str, dict[str, str]]]:
    name = str(source) if isinstance(source, Path) else "text"
    text = _text(source) if isinstance(source, Path) else source
    if isinstance(source, str) and len(source.split()) == 1:
        msg = f"text must be lines of several columns, got {shown(source)}; pass a file as a Path"
        raise InputError(msg)
    columns, separator = list(trec), None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if line.startswith("query_id\t"):
            columns, separator = line.rstrip("\r").split("\t"), "\t"
            if not any(set(columns) >= set(needed) for needed in tsv):
                names = " or ".join(", ".join(needed) for needed in tsv)
                msg = f"{name}:{number} must have the columns {names}, got {line!r}"
                raise InputError(msg)
            continue
        values = line.rstrip("\r").split(separator)
        if len(values) != len(columns):
            names = ", ".join(columns)
            msg = f"{name}:{number} must have the columns {names}, got {line!r}"
            raise InputError(msg)
        yield f"{name}:{number}", dict(zip(columns, values, strict=True))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        msg = f"{path} must be a file of judgments or answers, got none there; check the path"
        raise NotFoundError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path} must be text in UTF-8, got other bytes at {error.start}; save it as UTF-8"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{path} must be a file that can be read, got: {error.strerror}; check the path"
        raise InputError(msg) from error


def _number(where: str, column: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (column == "relevance" and number != int(number)):
        kind = "a whole number" if column == "relevance" else "a number"
        msg = f"{where} must have {kind} as {column}, got {value!r}"
        raise InputError(msg)
    return number
