"""Queries to judge from a text that people paste or keep in a file.

    golden hour over dunes                  a line is a query
    ar<TAB>غروب في الصحراء                   with its language in front, a BCP 47 tag
    query_id<TAB>lang<TAB>text              or a table with this header, as datasets have it

The id of a query without one comes from its words, so it is the same in every list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from searchlab.errors import InputError, quote
from searchlab.evaluation.datasets.judgments import is_id
from searchlab.evaluation.datasets.labelled import LabelledQuery

UNKNOWN_LANGUAGE: Final = "und"
"""BCP 47 for a language that nobody has named."""
MAX_QUERIES: Final = 2_000

_KIND = "written"
_COLUMNS = ("query_id", "lang", "text")
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def parse_queries(text: str) -> tuple[LabelledQuery, ...]:
    """Read a list of queries; empty lines and repeated queries are left out.

    Raises:
        InputError: A line is no query, two different ones have the same id, or there are none or
            more than `MAX_QUERIES`.
    """
    lines = [(n, line.rstrip("\r")) for n, line in enumerate(text.split("\n"), start=1)]
    lines = [(number, line) for number, line in lines if line.strip()]
    columns: list[str] | None = None
    if lines and lines[0][1].lstrip("\ufeff").startswith("query_id\t"):
        columns = lines.pop(0)[1].lstrip("\ufeff").split("\t")
        if "text" not in columns:
            msg = f"a table of queries must have the columns {', '.join(_COLUMNS)}, got {columns}"
            raise InputError(msg)
    queries: dict[str, LabelledQuery] = {}
    for number, line in lines:
        query = _query(number, _cells(number, line, columns))
        if queries.setdefault(query.query_id, query) != query:
            msg = f"queries must have ids of their own, got {query.query_id!r} again in {number}"
            raise InputError(msg)
    if not 1 <= len(queries) <= MAX_QUERIES:
        msg = f"queries must be 1 to {MAX_QUERIES:,}, one a line, got {len(queries):,}"
        raise InputError(msg)
    return tuple(queries.values())


def _cells(number: int, line: str, columns: list[str] | None) -> Mapping[str, str]:
    cells = line.split("\t")
    if columns is None:
        columns = ["lang", "text"] if len(cells) == 2 and _TAG.fullmatch(cells[0]) else ["text"]
    if len(cells) != len(columns):
        msg = (
            f"line {number} must be a query, or a language, a tab and a query, got {quote(line)}; "
            "for more columns begin with the header query_id, lang, text"
        )
        raise InputError(msg)
    return dict(zip(columns, map(str.strip, cells), strict=True))


def _query(number: int, cells: Mapping[str, str]) -> LabelledQuery:
    text, lang = cells["text"], cells.get("lang") or UNKNOWN_LANGUAGE
    query_id = cells.get("query_id") or _id_of(lang, text)
    if not is_id(query_id) or not _TAG.fullmatch(lang):
        msg = (
            f"line {number} must have an id without spaces and a BCP 47 language, got "
            f"{quote(query_id)} and {quote(lang)}"
        )
        raise InputError(msg)
    query = LabelledQuery(query_id, lang, _KIND, text)
    try:
        if not text:
            msg = "text must not be empty"
            raise InputError(msg)
        query.query()
    except InputError as error:
        msg = f"line {number} must be a query, got: {error}"
        raise InputError(msg) from error
    return query


def _id_of(lang: str, text: str) -> str:
    return f"q-{hashlib.sha256(f'{lang} {text}'.encode()).hexdigest()[:10]}"
