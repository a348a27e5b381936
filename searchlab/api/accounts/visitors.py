"""Visitor: the account behind a page; AnonymousVisitors: the one that a server lends to anybody."""

from __future__ import annotations

import time
from dataclasses import dataclass

import sqlalchemy as sa

from searchlab.api.accounts.database import Database
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.tables import accounts
from searchlab.errors import NotFoundError, quote

PAGES_KEY = "pages"
PAGES_NAME = "Pages in the browser"
"""Stand in the usage by key for searches on pages, which need no key."""
_REMEMBERED_S = 5.0


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at a page.

    Attributes:
        account_id: The account, which owns collections, usage and keys.
        account: Its name.
        plan: Name of its plan.
        session_id: Public identifier of the session; empty for an anonymous visitor, who searches
            on the account's quota and sees nothing else of it.
    """

    account_id: int
    account: str
    plan: str
    session_id: str = ""

    @property
    def is_signed_in(self) -> bool:
        """Whether the account is the visitor's own."""
        return bool(self.session_id)

    @property
    def caller(self) -> Caller:
        """The visitor as the services know callers of the API."""
        return Caller(self.account_id, PAGES_KEY, self.plan)


def find_account(database: Database, name: str) -> Visitor | None:
    """Return the account of a name, as an anonymous visitor of it; None if there is none."""
    query = sa.select(accounts.c.id, accounts.c.plan).where(accounts.c.name == name)
    row = database.look_up(lambda connection: connection.execute(query).one_or_none())
    return None if row is None else Visitor(row.id, name, row.plan)


def is_closed(database: Database, account_id: int) -> bool:
    """Say whether the account of a number is closed by now, as the database has it."""
    query = sa.select(accounts.c.id).where(accounts.c.id == account_id)
    return database.look_up(lambda connection: connection.scalar(query)) is None


class AnonymousVisitors:
    """The account that visitors who are not signed in search with, if the server lends one."""

    def __init__(self, database: Database, account: str) -> None:
        """Take the name of the account; empty if visitors must sign in."""
        self._database = database
        self._account = account
        self._visitor: Visitor | None = None
        self._until = 0.0

    @property
    def are_welcome(self) -> bool:
        """Whether there is such an account in the settings."""
        return bool(self._account)

    def recall(self) -> Visitor | None:
        """Return the visitor if it was read within the last seconds."""
        return self._visitor if time.monotonic() < self._until else None

    def find(self) -> Visitor | None:
        """Return the visitor as the database has it now; None if the account was closed."""
        if (visitor := self.recall()) is not None:
            return visitor
        self._visitor = find_account(self._database, self._account)
        self._until = time.monotonic() + _REMEMBERED_S
        return self._visitor

    def check(self) -> None:
        """Check that the account exists.

        Raises:
            NotFoundError: It does not.
        """
        if self.are_welcome and self.find() is None:
            name = quote(self._account)
            msg = (
                f"visitors must be an account, got {name}; make one with `searchlab keys create "
                "--account NAME --name KEYNAME`"
            )
            raise NotFoundError(msg)
