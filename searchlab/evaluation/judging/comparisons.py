"""ComparisonTask: two rankings that wait beside a library to be compared blind, side by side.

DIR/judging/NAME/comparison.json             title, queries and both rankings; never changed
DIR/judging/NAME/journals/OWNER-HASH.jsonl   one for each judge, which only grows
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from searchlab.errors import DataError
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.judging.journal import Journal
from searchlab.evaluation.judging.preferences import BlindComparison
from searchlab.evaluation.judging.session import Pictures
from searchlab.evaluation.judging.tasks import (
    FOLDER,
    check_free,
    check_name,
    find_file,
    journal_path,
    list_tasks,
    now,
    place_folder,
    query_values,
    read_query,
)

SCHEMA: Final = 1
_FILE: Final = "comparison.json"


@dataclass(frozen=True)
class ComparisonTask:
    """Two rankings of the same queries, on disk.

    Attributes:
        folder: Its folder, whose name is the task's.
        title: Title for people.
        made_at: When, ISO 8601 in UTC.
        queries: The queries.
        runs: Two systems -> query_id -> photo_ids, best first.
        depth: Photos on each side.
        seed: Seed of order and sides.
    """

    folder: Path
    title: str
    made_at: str
    queries: tuple[LabelledQuery, ...]
    runs: Mapping[str, Mapping[str, Sequence[str]]]
    depth: int
    seed: int

    @property
    def name(self) -> str:
        """The name in addresses and on the command line."""
        return self.folder.name

    def comparing(self, judge: str, *, pictures: Pictures, owner: str = "local") -> BlindComparison:
        """Continue a judge's session, or begin one.

        Args:
            judge: Name of the judge, 1 to 300 characters.
            pictures: Source of pictures.
            owner: Whose journal it is, such as an account's number; letters a-z and digits.

        Raises:
            InputError: The name is empty or too long, or the rankings are equal for every query.
        """
        path = journal_path(self.folder, judge, owner)
        return BlindComparison(
            self, self.runs, path, judge=judge, pictures=pictures, depth=self.depth, seed=self.seed
        )

    def journals(self) -> list[Journal]:
        """Open the journals of all judges, sorted by their names."""
        paths = (self.folder / "journals").glob("*.jsonl")
        return sorted(map(Journal, paths), key=lambda journal: (journal.judge, journal.path))


def create_comparison(
    library: Path,
    name: str,
    queries: Sequence[LabelledQuery],
    runs: Mapping[str, Mapping[str, Sequence[str]]],
    *,
    title: str = "",
    depth: int = 6,
    seed: int = 0,
) -> ComparisonTask:
    """Put two rankings beside a library for judges.

    Args:
        library: The library's folder.
        name: Of the task: lower-case letters a-z, digits and dashes, at most 64.
        queries: The queries.
        runs: Two systems -> query_id -> photo_ids, best first.
        title: Title for people; the name if left out.
        depth: Photos on each side, 1 to 30.
        seed: Seed of order and sides.

    Raises:
        ConflictError: There is a task of this name.
        InputError: The name or the title cannot be one, or the rankings do not differ.
    """
    title = title.strip() or name
    check_name(name, title)
    check_free(library, name)
    folder = library / FOLDER / name
    first = {system: {i: list(run[i])[:depth] for i in run} for system, run in runs.items()}
    task = ComparisonTask(folder, title, now(), tuple(queries), first, depth, seed)
    BlindComparison.check(task, task.runs, depth=depth, seed=seed)
    values = {
        "schema": SCHEMA,
        "title": title,
        "made_at": task.made_at,
        "queries": [query_values(query) for query in queries],
        "runs": first,
        "depth": depth,
        "seed": seed,
    }
    place_folder(folder, _FILE, values)
    return task


def open_comparison(library: Path, name: str) -> ComparisonTask:
    """Open a comparison of a library.

    Raises:
        NotFoundError: There is none of this name.
        DataError: Its file is damaged or of another version.
    """
    path = find_file(library, name, _FILE)
    try:
        values: dict[str, Any] = json.loads(path.read_bytes())
        if values["schema"] != SCHEMA:
            msg = f"schema {values['schema']}, this searchlab reads {SCHEMA}"
            raise ValueError(msg)
        return ComparisonTask(
            path.parent,
            values["title"],
            values["made_at"],
            tuple(map(read_query, values["queries"])),
            values["runs"],
            values["depth"],
            values["seed"],
        )
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{path} must be a comparison, got: {error}; make another one"
        raise DataError(msg) from error


def list_comparisons(library: Path) -> list[str]:
    """List the names of a library's comparisons, the newest first."""
    return list_tasks(library, _FILE)
