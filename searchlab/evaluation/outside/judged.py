"""Judgments and queries as other toolkits leave them on disk.

qrels.trec, qrels.tsv, qrels.gz    TREC, BEIR, or our own; a grade below 0 counts as 0
qrels.json                         ranx: query -> document -> grade
queries.tsv                        query_id, lang and, where wanted, about
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from searchlab.errors import InputError, NotFoundError, quote
from searchlab.evaluation.datasets.judgments import MAX_GRADE, read_qrels

_QUERY: Final = ("query_id", "query-id", "qid", "_id")
_HEADS_OF_BEIR: Final = ("query-id", "corpus-id", "score")


@dataclass(frozen=True)
class OutsideJudgments:
    """Judgments of other people.

    Attributes:
        qrels: query_id -> document -> grade, of the queries that have a relevant document.
        n_without: Number of queries that have none, so that no system can answer them.
    """

    qrels: Mapping[str, Mapping[str, int]]
    n_without: int


def read_judgments(path: Path) -> OutsideJudgments:
    """Read judgments in any of these forms.

    Raises:
        NotFoundError: There is no such file.
        InputError: It cannot be read, or no query has a relevant document.
    """
    try:
        whole = _read(path)
    except FileNotFoundError as error:
        msg = f"{path} must be a file of judgments, got none there; check the path"
        raise NotFoundError(msg) from error
    except (OSError, EOFError, TypeError, ValueError, AttributeError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        msg = f"{path} must hold judgments (TREC, BEIR or ranx), got: {error}"
        raise InputError(msg) from error
    qrels = {query_id: grades for query_id, grades in whole.items() if any(grades.values())}
    if not qrels:
        msg = f"{path} must judge a document relevant for some query, got {len(whole)} without any"
        raise InputError(msg)
    return OutsideJudgments(qrels, len(whole) - len(qrels))


def _read(path: Path) -> dict[str, dict[str, int]]:
    if path.suffix == ".json":
        values = json.loads(path.read_text(encoding="utf-8-sig"))
        return {
            str(query_id): {str(one): _grade(path, grade) for one, grade in grades.items()}
            for query_id, grades in values.items()
        }
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    first = text.partition("\n")[0].rstrip("\r")
    if first.startswith("query_id\t"):
        return read_qrels(text)
    is_beir = tuple(first.split("\t")) == _HEADS_OF_BEIR
    lines = [line.split() for line in text.splitlines()[is_beir:] if line.strip()]
    qrels: dict[str, dict[str, int]] = {}
    for number, cells in enumerate(lines, start=1 + is_beir):
        if len(cells) != (3 if is_beir else 4):
            wanted = "query, document, grade" if is_beir else "query, 0, document, grade"
            msg = f"{path}:{number} must have the columns {wanted}, got {quote(' '.join(cells))}"
            raise InputError(msg)
        query_id, document = cells[0], cells[-2]
        grades = qrels.setdefault(query_id, {})
        if document in grades:
            msg = f"{path}:{number} must judge a document once, got {document!r} for {query_id!r}"
            raise InputError(msg)
        grades[document] = _grade(path, cells[-1])
    return qrels


def _grade(path: Path, value: Any) -> int:
    number = float(value)
    if not number.is_integer() or number > MAX_GRADE:
        msg = f"{path} must have whole numbers to {MAX_GRADE} as grades, got {quote(value)}"
        raise InputError(msg)
    return max(0, int(number))  # TREC marks spam by grades below 0, which is not relevant


def read_labels(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Read what is known of queries: a table with the columns query_id, lang and, or, about.

    Returns:
        query_id -> language, and query_id -> what it is about; either may be empty.

    Raises:
        NotFoundError: There is no such file.
        InputError: It is no such table.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            has_tabs = "\t" in lines.readline()
            lines.seek(0)
            if has_tabs:
                table = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, restval="")
            else:
                table = csv.DictReader(lines, restval="")
            rows = list(table)
    except FileNotFoundError as error:
        msg = f"{path} must be a table of queries, got no file; check the path"
        raise NotFoundError(msg) from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path} must be a table of queries in UTF-8, got: {error}"
        raise InputError(msg) from error
    head = rows[0].keys() if rows else ()
    query = next((name for name in _QUERY if name in head), None)
    if query is None or not {"lang", "about"} & set(head):
        msg = f"{path} must have the columns query_id, and lang or about, got {', '.join(head)}"
        raise InputError(msg)
    langs = {row[query]: row["lang"] for row in rows} if "lang" in head else {}
    about = {row[query]: row["about"] for row in rows if row["about"]} if "about" in head else {}
    return langs, about
