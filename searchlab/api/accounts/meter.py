"""Meter: count searches exactly, many in one transaction.

`count` returns after the commit, so that an answer that was sent is counted whatever happens
next. What is counted in one turn of an event loop shares a transaction, and so does what comes
while another transaction is being written.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from queue import Empty, SimpleQueue
from typing import NamedTuple

from sqlalchemy.engine import Connection

from searchlab.api.accounts.database import BusyError, Database
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.usage import UsageCounts, look_up_used
from searchlab.api.accounts.values import utc_now
from searchlab.errors import QuotaError, SearchlabError

_MOST_AT_ONCE = 500
_FRESH_S = 1.0
_MOST_REMEMBERED = 100_000
_PATIENCE_S = 15.0  # longer than any lock is waited for; then it hangs
_LOG = logging.getLogger(__name__)

Outcome = int | Exception
Also = Callable[[Connection], None]


@dataclass(frozen=True, slots=True, eq=False)
class _Count:
    caller: Caller
    limit: int
    also: Also | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Flush:
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[int]


@dataclass(frozen=True, slots=True)
class _Look:
    account_id: int
    month: str


_Item = _Count | _Flush | _Look | None
_Counted = list[_Count | _Flush]


class _Used(NamedTuple):
    month: str
    requests: int
    read_at: float

    def is_fresh(self, month: str) -> bool:
        return self.month == month and time.monotonic() - self.read_at < _FRESH_S


class Meter:
    """Counts an account's searches of the month, and when its keys were last used.

    Every worker has one; the database sees to it that they agree. Its writing is done by a thread
    of its own, so that no event loop waits for a disk.
    """

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock
        self._queue: SimpleQueue[_Counted | _Look | None] = SimpleQueue()
        self._gathered: _Counted = []
        self._gate = threading.Lock()
        self._closed = False
        self._touched: dict[str, datetime] = {}
        self._used: dict[int, _Used] = {}
        self._looking: set[int] = set()
        self._dated: dict[str, float] = {}
        self._pruned_on: date | None = None
        self._counts = UsageCounts(database)
        self._thread = threading.Thread(target=self._run, name="searchlab-meter", daemon=True)
        self._thread.start()

    async def count(self, caller: Caller, *, limit: int, also: Also | None = None) -> int:
        """Count one search; returns when it is committed.

        Args:
            caller: Who searched.
            limit: Most searches that the account may make in a month.
            also: Runs in the same transaction; what it raises comes out here, and then nothing
                is counted.

        Returns:
            The account's searches of this month, this one included.

        Raises:
            QuotaError: `limit` is used up; nothing is counted.
            DataError: The database cannot be written; nothing is counted.
            BusyError: The database does not answer, and it may be counted yet; or the meter is
                closed.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self.touch(caller)
        self._put(_Count(caller, limit, also, loop, future))
        return await self._wait_for(future)

    async def flush(self) -> None:
        """Wait until everything noted so far is committed, last uses of keys included."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self._put(_Flush(loop, future))
        await self._wait_for(future)

    async def _wait_for(self, future: asyncio.Future[int]) -> int:
        # `asyncio.timeout` does the same for five times the price.
        patience = future.get_loop().call_later(_PATIENCE_S, self._give_up, future)
        try:
            return await future
        finally:
            patience.cancel()

    def _give_up(self, future: asyncio.Future[int]) -> None:
        if not future.done():
            name = self._database.name
            msg = f"{name} must answer within {_PATIENCE_S:g} s, got nothing; try again"
            future.set_exception(BusyError(msg))

    def touch(self, caller: Caller) -> None:
        """Note that a key is used now; written within a second."""
        with self._gate:
            self._touched[caller.key_id] = self._clock()

    def peek(self, caller: Caller) -> int | None:
        """Return the account's searches of this month as far as they are known; waits for nothing.

        None while they are not. What is older than a second is read anew behind the scenes.
        """
        month, account_id = f"{self._clock():%Y-%m}", caller.account_id
        known = self._used.get(account_id)
        if known is None or not known.is_fresh(month):
            with self._gate:
                if not self._closed and account_id not in self._looking:
                    self._looking.add(account_id)
                    self._queue.put(_Look(account_id, month))
        return known.requests if known and known.month == month else None

    def read_used(self, caller: Caller) -> int:
        """Return the account's searches of this month, at most a second old; may ask for them.

        Raises:
            DataError: The database cannot be reached.
        """
        month = f"{self._clock():%Y-%m}"
        known = self._used.get(caller.account_id)
        if known and known.is_fresh(month):
            return known.requests
        return self._read(caller.account_id, month)

    def close(self) -> None:
        """Write what waits, and end the thread."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(self._take())
                self._queue.put(None)
        self._thread.join()

    def _put(self, item: _Count | _Flush) -> None:
        with self._gate:
            if self._closed or not self._thread.is_alive():
                msg = "the meter must be open, got one that is closed"
                raise BusyError(msg)
            first = not self._gathered or self._gathered[-1].loop is not item.loop
            self._gathered.append(item)
        if first:  # handed over at the end of the loop's turn, in one piece
            item.loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        with self._gate:
            if self._gathered:
                self._queue.put(self._take())

    def _take(self) -> _Counted:
        taken, self._gathered = self._gathered, []
        return taken

    def _read(self, account_id: int, month: str) -> int:
        used = look_up_used(self._database, account_id, month)
        self._remember(month, {account_id: used})
        return used

    def _remember(self, month: str, used: dict[int, int]) -> None:
        if len(self._used) >= _MOST_REMEMBERED:
            self._used.clear()
        now = time.monotonic()
        for account_id, requests in used.items():
            self._used[account_id] = _Used(month, requests, now)

    # -- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        written_at = time.monotonic()
        while True:
            items = self._gather()
            closing = None in items
            self._answer([item for item in items if isinstance(item, _Count)])
            self._look([item for item in items if isinstance(item, _Look)])
            flushes = [item for item in items if isinstance(item, _Flush)]
            if closing or flushes or time.monotonic() - written_at >= _FRESH_S:
                outcome = self._write_uses()
                _settle((item.loop, item.future, outcome) for item in flushes)
                written_at = time.monotonic()
            if closing:
                return
            self._prune()

    def _gather(self) -> list[_Item]:
        items: list[_Item] = []
        with suppress(Empty):
            came = self._queue.get(timeout=_FRESH_S)
            while True:
                items += came if isinstance(came, list) else [came]
                if len(items) >= _MOST_AT_ONCE:
                    break
                came = self._queue.get_nowait()
        # Of a loop that ended in the midst of its turn.
        with self._gate:
            return items + self._take()

    def _answer(self, counts: list[_Count]) -> None:
        waiting = [item for item in counts if not item.future.cancelled()]
        if not waiting:
            return
        today = self._clock().date()
        try:
            with self._database.writing() as connection:
                outcomes, used = self._write(connection, waiting, today)
            self._remember(f"{today:%Y-%m}", used)
        except Exception as error:  # each waiter learns of it; the thread lives on
            outcomes = [_copy(error) for _ in waiting]
        answered = zip(waiting, outcomes, strict=True)
        _settle((item.loop, item.future, outcome) for item, outcome in answered)

    def _write(
        self, connection: Connection, waiting: list[_Count], today: date
    ) -> tuple[list[Outcome], dict[int, int]]:
        month = f"{today:%Y-%m}"
        outcomes: list[Outcome] = [0] * len(waiting)
        used: dict[int, int] = {}
        by_key: Counter[tuple[int, str]] = Counter()
        by_account: dict[int, list[int]] = defaultdict(list)
        for place, item in enumerate(waiting):
            by_account[item.caller.account_id].append(place)
        # In one order everywhere, so that no two processes wait for each other.
        for account_id, places in sorted(by_account.items()):
            most = self._counts.add_to_month(connection, account_id, month, len(places))
            used[account_id] = most - len(places)
            for place in places:
                item = waiting[place]
                outcomes[place] = self._outcome(connection, item, used[account_id] + 1, month)
                if isinstance(outcomes[place], int):
                    used[account_id] += 1
                    by_key[account_id, item.caller.key_id] += 1
            if used[account_id] != most:
                self._counts.set_month(connection, account_id, month, used[account_id])
        self._counts.add_to_day(connection, today, by_key)
        self._write_first_uses(connection, {key_id for _, key_id in by_key})
        return outcomes, used

    def _write_first_uses(self, connection: Connection, key_ids: set[str]) -> None:
        # So that no other worker sees a key that was counted and yet never used.
        now = time.monotonic()
        due = [key for key in sorted(key_ids) if now - self._dated.get(key, -_FRESH_S) >= _FRESH_S]
        if not due:
            return
        moment = self._clock()
        self._counts.mark_used(connection, dict.fromkeys(due, moment))
        if len(self._dated) >= _MOST_REMEMBERED:
            self._dated.clear()
        self._dated.update(dict.fromkeys(due, now))

    def _outcome(self, connection: Connection, item: _Count, number: int, month: str) -> Outcome:
        if number > item.limit:
            msg = (
                f"a plan of {item.limit:,} searches a month must have one left, got all used in "
                f"{month}; wait for the next month (UTC), or change the plan"
            )
            return QuotaError(msg)
        if item.also is not None:
            try:
                with self._database.translate_errors(), connection.begin_nested():
                    item.also(connection)
            except Exception as error:
                if connection.invalidated:  # lost, and all that was written with it
                    raise
                return error  # it belongs to this waiter alone
        return number

    def _look(self, looks: list[_Look]) -> None:
        for look in looks:
            try:
                self._read(look.account_id, look.month)
            except Exception as error:  # whoever wants to know asks again
                _LOG.warning("the searches of an account cannot be read: %s", error)
            with self._gate:
                self._looking.discard(look.account_id)

    def _write_uses(self) -> Outcome:
        with self._gate:
            touched, self._touched = self._touched, {}
        if not touched:
            return 0
        try:
            with self._database.writing() as connection:
                self._counts.mark_used(connection, touched)
        except Exception as error:
            with self._gate:
                self._touched = touched | self._touched  # for the next time
            return error
        return 0

    def _prune(self) -> None:
        today = self._clock().date()
        if today == self._pruned_on:
            return
        self._pruned_on = today
        try:
            with self._database.writing() as connection:
                self._counts.delete_old(connection, today)
        except Exception as error:  # tomorrow is another day; who counts must not wait for ever
            _LOG.warning("old counts cannot be deleted today: %s", error)


def _copy(error: Exception) -> Exception:
    """Copy an error for one more waiter: raised in many tasks, one would gather all tracebacks."""
    if not isinstance(error, SearchlabError):
        return error
    copy = type(error)(str(error))
    copy.__cause__ = error
    return copy


def _settle(
    answers: Iterable[tuple[asyncio.AbstractEventLoop, asyncio.Future[int], Outcome]],
) -> None:
    """Give each future of each loop its outcome, from another thread."""
    by_loop = defaultdict(list)
    for loop, future, outcome in answers:
        by_loop[loop].append((future, outcome))
    for loop, settled in by_loop.items():
        with suppress(RuntimeError):  # the loop has been closed; nobody waits any more
            loop.call_soon_threadsafe(_tell, settled)


def _tell(settled: list[tuple[asyncio.Future[int], Outcome]]) -> None:
    for future, outcome in settled:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
