"""Judgments and runs as files: TREC text that a person can check, or TSV with a header line.

    dunes 0 3f0c...  3                      qrels, TREC: query, 0, photo, grade
    dunes Q0 3f0c... 1 1.0 searchlab        run, TREC: query, Q0, photo, rank, score, system

A file whose name ends in `.tsv` or `.tsv.gz` is TSV; everything else is TREC. A file that ends in
`.gz` is compressed, with the same bytes for the same contents. Padding that fills a list to its
length is no judgment and no answer: ids such as `-1` and `None`, and grades below 0, are refused.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from pathlib import Path

from searchlab.errors import InputError, NotFoundError, quote
from searchlab.files import write_atomically
from searchlab.photos.photo import photo_id_of

MAX_GRADE = 1000  # 2^grade, the gain of ndcg_exp, must stay a number

_PADDING = frozenset({"-1", "none", "null", "nan", "<na>"})
_ID_COLUMNS = ("query_id", "photo_id", "source_photo_id")
_QRELS_COLUMNS = ("query_id", "photo_id", "relevance")
_QRELS_BY_SOURCE = ("query_id", "source", "source_photo_id", "relevance")
_QRELS_TREC = ("query_id", "0", "photo_id", "relevance")
_RUN_TREC = ("query_id", "Q0", "photo_id", "rank", "score", "tag")
_RUN_COLUMNS = ("query_id", "photo_id", "rank")


def is_padding(value: object) -> bool:
    """Tell whether a value is padding in place of an id.

    >>> [is_padding(value) for value in ("a1", "", " a1", "-1", "None", -1)]
    [False, True, True, True, True, True]
    """
    if not isinstance(value, str):
        return True
    return not value or value != value.strip() or value.lower() in _PADDING


def is_id(value: object) -> bool:
    """Tell whether a value can be the id of a query or a photo, and be written in TREC form."""
    return isinstance(value, str) and len(value.split()) == 1 and not is_padding(value)


def is_grade(value: object) -> bool:
    """Tell whether a value is a whole number from 0 to `MAX_GRADE`, also one of numpy."""
    if type(value) is int:  # as nearly all are; asking for a number of any kind takes long
        return 0 <= value <= MAX_GRADE
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return 0 <= int(value) <= MAX_GRADE


def read_qrels(source: Path | str) -> dict[str, dict[str, int]]:
    """Read judgments.

    Args:
        source: A file, or the text itself. TSV has the columns query_id, photo_id and relevance;
            in place of photo_id there may be source and source_photo_id.

    Returns:
        query_id -> photo_id -> grade.

    Raises:
        InputError: A line cannot be read or has padding in place of an id, a grade is no whole
            number from 0, a photo is judged twice for a query, there is no judgment, or the file
            is no readable text.
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
        grades[photo_id] = _grade(where, row["relevance"])
    if not qrels:
        msg = "qrels must hold at least one judgment, got none"
        raise InputError(msg)
    return qrels


def read_origins(source: Path | str) -> dict[str, dict[str, str]]:
    """Read where judgments come from: the column `origin` of a TSV file, such as `name` or `eye`.

    Args:
        source: What `read_qrels` reads.

    Returns:
        query_id -> photo_id -> origin; empty if there is no such column.

    Raises:
        InputError: A line cannot be read.
        NotFoundError: There is no such file.
    """
    origins: dict[str, dict[str, str]] = {}
    for _, row in _lines(source, _QRELS_TREC, (_QRELS_COLUMNS, _QRELS_BY_SOURCE)):
        if "origin" in row:
            photo_id = row.get("photo_id") or photo_id_of(row["source"], row["source_photo_id"])
            origins.setdefault(row["query_id"], {})[photo_id] = row["origin"]
    return origins


def read_run(source: Path | str) -> dict[str, list[str]]:
    """Read the answers of one system.

    Args:
        source: A file, or the text itself. TREC is sorted by score, and equal scores by rank.

    Returns:
        query_id -> photo_ids, best first.

    Raises:
        InputError: A line cannot be read or has padding in place of an id, a query has a photo
            twice, or the file is no readable text.
        NotFoundError: There is no such file.
    """
    return {
        query_id: [photo_id for photo_id, _ in ranked]
        for query_id, ranked in read_run_scores(source).items()
    }


def read_run_scores(source: Path | str) -> dict[str, list[tuple[str, float]]]:
    """Read the answers of one system with their scores; see `read_run`.

    Returns:
        query_id -> (photo_id, score), best first; scores are 0 in TSV, which has none.
    """
    ranked: dict[str, list[tuple[float, float, str]]] = {}
    for where, row in _lines(source, _RUN_TREC, (_RUN_COLUMNS,)):
        rank = _number(where, "rank", row["rank"])
        score = _number(where, "score", row.get("score", "0"))
        ranked.setdefault(row["query_id"], []).append((-score, rank, row["photo_id"]))
    run = {
        query_id: [(photo_id, -score) for score, _, photo_id in sorted(answers)]
        for query_id, answers in ranked.items()
    }
    for query_id, answers in run.items():
        photo_ids = [photo_id for photo_id, _ in answers]
        if len(set(photo_ids)) < len(photo_ids):
            twice = min(photo_id for photo_id, n in Counter(photo_ids).items() if n > 1)
            msg = f"a run must name a photo once for {query_id!r}, got {twice!r} again"
            raise InputError(msg)
    return run


def write_qrels(
    qrels: Mapping[str, Mapping[str, int]],
    path: Path,
    *,
    origins: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Write judgments, sorted, as TSV or TREC by the name's ending.

    Args:
        qrels: query_id -> photo_id -> grade.
        path: The file.
        origins: Where each judgment comes from, for a column `origin`; TREC has no place for it.

    Raises:
        InputError: An id or an origin has a space in it, is empty or padding.
    """
    _write_bytes(path, encode_qrels(qrels, as_tsv=_is_tsv(path), origins=origins))


def encode_qrels(
    qrels: Mapping[str, Mapping[str, int]],
    *,
    as_tsv: bool,
    origins: Mapping[str, Mapping[str, str]] | None = None,
) -> bytes:
    """Write judgments as text, sorted; see `write_qrels`.

    Raises:
        InputError: An id or an origin has a space in it, is empty or padding.
    """
    rows = [
        (query_id, photo_id, str(grade))
        for query_id, grades in sorted(qrels.items())
        for photo_id, grade in sorted(grades.items())
    ]
    if not as_tsv:
        return _encode([(query_id, "0", photo, grade) for query_id, photo, grade in rows], " ")
    if not origins:
        return _encode([_QRELS_COLUMNS, *rows], "\t")
    with_origins = [(*row, origins[row[0]][row[1]]) for row in rows]
    return _encode([(*_QRELS_COLUMNS, "origin"), *with_origins], "\t")


def write_run(
    run: Mapping[str, Sequence[str]],
    path: Path,
    *,
    tag: str = "searchlab",
    scores: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Write the answers of one system, as TSV or TREC by the name's ending.

    Args:
        run: query_id -> photo_ids, best first.
        path: File to write.
        tag: Name of the system, the last column of TREC.
        scores: query_id -> score of each photo, never rising, for TREC; 1 / rank if left out.

    Raises:
        InputError: An id or the tag has a space in it, is empty or padding; or the scores are not
            finite, one for each photo and never rising, so that reading would change the order.
    """
    if scores is not None:
        _check_scores(run, scores)
    rows = [
        (query_id, photo_id, rank)
        for query_id, photo_ids in sorted(run.items())
        for rank, photo_id in enumerate(photo_ids, start=1)
    ]
    if _is_tsv(path):
        _write(path, [_RUN_COLUMNS, *((q, photo, str(rank)) for q, photo, rank in rows)], "\t")
    else:
        values = [1 / rank if scores is None else float(scores[q][rank - 1]) for q, _, rank in rows]
        lines = [
            (q, "Q0", photo, str(rank), repr(score), tag)
            for (q, photo, rank), score in zip(rows, values, strict=True)
        ]
        _write(path, lines, " ")


def _check_scores(run: Mapping[str, Sequence[str]], scores: Mapping[str, Sequence[float]]) -> None:
    for query_id, photo_ids in run.items():
        values = list(scores.get(query_id, ()))
        falling = all(one >= behind for one, behind in pairwise(values))
        if len(values) != len(photo_ids) or not falling or not all(map(math.isfinite, values)):
            msg = (
                f"scores must be finite, one for each photo, and never rise, got "
                f"{len(values)} for {len(photo_ids)} photos of {query_id!r}, {quote(values)}"
            )
            raise InputError(msg)


def _is_tsv(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".tsv")


def _write(path: Path, rows: Sequence[Sequence[str]], separator: str) -> None:
    _write_bytes(path, _encode(rows, separator))


def _write_bytes(path: Path, data: bytes) -> None:
    # Without the time of writing, so that equal runs are equal files.
    write_atomically(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _encode(rows: Sequence[Sequence[str]], separator: str) -> bytes:
    for value in {value for row in rows for value in row}:
        if not is_id(value):
            msg = f"an id must be text without spaces, and no padding, got {value!r}"
            raise InputError(msg)
    return "".join(f"{separator.join(row)}\n" for row in rows).encode()


def _lines(
    source: Path | str, trec: Sequence[str], tsv: Sequence[Sequence[str]]
) -> Iterator[tuple[str, dict[str, str]]]:
    name = str(source) if isinstance(source, Path) else "text"
    text = _text(source) if isinstance(source, Path) else source
    if isinstance(source, str) and len(source.split()) == 1:
        msg = f"text must be lines of several columns, got {quote(source)}; pass a file as a Path"
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
        row = dict(zip(columns, values, strict=True))
        for column in _ID_COLUMNS:
            if column in row and is_padding(row[column]):
                msg = f"{name}:{number} must have an id as {column}, got {row[column]!r}"
                raise InputError(msg)
        yield f"{name}:{number}", row


def _decompress(data: bytes) -> bytes:
    if not data:  # gzip takes an empty file for a valid one
        msg = "no bytes"
        raise EOFError(msg)
    return gzip.decompress(data)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (_decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except FileNotFoundError as error:
        msg = f"{path} must be a file of judgments or answers, got none there; check the path"
        raise NotFoundError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path} must be text in UTF-8, got other bytes at {error.start}; save it as UTF-8"
        raise InputError(msg) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{path} must be a whole gzip file, got: {error}; write it again"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{path} must be a file that can be read, got: {error.strerror}; check the path"
        raise InputError(msg) from error


def _grade(where: str, value: str) -> int:
    number = _number(where, "relevance", value)
    if number != int(number) or not is_grade(int(number)):
        msg = f"{where} must have a whole number from 0 to {MAX_GRADE} as relevance, got {value!r}"
        raise InputError(msg)
    return int(number)


def _number(where: str, column: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        msg = f"{where} must have a number as {column}, got {value!r}"
        raise InputError(msg)
    return number
