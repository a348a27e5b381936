"""Meter: counts searches exactly, many in one transaction.

`count` returns after the commit, so every answer that is sent was counted before. Searches that are
counted in one turn of an event loop share a transaction, and so do those that arrive while another
transaction is being written.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from queue import Empty, SimpleQueue
from typing import NamedTuple

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.counting import Also, Count, CountWriter, Outcome, month_of
from searchlab.api.accounts.database import BusyError, Database
from searchlab.api.accounts.grants import delete_expired_grants
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.sessions import delete_expired
from searchlab.api.accounts.usage import UsageCounts, look_up_used
from searchlab.errors import SearchlabError

_MOST_AT_ONCE = 500
_FRESH_S = 1.0
_MOST_REMEMBERED = 100_000
_PATIENCE_S = 15.0  # longer than any wait for a lock; after that the database counts as hanging
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Flush:
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[int]


@dataclass(frozen=True, slots=True)
class _Look:
    account_id: int
    month: str


_Item = Count | _Flush | _Look | None
_Batch = list[Count | _Flush]


class _Used(NamedTuple):
    month: str
    requests: int
    read_at: float

    def is_fresh(self, month: str) -> bool:
        return self.month == month and time.monotonic() - self.read_at < _FRESH_S


class Meter:
    """Counts an account's searches of the month, and notes when its keys were last used.

    Every worker has one, and all share the counts in the database. A thread of its own writes, so
    that no event loop waits for a disk.
    """

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock
        self._queue: SimpleQueue[_Batch | _Look | None] = SimpleQueue()
        self._batch: _Batch = []
        self._gate = threading.Lock()
        self._closed = False
        self._touched: dict[str, datetime] = {}
        self._used: dict[int, _Used] = {}
        self._looking: set[int] = set()
        self._has_unsynced = False
        self._pruned_on: date | None = None
        self._counts = UsageCounts(database)
        self._writer = CountWriter(database, self._counts, clock)
        self._thread = threading.Thread(target=self._run, name="searchlab-meter", daemon=True)
        self._thread.start()

    async def count(
        self, caller: Caller, *, limit: int, searches: int = 1, also: Also | None = None
    ) -> int:
        """Count searches, all or none of them; returns when that is committed.

        Args:
            caller: Who searched.
            limit: Most searches that the account may make in a month.
            searches: How many there were.
            also: Called in the same transaction; if it raises, nothing is counted and its
                exception is raised here.

        Returns:
            The account's searches of this month, these included.

        Raises:
            QuotaError: `limit` leaves no room for them; nothing is counted.
            DataError: The database cannot be written; nothing is counted.
            BusyError: The database does not answer, and the search may still be counted; or the
                meter is closed.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self._put(Count(caller, limit, searches, also, loop, future))
        return await self._wait_for(future)

    async def flush(self) -> None:
        """Wait until everything so far is committed, including when keys were last used."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self._put(_Flush(loop, future))
        await self._wait_for(future)

    async def _wait_for(self, future: asyncio.Future[int]) -> int:
        # `asyncio.timeout` does the same, but takes five times as long.
        timer = future.get_loop().call_later(_PATIENCE_S, self._give_up, future)
        try:
            return await future
        finally:
            timer.cancel()

    def _give_up(self, future: asyncio.Future[int]) -> None:
        if not future.done():
            name = self._database.name
            msg = f"{name} must answer within {_PATIENCE_S:g} s, got nothing; try again"
            future.set_exception(BusyError(msg))

    def touch(self, caller: Caller) -> None:
        """Note that a key is used now; this is written within a second."""
        with self._gate:
            self._touched[caller.key_id] = self._clock()

    def peek(self, caller: Caller) -> int | None:
        """Return the account's searches of this month without waiting; None if they are not known.

        A number older than a second is read again in the background.
        """
        month, account_id = month_of(self._clock()), caller.account_id
        known = self._used.get(account_id)
        if known is None or not known.is_fresh(month):
            with self._gate:
                if not self._closed and account_id not in self._looking:
                    self._looking.add(account_id)
                    self._queue.put(_Look(account_id, month))
        return known.requests if known and known.month == month else None

    def read_used(self, caller: Caller) -> int:
        """Return the account's searches of this month, at most a second old; may read the database.

        Raises:
            DataError: The database cannot be reached.
        """
        month = month_of(self._clock())
        known = self._used.get(caller.account_id)
        if known and known.is_fresh(month):
            return known.requests
        return self._read(caller.account_id, month)

    def close(self) -> None:
        """Write what is still waiting, and end the thread."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(self._take())
                self._queue.put(None)
        self._thread.join()

    def _put(self, item: Count | _Flush) -> None:
        with self._gate:
            if self._closed or not self._thread.is_alive():
                msg = "the meter must be open, got one that is closed"
                raise BusyError(msg)
            if isinstance(item, Count):
                self._touched[item.caller.key_id] = self._clock()
            first = not self._batch or self._batch[-1].loop is not item.loop
            self._batch.append(item)
        if first:  # the whole batch is handed over at the end of the loop's turn
            item.loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        with self._gate:
            if self._batch:
                self._queue.put(self._take())

    def _take(self) -> _Batch:
        batch, self._batch = self._batch, []
        return batch

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
            self._answer([item for item in items if isinstance(item, Count)])
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
            entry = self._queue.get(timeout=_FRESH_S)
            while True:
                items += entry if isinstance(entry, list) else [entry]
                if len(items) >= _MOST_AT_ONCE:
                    break
                entry = self._queue.get_nowait()
        # And the batch of a loop that ended before it was handed over.
        with self._gate:
            return items + self._take()

    def _answer(self, counts: list[Count]) -> None:
        waiting = [item for item in counts if not item.future.cancelled()]
        if not waiting:
            return
        today = self._clock().date()
        try:
            # A power cut may take the counts of a second, but no answer that was recorded.
            durable = any(item.also is not None for item in waiting)
            outcomes, used = self._writer.write(waiting, today, durable=durable)
            self._has_unsynced = not durable
            self._remember(month_of(today), used)
        except Exception as error:  # every waiter gets it, and the thread lives on
            outcomes = [_copy(error) for _ in waiting]
        answered = zip(waiting, outcomes, strict=True)
        _settle((item.loop, item.future, outcome) for item, outcome in answered)

    def _look(self, looks: list[_Look]) -> None:
        for look in looks:
            try:
                self._read(look.account_id, look.month)
            except Exception as error:  # the next request reads it again
                _LOG.warning("the searches of an account cannot be read: %s", error)
            with self._gate:
                self._looking.discard(look.account_id)

    def _write_uses(self) -> Outcome:
        with self._gate:
            touched, self._touched = self._touched, {}
        if not touched and not self._has_unsynced:
            return 0
        try:
            with self._database.writing() as connection:
                self._counts.mark_used(connection, touched)
                if self._has_unsynced:  # the line above may have had nothing to change
                    self._database.make_durable(connection)
            self._has_unsynced = False
        except Exception as error:
            with self._gate:
                self._touched = touched | self._touched  # written at the next attempt
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
                delete_expired(connection, self._clock())
                delete_expired_grants(connection, self._clock())
        except Exception as error:  # tried again tomorrow, since counting must go on
            _LOG.warning("old counts and sessions cannot be deleted today: %s", error)


def _copy(error: Exception) -> Exception:
    """Copy an error for each waiter: one object raised in many tasks would collect tracebacks."""
    if not isinstance(error, SearchlabError):
        return error
    copy = type(error)(str(error))
    copy.__cause__ = error
    return copy


def _settle(
    answers: Iterable[tuple[asyncio.AbstractEventLoop, asyncio.Future[int], Outcome]],
) -> None:
    """Give each future its outcome, in the thread of its event loop."""
    by_loop = defaultdict(list)
    for loop, future, outcome in answers:
        by_loop[loop].append((future, outcome))
    for loop, outcomes in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, so nobody waits any more
            loop.call_soon_threadsafe(_set_outcomes, outcomes)


def _set_outcomes(outcomes: list[tuple[asyncio.Future[int], Outcome]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
