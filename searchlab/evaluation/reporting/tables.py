"""Makes the tables in Markdown files from files of results, between two comments.

    <!-- table: leaderboard search_quality/demo -->
    ...
    <!-- end -->

Kinds: `leaderboard`, `languages` and `frontier` of BENCHMARK/DATASET; `rows FILE PATH COLUMN...`,
a list or dict of records; `files GLOB COLUMN...`, a row for each file; `contents`, links to all
files. A COLUMN is a dotted path with optional decimals and heading: `metrics.p50_ms:2=p50_ms`,
`share:1%`. `where` of files is `home` or `abroad`: whether `mini` was taught on such photos.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from searchlab.errors import InputError, SearchlabError
from searchlab.evaluation.reporting.claims import TABLE
from searchlab.evaluation.reporting.frontier import FRONTIER_COLUMNS, frontier_rows
from searchlab.evaluation.reporting.leaderboard import language_columns, language_rows
from searchlab.evaluation.reporting.lookup import Results, interval_of, pick
from searchlab.evaluation.reporting.scope import where_of
from searchlab.evaluation.reports import load_report
from searchlab.files import write_atomically

_COLUMN = re.compile(r"(?P<path>.+?)(?::(?P<digits>\d)(?P<percent>%)?)?(?:=(?P<head>.+))?\Z")


def render(spec: str, results: Results) -> str:
    """Make a table.

    Args:
        spec: Kind and arguments, as in the opening comment; a column with spaces needs quotes.
        results: The results that its figures come from.

    Returns:
        Markdown that ends with a line break.

    Raises:
        InputError: There is no such kind, file or value.
        NotFoundError: A folder holds no results.
        DataError: A file is damaged.
    """
    kind, *words = shlex.split(spec)
    if kind in ("leaderboard", "languages", "frontier") and len(words) == 1:
        report = load_report(results.folder / words[0])
        if kind == "leaderboard":
            return report.markdown().partition("\n\n")[2]
        if kind == "frontier":
            return _markdown(FRONTIER_COLUMNS, frontier_rows(report), left=1)
        return _markdown(language_columns(report), language_rows(report), left=1)
    if kind == "contents" and not words:
        return _contents(results)
    if kind == "rows" and len(words) > 2:
        values = results.find(f"{words[0]} {words[1]}")
        return _table(_records(values, spec), words[2:])
    if kind == "files" and len(words) > 1:
        records = [results.values(path) for path in results.files(words[0])]
        if records:
            return _table([{"where": _where(one), **one} for one in records], words[1:])
    msg = (
        "a table must be contents, leaderboard, languages or frontier BENCHMARK/DATASET, rows FILE "
        f"PATH COLUMN..., or files GLOB COLUMN... of files that are there, got {spec!r}"
    )
    raise InputError(msg)


def stale_tables(path: Path, results: Results) -> list[str]:
    """Return the specs of the tables in a file that differ from the current results.

    Raises:
        SearchlabError: A table cannot be made.
    """
    text = path.read_text(encoding="utf-8")
    return [t["spec"] for t in TABLE.finditer(text) if t["body"] != render(t["spec"], results)]


def write_tables(path: Path, results: Results) -> list[str]:
    """Make the tables in a Markdown file again from the current results.

    Returns:
        Why some could not be made; these are left unchanged.
    """
    text = path.read_text(encoding="utf-8")
    problems = []

    def make(table: re.Match[str]) -> str:
        try:
            return f"{table[1]}{render(table['spec'], results)}{table[4]}"
        except SearchlabError as error:
            problems.append(f"{table['spec']}: {error}")
            return table[0]

    new = TABLE.sub(make, text)
    if new != text:
        write_atomically(path, new.encode())
    return problems


def _contents(results: Results) -> str:
    """List benchmarks and datasets with links to their files, relative to the folder of results."""
    folders: dict[Path, list[Path]] = {}
    for path in results.files("*/*/*.json"):
        folders.setdefault(path.parent.relative_to(results.folder), []).append(path)
    rows = []
    for folder, paths in folders.items():
        links = [
            f"[{results.values(path).get('system') or path.stem}]({folder.as_posix()}/{path.name})"
            for path in paths
        ]
        rows.append([folder.parts[0], folder.parts[1], ", ".join(links)])
    return _markdown(["benchmark", "dataset", "files"], rows, left=3)


def _where(record: Mapping[str, Any]) -> str:
    return where_of(str(record.get("task") or record.get("dataset", "")))


def _records(values: Any, spec: str) -> list[Mapping[str, Any]]:
    if isinstance(values, Mapping) and all(isinstance(value, Mapping) for value in values.values()):
        return [{"key": key, **value} for key, value in values.items()]
    if isinstance(values, list) and values and all(isinstance(one, Mapping) for one in values):
        return list(values)
    msg = f"{spec!r} must name a list or dict of records, got {str(values)[:60]}"
    raise InputError(msg)


def _table(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    parsed = [_COLUMN.match(column) for column in columns]
    heads = [(c["head"] or c["path"]).replace("_", " ") for c in parsed if c is not None]
    rows = [
        [
            _print_value(_cell(record, c["path"], records), c["digits"], bool(c["percent"]))
            for c in parsed
            if c is not None
        ]
        for record in records
    ]
    left = next((n for n, cell in enumerate(rows[0]) if cell[:1].isdigit()), len(heads))
    return _markdown(heads, rows, left=left)


def _cell(record: Mapping[str, Any], path: str, records: Sequence[Mapping[str, Any]]) -> Any:
    """Pick a value; None if this record lacks it, but another one has it."""
    try:
        return pick(record, path, what="a record")
    except InputError:
        for other in records:
            with suppress(InputError):
                pick(other, path)
                return None
        raise


def _print_value(value: Any, digits: str | None, percent: bool) -> str:
    value = interval_of(value)
    if isinstance(value, list) and len(value) == 3:
        mean, low, high = (_print_value(one, digits, percent) for one in value)
        return f"{mean} [{low}, {high}]"
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if digits is None:
        return f"{value:,}"
    return f"{100 * value if percent else value:,.{digits}f}{' %' if percent else ''}"


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Lay out a Markdown table whose first `left` columns are words."""
    sides = [":---" if place < left else "---:" for place in range(len(columns))]
    lines = [columns, sides, *rows]
    return "".join(f"| {' | '.join(c.strip().replace('|', '/') for c in row)} |\n" for row in lines)
