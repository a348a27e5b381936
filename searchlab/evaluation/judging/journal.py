"""Journal: writes every choice of a judge to disk before the next picture is shown.

One file per judge, of JSON lines that are only appended:

    {"schema": 1, "what": "grades", "pool": "3f0c...", "judge": "ann", "at": "2026-01-31T10:00:00Z"}
    {"item": ["dunes", "3f0c..."], "choice": 2, "seconds": 1.4, "at": "2026-01-31T10:00:03Z"}
    {"item": ["dunes", "77aa..."], "choice": null, "seconds": 3.0, "at": ...}      skipped
    {"undo": true, "at": ...}                                   takes the last choice back

The last choice for an item counts. A process that dies loses at most the line that it was writing.
"""

from __future__ import annotations

import datetime
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock

from searchlab.errors import DataError, InputError, MismatchError, NotFoundError
from searchlab.files import write_atomically

SCHEMA = 1

Item: TypeAlias = tuple[str, ...]
"""The subject of a choice: query_id and photo_id, or a query_id alone."""

Choice: TypeAlias = int | str | None
"""A grade or a preference; None if the judge skipped."""


@dataclass(frozen=True)
class JournalEntry:
    """One choice.

    Attributes:
        item: The subject of the choice.
        choice: The choice.
        seconds: How long the judge looked, 0 or more.
        at: Time of the choice, ISO 8601 in UTC.
    """

    item: Item
    choice: Choice
    seconds: float
    at: str


class Journal:
    """The choices of one judge, on disk.

    Several processes may write to the same journal: each takes a file lock for every line, and
    first reads what others have written.

    Attributes:
        path: The file.
        judge: Name of the judge.
        what: `grades` or `preferences`.
        pool_id: Hash of the pool that is judged.
    """

    def __init__(self, path: Path | str) -> None:
        """Read an existing journal without changing it; `open_journal` can also begin one.

        Raises:
            NotFoundError: There is no such file.
            DataError: It is damaged, and not only in its last line, or of another version.
        """
        self.path = Path(path)
        self._offset = 0
        self._line = 0
        self._chosen: list[JournalEntry] = []
        if not self.path.is_file():
            msg = f"a journal must be a file, got none at {self.path}; judge something first"
            raise NotFoundError(msg)
        head, *lines = self._whole_lines() or [b""]
        try:
            header = json.loads(head)
            if header["schema"] != SCHEMA:
                msg = f"schema {header['schema']}, this searchlab reads {SCHEMA}"
                raise ValueError(msg)
            self.what, self.pool_id = str(header["what"]), str(header["pool"])
            self.judge = str(header["judge"])
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{self.path} must be a journal of judgments, got: {error}; name another file"
            raise DataError(msg) from error
        self._line = 1
        self._take(lines)

    def __repr__(self) -> str:
        return f"<Journal of {len(self.latest)} {self.what} by {self.judge}>"

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """All choices that were not taken back, in order, also earlier ones of the same item."""
        return tuple(self._chosen)

    @property
    def latest(self) -> dict[Item, JournalEntry]:
        """The choice that counts for each item, skips included."""
        return {entry.item: entry for entry in self._chosen}

    @property
    def choices(self) -> dict[Item, int | str]:
        """The choice of each item that was not skipped."""
        entries = self.latest.items()
        return {item: entry.choice for item, entry in entries if entry.choice is not None}

    def record(self, item: Item, choice: Choice, *, seconds: float = 0.0) -> JournalEntry:
        """Write a choice; it is on the disk when this returns.

        Raises:
            OSError: It cannot be written, such as on a full disk; then it does not count.
        """
        entry = JournalEntry(tuple(item), choice, round(seconds, 3), _now())
        values = {
            "item": list(entry.item),
            "choice": entry.choice,
            "seconds": entry.seconds,
            "at": entry.at,
        }
        with self._lock():
            self._catch_up()
            self._append(values)
            self._chosen.append(entry)
        return entry

    def refresh(self) -> None:
        """Read what other processes have written since; waits for nobody."""
        self._take(self._whole_lines())

    def undo(self) -> JournalEntry | None:
        """Take the last choice back, and return it; None if there is none."""
        with self._lock():
            self._catch_up()
            if not self._chosen:
                return None
            self._append({"undo": True, "at": _now()})
            return self._chosen.pop()

    def _lock(self) -> FileLock:
        return FileLock(self.path.with_name(f".{self.path.name}.lock"))

    def _catch_up(self) -> None:
        """Read what other processes have written, and cut off an unfinished last line."""
        self._take(self._whole_lines())
        if self.path.stat().st_size > self._offset:
            with self.path.open("r+b") as file:
                file.truncate(self._offset)
                os.fsync(file.fileno())

    def _whole_lines(self) -> list[bytes]:
        with self.path.open("rb") as file:
            file.seek(self._offset)
            unread = file.read()
        complete = unread[: unread.rfind(b"\n") + 1]
        self._offset += len(complete)
        return complete.split(b"\n")[:-1]

    def _take(self, lines: list[bytes]) -> None:
        for line in lines:
            self._line += 1
            try:
                values = json.loads(line)
                if values.get("undo"):
                    self._chosen.pop()
                else:
                    self._chosen.append(_entry(values))
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                msg = (
                    f"{self.path}:{self._line} must be a choice or an undo, got "
                    f"{line[:60]!r}; take that line out"
                )
                raise DataError(msg) from error

    def _append(self, values: dict[str, Any]) -> None:
        self._offset += _append(self.path, values)
        self._line += 1


def open_journal(path: Path | str, *, what: str, pool_id: str, judge: str) -> Journal:
    """Open a judge's journal, or begin one.

    Args:
        path: The file; its folder is created if it does not exist.
        what: `grades` or `preferences`.
        pool_id: Hash of the pool that is judged.
        judge: Name of the judge, not empty.

    Raises:
        MismatchError: The journal is of another pool, of another kind, or another judge's.
        DataError: It is damaged, and not only in its last line.
        InputError: `judge` is empty, or the file cannot be written.
    """
    path = Path(path)
    if not judge.strip():
        msg = f"judge must be a name, got {judge!r}"
        raise InputError(msg)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            if _is_new(path):
                header = {"schema": SCHEMA, "what": what, "pool": pool_id, "judge": judge}
                write_atomically(path, _line_of({**header, "at": _now()}))
    except OSError as error:
        msg = f"{path} must be a file that can be written, got: {error.strerror}"
        raise InputError(msg) from error
    journal = Journal(path)
    if (journal.what, journal.pool_id) != (what, pool_id):
        msg = (
            f"{path} must hold {what} of pool {pool_id}, got {journal.what} of pool "
            f"{journal.pool_id}; pool the same runs with the same seed to go on, or begin a new "
            "file and pass what is judged already as `judged`"
        )
        raise MismatchError(msg)
    if journal.judge != judge:
        msg = f"{path} must be {judge}'s journal, got that of {journal.judge}; one file a judge"
        raise MismatchError(msg)
    return journal


def _is_new(path: Path) -> bool:
    # A journal with an unfinished first line holds no choice yet; any other file is left alone.
    if not path.exists():
        return True
    content = path.read_bytes()
    return b"\n" not in content and content[:10] == b'{"schema":'[: len(content)]


def _append(path: Path, values: dict[str, Any]) -> int:
    line = _line_of(values)
    with path.open("ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return len(line)


def _line_of(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=False) + "\n").encode()


def _entry(values: dict[str, Any]) -> JournalEntry:
    item, choice = values["item"], values["choice"]
    if not isinstance(item, list) or not all(isinstance(part, str) for part in item):
        raise TypeError
    if isinstance(choice, bool) or not isinstance(choice, int | str | None):
        raise TypeError
    return JournalEntry(tuple(item), choice, float(values["seconds"]), str(values["at"]))


def _now() -> str:
    return datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")
