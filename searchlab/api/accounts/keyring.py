"""KeyRing: finds the caller of each request by the header `x-api-key`."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.database import Database
from searchlab.api.accounts.remembered import Remembered
from searchlab.api.accounts.tables import accounts, api_keys

SECRET_PREFIX = "sl_"
SECRET_LENGTH = 46


@dataclass(frozen=True, slots=True)
class Caller:
    """The account and the key behind a request.

    Attributes:
        account_id: The account, which owns collections, usage and cursors.
        key_id: Public identifier of the key.
        plan: Name of the account's plan.
    """

    account_id: int
    key_id: str
    plan: str


def hash_secret(secret: str) -> bytes:
    """Hash a secret for storage; 256 random bits need neither a salt nor a slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def is_secret(text: str) -> bool:
    """Tell whether a text has the shape of a key's secret."""
    return len(text) == SECRET_LENGTH and text.startswith(SECRET_PREFIX) and text.isascii()


def _find_caller(connection: Connection, digest: bytes) -> Caller | None:
    row = connection.execute(_FIND, {"digest": digest}).one_or_none()
    if row is None or not hmac.compare_digest(row.secret_sha256, digest):
        return None
    return Caller(row.account_id, row.id, row.plan)


_FIND = (
    sa.select(api_keys.c.id, api_keys.c.account_id, api_keys.c.secret_sha256, accounts.c.plan)
    .join_from(api_keys, accounts)
    .where(api_keys.c.secret_sha256 == sa.bindparam("digest"), api_keys.c.revoked_at.is_(None))
)


class KeyRing:
    """Finds callers by their secret; a revoked key is refused at once by every worker."""

    def __init__(self, database: Database) -> None:
        self._remembered = Remembered(database, _find_caller)

    def recall(self, secret: str) -> Caller | None:
        """Return the owner of a secret if it is known without asking the database, else None."""
        return self._remembered.recall(hash_secret(secret)) if is_secret(secret) else None

    def find(self, secret: str) -> Caller | None:
        """Return the owner of a secret; None for an unknown or revoked key.

        Raises:
            DataError: The database cannot be reached.
        """
        return self._remembered.find(hash_secret(secret)) if is_secret(secret) else None

    def close(self) -> None:
        """Forget all remembered callers."""
        self._remembered.close()
