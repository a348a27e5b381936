"""FileWatch: notices that the file of a SQLite database was deleted or replaced while it is open.

A file that has lost its name goes on taking transactions, and they are gone with the last process
that holds it open; the same holds for its journal. So before each transaction the file is compared
with the one that was opened, and after each that wrote, before anybody is told, its journal too.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import InvalidatePoolError

from searchlab.api.accounts.tables import VERSION
from searchlab.errors import DataError
from searchlab.files import write_atomically

_SIDES = ("-wal", "-shm")
_LOG = logging.getLogger(__name__)

_Node = tuple[int, int]


class UnreachableDatabaseError(DataError):
    """The database does not answer, or cannot be written, at the moment."""


class FileWatch:
    """Which file is open: a database, and the journal and its index that belong to it.

    A database that was replaced together with its journal is opened anew. One beside the journal of
    the file before is not, since SQLite would write the journal's pages into it.
    """

    def __init__(self, file: Path, notes: Path | None = None) -> None:
        """Watch a file that may not exist yet.

        Args:
            file: The database.
            notes: Where the processes of one server keep which file they have open, so that one
                that starts later knows it; None for a process alone.
        """
        self._file = file
        self._notes = notes
        self._nodes: dict[str, _Node | None] = {}
        self._used: set[int] = set()  # connections that hold the journal, so that it must stay
        self._lost = ""  # the side file that is gone, which other processes may still have open
        self._problem = ""
        if notes is not None:
            with suppress(OSError, ValueError):
                stored = json.loads(notes.read_bytes())
                self._nodes = {side: node and (node[0], node[1]) for side, node in stored.items()}

    def connect(self, timeout_s: float) -> sqlite3.Connection:
        """Open a connection; unlike SQLite's default, never create the file."""
        self.check()
        address = f"file:{quote(str(self._file))}?mode=rw"
        return sqlite3.connect(address, uri=True, timeout=timeout_s, check_same_thread=False)

    def attach(self, engine: Engine) -> None:
        """Check each connection before it is used."""

        @event.listens_for(engine, "connect")
        def _note(connection: Any, record: Any) -> None:
            record.info["node"] = _node_of(self._file)
            if self._nodes and record.info["node"] != self._nodes[""]:
                _check_version(connection, self._file)

        @event.listens_for(engine, "checkout")
        def _check(_connection: Any, record: Any, _proxy: Any) -> None:
            opened = record.info["node"]
            # One look at the file is enough while it is the one that all know: each look lets go of
            # the interpreter, and a busy server takes turns over it.
            is_known = record.info.get("used") and not self._problem
            if is_known and _node_of(self._file) == opened == self._nodes.get(""):
                return
            self.check()
            if opened != _node_of(self._file):
                msg = f"{self._file} was replaced"
                raise InvalidatePoolError(msg)
            self._remember(opened)

        @event.listens_for(engine, "checkin")
        def _see(_connection: Any, record: Any) -> None:
            if "used" in record.info:
                return
            node = record.info.get("node")
            if node is not None and node == _node_of(self._file):  # its first use made the journal
                self._remember(node)
                record.info["used"] = True
                self._used.add(id(record))

        @event.listens_for(engine, "close")
        def _forget(_connection: Any, record: Any) -> None:
            self._used.discard(id(record))
            record.info["used"] = False

    def confirm(self, opened: _Node | None) -> None:
        """Make sure that what was just committed is in the file that will be found again.

        Args:
            opened: The file that it was committed to: `info["node"]` of its connection.

        Raises:
            UnreachableDatabaseError: The file or its journal was removed or replaced meanwhile.
        """
        nodes = self._look()
        if nodes == self._nodes:
            return
        self.check()
        if opened != nodes[""]:
            msg = f"{self._file} must stay until the end, got another in its place; try again"
            raise UnreachableDatabaseError(msg)
        self._remember(opened)

    def check(self) -> None:
        """Compare the file with the one that was opened.

        Raises:
            UnreachableDatabaseError: It is gone, or replaced beside the journal of the one before;
                or its journal is gone.
        """
        if not self._nodes:
            return
        node = _node_of(self._file)
        if node is None:
            self._refuse(
                f"{self._file} must be the file that is open, got none in its place; "
                "put it back, or restore a backup with `searchlab restore`"
            )
        sides = {side: self._side(side) for side in _SIDES}
        known = {side: self._nodes[side] for side in _SIDES if self._nodes.get(side)}
        left = [side for side in known if sides[side] == known[side]]
        lost = [side for side in known if sides[side] != known[side]]
        if node != self._nodes[""] or not lost:
            self._lost = ""
        elif self._used or self._lost:
            self._lost = self._lost or lost[0]
            self._refuse(
                f"{self._file} must have the {self._lost} file that is open beside it, got none; "
                "put it back, or stop the server, which writes what the file held into the "
                "database, and start it again"
            )
        if node != self._nodes[""] and left:
            self._refuse(
                f"{self._file} must be the file that is open, got another one beside the "
                f"{left[0]} file of the first; stop the server, delete both side files, and use "
                "`searchlab restore` next time, which needs no stop"
            )

    def _refuse(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            _LOG.error("the database is not ready: %s", problem)
        raise UnreachableDatabaseError(problem)

    def _remember(self, node: _Node | None) -> None:
        nodes = self._look() | {"": node}
        if nodes == self._nodes:
            if self._problem:
                self._problem = ""
                _LOG.warning("the database is ready again: %s", self._file)
            return
        if self._nodes and nodes[""] != self._nodes[""]:
            _LOG.warning("the database was replaced and is opened anew: %s", self._file)
        self._nodes, self._problem = nodes, ""
        if self._notes is not None:
            with suppress(OSError):  # only a worker that starts later would miss it
                write_atomically(self._notes, json.dumps(nodes).encode())

    def _look(self) -> dict[str, _Node | None]:
        return {side: self._side(side) for side in ("", *_SIDES)}

    def _side(self, side: str) -> _Node | None:
        return _node_of(self._file.with_name(self._file.name + side))


def _node_of(path: Path) -> _Node | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - before each transaction, and ten times as fast
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check_version(connection: sqlite3.Connection, file: Path) -> None:
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error:
        row = None
    version = row and row[0]
    if version != VERSION:
        msg = (
            f"{file} must have the tables of version {VERSION}, got {version}; "
            "restore it with `searchlab restore`, which migrates it"
        )
        raise UnreachableDatabaseError(msg)
