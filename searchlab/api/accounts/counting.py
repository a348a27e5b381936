"""Counting: the transaction in which searches of many requests are counted."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import NamedTuple, cast

from sqlalchemy.engine import Connection

from searchlab.api.accounts.database import Database
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.usage import UsageCounts, Writing
from searchlab.errors import QuotaError

DATED_S = 1.0
"""Seconds after which the last use of a key is written again."""
_MOST_DATED = 100_000

Outcome = int | Exception
Also = Callable[[Connection], None]


def month_of(day: date) -> str:
    """Return the month of a day, such as 2026-11."""
    return day.isoformat()[:7]  # in a tenth of what formatting takes, as each request asks


class Count(NamedTuple):
    """Searches to count, and who waits for it: a tuple, as one is made for each search."""

    caller: Caller
    limit: int
    searches: int
    also: Also | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[int]


class CountWriter:
    """Writes counts, and the first use of keys with them."""

    def __init__(
        self, database: Database, counts: UsageCounts, clock: Callable[[], datetime]
    ) -> None:
        self._database, self._counts, self._clock = database, counts, clock
        self._dated: dict[str, float] = {}

    def write(
        self, waiting: list[Count], today: date, *, durable: bool
    ) -> tuple[list[Outcome], dict[int, int]]:
        """Count searches in one transaction.

        Args:
            waiting: What to count.
            today: The day in UTC.
            durable: Whether it must outlive a power cut; it must if one of them has an `also`.

        Returns:
            Of each its account's searches of the month, or why it was not counted; and the searches
            of each account.

        Raises:
            DataError: The database cannot be written; nothing is counted.
        """
        due = self._list_due({item.caller.key_id for item in waiting})
        with self._writing(durable=durable, only_counts=not due) as connection:
            return self._write(connection, waiting, today, due)

    def _writing(
        self, *, durable: bool, only_counts: bool
    ) -> AbstractContextManager[Connection | sqlite3.Connection]:
        if only_counts and not durable and self._database.file is not None:
            return self._database.writing_alone()
        return self._database.writing(durable=durable)

    def _write(
        self, connection: Writing, waiting: list[Count], today: date, due: list[str]
    ) -> tuple[list[Outcome], dict[int, int]]:
        month = month_of(today)
        outcomes: list[Outcome] = [0] * len(waiting)
        used: dict[int, int] = {}
        by_key: Counter[tuple[int, str]] = Counter()
        by_account: dict[int, list[int]] = defaultdict(list)
        for place, item in enumerate(waiting):
            by_account[item.caller.account_id].append(place)
        # In the same order in every process, so that no two of them deadlock.
        for account_id, places in sorted(by_account.items()):
            asked = sum(waiting[place].searches for place in places)
            most = self._counts.add_to_month(connection, account_id, month, asked)
            used[account_id] = most - asked
            for place in places:
                item = waiting[place]
                number = used[account_id] + item.searches
                outcomes[place] = self._outcome(connection, item, number, month)
                if isinstance(outcomes[place], int):
                    used[account_id] = number
                    by_key[account_id, item.caller.key_id] += item.searches
            if used[account_id] != most:
                self._counts.set_month(connection, account_id, month, used[account_id])
        self._counts.add_to_day(connection, today, by_key)
        counted = {key_id for _, key_id in by_key}
        if not isinstance(connection, sqlite3.Connection):
            self._write_first_uses(connection, [key_id for key_id in due if key_id in counted])
        return outcomes, used

    def _list_due(self, key_ids: set[str]) -> list[str]:
        """List the keys whose use is to be written with their searches.

        Other workers could else see a key with searches and no last use.
        """
        now = time.monotonic()
        return [key for key in sorted(key_ids) if now - self._dated.get(key, -DATED_S) >= DATED_S]

    def _write_first_uses(self, connection: Connection, key_ids: list[str]) -> None:
        if not key_ids:
            return
        self._counts.mark_used(connection, dict.fromkeys(key_ids, self._clock()))
        if len(self._dated) >= _MOST_DATED:
            self._dated.clear()
        self._dated.update(dict.fromkeys(key_ids, time.monotonic()))

    def _outcome(self, connection: Writing, item: Count, number: int, month: str) -> Outcome:
        if number > item.limit:
            wanted = f"{item.searches:,} left, got fewer"
            msg = (
                f"a plan of {item.limit:,} searches a month must have "
                f"{'one left, got all used' if item.searches == 1 else wanted} in "
                f"{month}; wait for the next month (UTC), or change the plan"
            )
            return QuotaError(msg)
        if item.also is not None:
            ordinary = cast(Connection, connection)  # as what is durable is never written alone
            try:
                with self._database.translate_errors(), ordinary.begin_nested():
                    item.also(ordinary)
            except Exception as error:  # whatever it is, that waiter gets it
                if ordinary.invalidated:  # the connection is lost, and the transaction with it
                    raise
                return error  # only this waiter's search failed
        return number
