"""Dumps: files of a library's own records, read one at a time; what cannot be used is reported."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from searchlab.errors import InputError, quote
from searchlab.photos.sidecar import Skipped
from searchlab.sources.record import SourceRecord
from searchlab.sources.source import Source

MAX_LINE_BYTES = 16 * 2**20
MAX_DOCUMENT_BYTES = 256 * 2**20


class DumpRecord(NamedTuple):
    """A record and where it stands.

    Attributes:
        where: The file and the line, or the number of the record in a document.
        record: The record in searchlab's words.
    """

    where: str
    record: SourceRecord


def read_dump(path: Path, source: Source) -> Iterator[DumpRecord | Skipped]:
    """Read a file of records of one library.

    A line of JSONL holds a record or a whole answer of the library's API; so does a JSON document,
    which must fit into memory. CSV has a record a line. JSONL and CSV are read line by line,
    whatever the file's size.

    Args:
        path: A `.csv` file, or any other name for JSONL or JSON.
        source: The library whose records they are.

    Yields:
        A record, or what is wrong with one.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        if path.suffix.lower() == ".csv":
            answers = _read_csv(path)
        elif _is_document(path):
            answers = _read_document(path)
        else:
            answers = _read_lines(path)
        for where, answer in answers:
            if isinstance(answer, Skipped):
                yield answer
            else:
                for _, item in read_api_answer(where, answer, source):
                    yield item
    except OSError as error:
        msg = f"a dump must be a readable file, got {path}: {error.strerror}"
        raise InputError(msg) from error


def read_api_answer(
    where: str, answer: Any, source: Source
) -> Iterator[tuple[Any, DumpRecord | Skipped]]:
    """Read the records of one answer of an API.

    Args:
        where: File and line, or page, that a problem is reported with.
        answer: Parsed JSON.
        source: The library that answered.

    Yields:
        Each entry as it came, with its record or with what is wrong with it.
    """
    try:
        entries = source.entries(answer)
    except (TypeError, ValueError, RecursionError) as error:
        yield answer, Skipped(where, _short(error))
        return
    for number, entry in enumerate(entries, start=1):
        place = where if len(entries) == 1 else f"{where}, record {number}"
        try:
            yield entry, DumpRecord(place, source.record(entry))
        except InputError as error:
            yield entry, Skipped(place, str(error))
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            yield entry, Skipped(place, f"it is no record of {source.name}: {_short(error)}")


def _read_lines(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            where = f"{path}:{number}"
            if len(line) > MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                yield where, Skipped(where, f"a line must be at most {MAX_LINE_BYTES:,} bytes")
            elif line.strip():
                yield where, _parse(line, where)


def _is_document(path: Path) -> bool:
    # One JSON value over several lines: its first line is no JSON value by itself.
    with path.open("rb") as file:
        line = b""
        while not line.strip():
            line = file.readline(MAX_LINE_BYTES)
            if not line:
                return False
    if not isinstance(_parse(line, ""), Skipped):
        return False
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        return False
    return not isinstance(_parse(path.read_bytes(), ""), Skipped)


def _read_document(path: Path) -> Iterator[tuple[str, Any]]:
    yield str(path), _parse(path.read_bytes(), str(path))


def _parse(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Skipped(where, f"a record must be JSON; {_short(error)}")


def _read_csv(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="")
        rows = csv.DictReader(text)
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                where = f"{path}:{rows.line_num}"
                yield where, Skipped(where, f"a row must be CSV; {_short(error)}")
                continue
            yield f"{path}:{rows.line_num}", {k: v for k, v in row.items() if isinstance(k, str)}


def _short(error: Exception) -> str:
    return quote(str(error))[1:-1] or type(error).__name__
