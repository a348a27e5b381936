"""JudgingTask: a pool that waits beside a library for its judges, and their journals.

    DIR/judging/NAME/task.json              title, queries and pairs, which never change
    DIR/judging/NAME/journals/OWNER-HASH.jsonl   one for each judge, which only grows

A task is made beside the others and then renamed into place, so there is a whole one or none.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from searchlab.errors import (
    ConflictError,
    DataError,
    InputError,
    MismatchError,
    NotFoundError,
    quote,
)
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.journal import Journal
from searchlab.evaluation.judging.merge import merge_grades, read_grades
from searchlab.evaluation.judging.pools import Pair, Pool
from searchlab.evaluation.judging.session import Pictures
from searchlab.files import sync_folder, write_atomically
from searchlab.search.filters.photo_filter import PhotoFilter

SCHEMA: Final = 1
FOLDER: Final = "judging"
MAX_TITLE: Final = 200
MAX_JUDGE: Final = 300
LOCAL: Final = "local"
"""Owner of what is made or judged on this machine, without an account."""
COMMAND_LINE: Final = "command line"
"""Maker of the tasks that are made on this machine."""
EYE: Final = "eye"
"""Origin of a judgment that people made by looking at the picture."""

_RESERVED = frozenset({"new"})  # the page that makes a task
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_OWNER = re.compile(r"[a-z0-9]{1,20}")


@dataclass(frozen=True)
class JudgingTask:
    """A pool to judge, on disk.

    Attributes:
        folder: Its folder, whose name is the task's.
        title: Title for people.
        made_by: Name of whoever made it; empty after their account was closed.
        made_at: When, ISO 8601 in UTC.
        pool: The pairs to grade.
        owner: Number of the account that made it; empty in tasks of before, and after it closed.
    """

    folder: Path
    title: str
    made_by: str
    made_at: str
    pool: Pool
    owner: str = ""

    @property
    def name(self) -> str:
        """The name in addresses and on the command line."""
        return self.folder.name

    def grading(self, judge: str, *, pictures: Pictures, owner: str = LOCAL) -> Grading:
        """Continue a judge's session, or begin one.

        Args:
            judge: Name of the judge, 1 to 300 characters.
            pictures: Source of pictures.
            owner: Whose journal it is, such as an account's number; letters a-z and digits.

        Raises:
            InputError: The name is empty or too long.
        """
        return Grading(self.pool, self.journal_of(judge, owner), judge=judge, pictures=pictures)

    def journal_of(self, judge: str, owner: str = LOCAL) -> Path:
        """Return the file of a judge, which need not exist yet.

        Raises:
            InputError: The name is empty or too long, or `owner` is none.
        """
        return journal_path(self.folder, judge, owner)

    def journals(self, owner: str = "") -> list[Journal]:
        """Open the journals of all judges, or of one owner's, sorted by their names."""
        paths = (self.folder / "journals").glob(f"{owner}-*.jsonl" if owner else "*.jsonl")
        return sorted(map(Journal, paths), key=lambda journal: (journal.judge, journal.path))

    def grades(self) -> dict[str, dict[Pair, int]]:
        """Return the grades so far: judge -> pair -> grade; judges without a grade are left out.

        Raises:
            DataError: A journal is damaged.
            MismatchError: A journal is of another pool.
        """
        grades: dict[str, dict[Pair, int]] = {}
        for journal in self.journals():
            if journal.pool_id != self.pool.pool_id:
                msg = f"{journal.path} must be of pool {self.pool.pool_id}, got {journal.pool_id}"
                raise MismatchError(msg)
            (given,) = read_grades([journal]).values()
            if given:
                # Two owners may have judges of one name.
                known = journal.judge in grades
                grades[f"{journal.judge} ({journal.path.stem})" if known else journal.judge] = given
        return grades

    def qrels(self, rule: str) -> dict[str, dict[str, int]]:
        """Merge the grades of all judges into judgments; see `merge_grades`.

        Raises:
            InputError: The rule is unknown, or it leaves no judgment.
        """
        return merge_all(self.grades(), rule)


def merge_all(grades: Mapping[str, Mapping[Pair, int]], rule: str) -> dict[str, dict[str, int]]:
    """Merge grades into judgments as `merge_grades` does, at least one.

    Raises:
        InputError: The rule is unknown, or it leaves no judgment.
    """
    qrels = merge_grades(grades, rule=rule)
    if not qrels:
        msg = f"the rule {rule} must leave a judgment to export, got none; judge first"
        raise InputError(msg)
    return qrels


def eye_origins(qrels: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, str]]:
    """Return where each judgment of a task comes from: from people who looked."""
    return {query: dict.fromkeys(grades, EYE) for query, grades in qrels.items()}


def journal_path(folder: Path, judge: str, owner: str) -> Path:
    """Return the file of a judge in the folder of a task.

    Raises:
        InputError: The name is empty or too long, or `owner` is none.
    """
    if not 1 <= len(judge.strip()) <= MAX_JUDGE or not _OWNER.fullmatch(owner):
        msg = f"judge must be a name of 1 to {MAX_JUDGE} characters, got {quote(judge)}"
        raise InputError(msg)
    # By hash: a name is any text, and a file's name is not.
    digest = hashlib.sha256(judge.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return folder / "journals" / f"{owner}-{digest}.jsonl"


def task_name(title: str) -> str:
    """Make a name out of a title, the same for the same title.

    >>> task_name("Dunes & Camels, May"), task_name("غروب")
    ('dunes-camels-may', 'task-3434e0')
    """
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:48].strip("-")
    if words in _RESERVED:
        return f"{words}-task"
    return words or f"task-{hashlib.sha256(title.encode()).hexdigest()[:6]}"


def create_task(
    library: Path,
    name: str,
    pool: Pool,
    *,
    title: str = "",
    made_by: str = "",
    owner: str = LOCAL,
) -> JudgingTask:
    """Put a pool beside a library for judges.

    Args:
        library: The library's folder.
        name: Of the task: lower-case letters a-z, digits and dashes, at most 64.
        pool: The pairs to grade.
        title: Title for people; the name if left out.
        made_by: Name of whoever makes it.
        owner: Number of the account that makes it.

    Raises:
        ConflictError: There is one of this name.
        InputError: The name or the title cannot be one.
    """
    return place_task(library, name, pool, title=title, made_by=made_by, owner=owner)


def place_task(
    library: Path,
    name: str,
    pool: Pool,
    *,
    title: str = "",
    made_by: str = "",
    owner: str = LOCAL,
    more: Mapping[str, Any] | None = None,
) -> JudgingTask:
    """Do what `create_task` does, with more in the task's file."""
    title = title.strip() or name
    check_name(name, title)
    task = JudgingTask(library / FOLDER / name, title, made_by, now(), pool, owner)
    place_folder(task.folder, "task.json", _as_json(task) | dict(more or {}))
    return task


def now() -> str:
    """Return the time in UTC, ISO 8601."""
    return datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")


def check_name(name: str, title: str) -> None:
    """Check what a task is to be called.

    Raises:
        InputError: The name or the title cannot be one.
    """
    if not _NAME.fullmatch(name) or name in _RESERVED or len(title) > MAX_TITLE:
        msg = (
            f"a judging task must have a name of a-z, 0-9 and dashes, not `new`, and a title of "
            f"at most {MAX_TITLE} characters, got {quote(name)} and {quote(title)}"
        )
        raise InputError(msg)


def place_folder(folder: Path, file: str, values: Mapping[str, Any]) -> None:
    """Make the folder of a task with its file, whole or not at all.

    Raises:
        ConflictError: There is one of this name.
        InputError: It cannot be written.
    """
    beside = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    try:
        (beside / "journals").mkdir(parents=True)
        write_atomically(beside / file, json.dumps(values, ensure_ascii=False).encode())
        beside.rename(folder)  # fails if there is one, even if another process made it just now
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        if not folder.exists():
            msg = f"{folder} must be a folder that can be written, got: {error.strerror}"
            raise InputError(msg) from error
        check_free(folder.parent.parent, folder.name)
        raise
    sync_folder(folder.parent)


def check_free(library: Path, name: str) -> None:
    """Check that no task of a library has this name yet.

    Raises:
        ConflictError: One has.
    """
    if (library / FOLDER / name).exists():
        msg = f"a judging task must have a name of its own, got {name!r}, which is taken"
        raise ConflictError(msg)


def open_task(library: Path, name: str) -> JudgingTask:
    """Open a judging task of a library.

    Raises:
        NotFoundError: There is none of this name.
        DataError: Its file is damaged or of another version.
    """
    path = find_file(library, name, "task.json")
    try:
        return _from_json(path.parent, json.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{path} must be a judging task, got: {error}; make another one"
        raise DataError(msg) from error


def find_file(library: Path, name: str, file: str) -> Path:
    """Return the file of a task.

    Raises:
        NotFoundError: There is none of this name.
    """
    path = library / FOLDER / name / file
    if not _NAME.fullmatch(name) or not path.is_file():
        msg = f"name must be that of a judging task, got {quote(name)}"
        raise NotFoundError(msg)
    return path


def list_tasks(library: Path, file: str = "task.json") -> list[str]:
    """List the names of a library's judging tasks, the newest first."""
    newest: list[tuple[int, str]] = []
    for path in (library / FOLDER).glob(f"[a-z0-9]*/{file}"):
        with suppress(FileNotFoundError):  # deleted just now
            newest.append((-path.stat().st_mtime_ns, path.parent.name))
    return [name for _, name in sorted(newest) if _NAME.fullmatch(name)]


def journals_of(library: Path, owner: str) -> list[Path]:
    """Return the journals of one owner in all tasks of a library, sorted by task."""
    return sorted((library / FOLDER).glob(f"*/journals/{owner}-*.jsonl"))


def delete_journals(library: Path, owner: str) -> None:
    """Delete what one owner's judges have judged in all tasks of a library."""
    for path in (library / FOLDER).glob(f"*/journals/{owner}-*"):
        path.unlink(missing_ok=True)


def delete_task(task: JudgingTask) -> None:
    """Delete a task and all that was judged for it."""
    gone = task.folder.with_name(f".{task.name}-{secrets.token_hex(4)}")
    task.folder.rename(gone)
    shutil.rmtree(gone)


def query_values(query: LabelledQuery) -> dict[str, Any]:
    """Return a query as plain values, which `read_query` reads."""
    return {
        "query_id": query.query_id,
        "lang": query.lang,
        "kind": query.kind,
        "text": query.text,
        "photo_id": query.photo_id,
        "filter": query.filter.to_dict(),
        "text_alpha": query.text_alpha,
    }


def read_query(values: Mapping[str, Any]) -> LabelledQuery:
    """Make a query of the values of `query_values`."""
    return LabelledQuery(**{**values, "filter": PhotoFilter(**values["filter"])})


def _as_json(task: JudgingTask) -> dict[str, Any]:
    pool = task.pool
    return {
        "schema": SCHEMA,
        "title": task.title,
        "made_by": task.made_by,
        "owner": task.owner,
        "made_at": task.made_at,
        "pool_id": pool.pool_id,
        "depth": pool.depth,
        "systems": list(pool.systems),
        "n_left_out": pool.n_left_out,
        "queries": [query_values(query) for query in pool.queries.values()],
        "pairs": [list(pair) for pair in pool.pairs],
        "drawn": [list(pair) for pair in sorted(pool.drawn)],
    }


def _from_json(folder: Path, values: Mapping[str, Any]) -> JudgingTask:
    if values["schema"] != SCHEMA:
        msg = f"schema {values['schema']}, this searchlab reads {SCHEMA}"
        raise ValueError(msg)
    queries = [read_query(query) for query in values["queries"]]
    pool = Pool(
        queries={query.query_id: query for query in queries},
        pairs=tuple(Pair(*pair) for pair in values["pairs"]),
        drawn=frozenset(Pair(*pair) for pair in values["drawn"]),
        depth=values["depth"],
        systems=tuple(values["systems"]),
        n_left_out=values["n_left_out"],
    )
    if pool.pool_id != values["pool_id"]:
        msg = f"pairs of pool {pool.pool_id} under the id {values['pool_id']!r}"
        raise ValueError(msg)
    title, made_by, made_at = (values[name] for name in ("title", "made_by", "made_at"))
    return JudgingTask(folder, title, made_by, made_at, pool, values.get("owner", ""))
