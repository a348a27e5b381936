"""OpenSessions: the judging sessions that a worker has open; the journals on disk decide.

Several workers, and several windows of one judge, may work on the same journal. Each request first
reads what others have written, and shows the place that its address names, so none disturbs
another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from litestar import Request

from searchlab.api.accounts.values import storable
from searchlab.api.http.context import services_of
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.web.templates import root_of
from searchlab.api.web.visitor import Visitor
from searchlab.errors import InputError, NotFoundError, quote
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.session import Pictures
from searchlab.evaluation.judging.tasks import FOLDER, JudgingTask, open_task

MAX_NAME: Final = 80
_MOST_OPEN: Final = 64
_Mark = tuple[int, int]


@dataclass(frozen=True, slots=True)
class HumanJudge:
    """Who judges: an account, or one of several people who share it.

    Attributes:
        account_id: The account.
        label: Name in journals and tables: `ACCOUNT` or `ACCOUNT/NAME`.
        name: The name within the account; empty for the account itself.
    """

    account_id: int
    label: str
    name: str = ""

    @property
    def owner(self) -> str:
        """Owner of these journals."""
        return str(self.account_id)


def judge_of(visitor: Visitor, name: str) -> HumanJudge:
    """Return the judge of a name within the visitor's account; empty for the account itself.

    Raises:
        InputError: The name is too long, holds `/`, or cannot be stored.
    """
    name = storable(name, "judge", most=MAX_NAME).strip()
    if "/" in name:
        msg = f"judge must be a name without /, got {quote(name)}"
        raise InputError(msg)
    # Two judges never have the same label, whatever an account is called.
    account = visitor.account.replace("%", "%25").replace("/", "%2F")
    return HumanJudge(visitor.account_id, f"{account}/{name}" if name else account, name)


@dataclass(slots=True)
class _Open:
    session: Grading
    lock: threading.Lock = field(default_factory=threading.Lock)


class OpenSessions:
    """The tasks and sessions that were used last; thread-safe."""

    def __init__(self, library: Path) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._tasks: OrderedDict[tuple[str, _Mark], JudgingTask] = OrderedDict()
        self._sessions: OrderedDict[tuple[str, _Mark, str, str], _Open] = OrderedDict()

    def task(self, name: str) -> JudgingTask:
        """Return a judging task.

        Raises:
            NotFoundError: There is none of this name.
        """
        return self._task(name)[0]

    def _task(self, name: str) -> tuple[JudgingTask, _Mark]:
        try:
            # A name that cannot be one is refused by `open_task`; here it only finds no file.
            status = (self._library / FOLDER / name / "task.json").stat()
            mark = (status.st_ino, status.st_mtime_ns)
        except (OSError, ValueError):
            mark = (0, 0)
        with self._lock:
            task = self._tasks.get((name, mark))
        if task is None:
            task = open_task(self._library, name)
            with self._lock:
                self._tasks[name, mark] = task
                while len(self._tasks) > _MOST_OPEN:
                    self._tasks.popitem(last=False)
        return task, mark

    @contextmanager
    def session(self, name: str, judge: HumanJudge) -> Iterator[Grading]:
        """Hold the session of a judge, up to date with the journal on disk.

        Raises:
            NotFoundError: There is no such task.
        """
        task, mark = self._task(name)
        key = (name, mark, judge.owner, judge.label)
        with self._lock:
            opened = self._sessions.get(key)
        if opened is None:
            session = task.grading(
                judge.label, owner=judge.owner, pictures=lambda photo_id: photo_id
            )
            with self._lock:
                opened = self._sessions.setdefault(key, _Open(session))
                self._sessions.move_to_end(key)
                while len(self._sessions) > _MOST_OPEN:
                    self._sessions.popitem(last=False)
        with opened.lock:
            opened.session.resume()
            yield opened.session

    def n_done(self, task: JudgingTask, judge: HumanJudge) -> int:
        """Count what a judge has done, without beginning a journal."""
        if not task.journal_of(judge.label, judge.owner).exists():
            return 0
        with self.session(task.name, judge) as session:
            return session.n_done


def sessions_of(request: Request[Any, Any, Any]) -> OpenSessions:
    """Return the open sessions of this worker."""
    state = request.app.state
    if "judging" not in state:
        state.judging = OpenSessions(services_of(request).live_library.library.folder)
    sessions: OpenSessions = state.judging
    return sessions


def address_pictures(request: Request[Any, Any, Any], size: str) -> Pictures:
    """Return a function from photo_id to the address of its picture, empty if it is gone.

    Args:
        request: A request to a page.
        size: One of `URL_SIZES`.
    """
    snapshot, root = services_of(request).live_library.current, root_of(request)
    return lambda photo_id: _address(snapshot, photo_id, size, root)


def _address(snapshot: ServedSnapshot, photo_id: str, size: str, root: str) -> str:
    try:
        row = snapshot.row_of(photo_id)
    except NotFoundError:
        return ""
    url, sha256 = (snapshot.engine.table.column(name)[row] for name in (f"url_{size}", "sha256"))
    return snapshot.photos.link(url, sha256, base_url=root)
