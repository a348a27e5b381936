"""Creates, lists and revokes keys. A key's secret is shown once, and only its hash is stored."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.collections import FullError
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.keyring import SECRET_PREFIX, change_access, hash_secret, is_secret
from searchlab.api.accounts.tables import accounts, api_keys
from searchlab.api.accounts.values import is_storable, storable
from searchlab.errors import ConflictError, InputError, NotFoundError, quote

PLAN_NAMES = ("free", "starter", "growth", "scale")
DEFAULT_PLAN = PLAN_NAMES[0]
MAX_NAME = 100
MAX_KEYS = 100
"""Most keys in force that an account may make by itself."""
_HINT_LENGTH = 9
_KEY_ID = re.compile(r"key_[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A key without its secret.

    Attributes:
        key_id: Identifies it in commands and in the usage by key.
        name: Chosen by its owner; an account may have several keys of one name.
        account: Name of the account.
        plan: The account's plan.
        created_at: When it was created, UTC.
        revoked_at: When it was revoked; None while it is valid.
        last_used_at: When it was last used, within seconds; None if never.
        hint: The first characters of the secret.
    """

    key_id: str
    name: str
    account: str
    plan: str
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    hint: str


def plan_of(database: Database, account: str) -> str | None:
    """Return the plan of an account; None while there is no such account."""
    name = check_visible(account, "account")
    with database.reading() as connection:
        plan = connection.scalar(sa.select(accounts.c.plan).where(accounts.c.name == name))
    return None if plan is None else str(plan)


def create_key(
    database: Database,
    *,
    account: str,
    name: str,
    plan: str | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> tuple[KeyRecord, str]:
    """Create a key, and its account if it is new; every process accepts the key at once.

    Args:
        database: Where keys are stored.
        account: Name of the account, 1 to 100 visible characters.
        name: Name of the key, likewise; an account may have several keys of one name.
        plan: The account's plan from now on, one of `PLAN_NAMES`; None leaves it as it is, and
            means free for a new account.
        clock: Returns the current time.

    Returns:
        The key's record, and its secret, which cannot be shown again.

    Raises:
        InputError: A name is malformed, or there is no such plan.
    """
    account, name = check_visible(account, "account"), check_visible(name, "name")
    if plan is not None:
        check_plan(plan)
    now = clock()
    with change_access(database) as connection:
        made = (
            database.insert(accounts)
            .values(name=account, plan=plan or DEFAULT_PLAN, created_at=now)
            .on_conflict_do_nothing()
        )
        connection.execute(made)
        if plan is not None:
            connection.execute(
                accounts.update().where(accounts.c.name == account).values(plan=plan)
            )
        row = connection.execute(_ACCOUNT.where(accounts.c.name == account)).one()
        return _add_key(database, connection, row, name, now, propose_key_id())


def add_key(
    database: Database,
    account_id: int,
    *,
    name: str,
    key_id: str,
    clock: Callable[[], datetime] = utc_now,
) -> tuple[KeyRecord, str]:
    """Create a key of an account that exists, under an id that its form was given.

    So a form that is sent twice makes one key.

    Args:
        database: Where keys are stored.
        account_id: The account.
        name: Name of the key, 1 to 100 visible characters.
        key_id: Made by `propose_key_id`.
        clock: Returns the current time.

    Returns:
        The key's record, and its secret, which cannot be shown again.

    Raises:
        InputError: The name is malformed, or the id is none of ours.
        ConflictError: There is a key with this id.
        FullError: The account has `MAX_KEYS` already.
        NotFoundError: The account was closed.
    """
    name = check_visible(name, "name")
    if not _KEY_ID.fullmatch(key_id):
        msg = f"key_id must be one that the form was given, got {quote(key_id)}"
        raise InputError(msg)
    with change_access(database) as connection:
        # Lock the account, so that no other transaction counts before this key exists.
        mine = _ACCOUNT.where(accounts.c.id == account_id)
        row = connection.execute(mine.with_for_update()).one_or_none()
        if row is None:
            msg = "the account must exist, got one that was closed"
            raise NotFoundError(msg)
        in_force = (api_keys.c.account_id == account_id) & api_keys.c.revoked_at.is_(None)
        count = sa.select(sa.func.count()).select_from(api_keys).where(in_force)
        if (connection.scalar(count) or 0) >= MAX_KEYS:
            msg = f"an account must have at most {MAX_KEYS} keys, got one more; revoke one first"
            raise FullError(msg)
        return _add_key(database, connection, row, name, clock(), key_id)


def propose_key_id() -> str:
    """Make an id for a key that is not created yet."""
    return f"key_{secrets.token_hex(8)}"


def _add_key(
    database: Database,
    connection: Connection,
    account: Any,
    name: str,
    now: datetime,
    key_id: str,
) -> tuple[KeyRecord, str]:
    secret = SECRET_PREFIX + secrets.token_urlsafe(32)
    record = KeyRecord(
        key_id=key_id,
        name=name,
        account=account.name,
        plan=account.plan,
        created_at=now,
        revoked_at=None,
        last_used_at=None,
        hint=secret[:_HINT_LENGTH],
    )
    values = {
        "id": record.key_id,
        "account_id": account.id,
        "name": name,
        "secret_sha256": hash_secret(secret),
        "hint": record.hint,
        "created_at": now,
    }
    made = database.insert(api_keys).values(values).on_conflict_do_nothing(index_elements=["id"])
    if connection.scalar(made.returning(api_keys.c.id)) is None:
        msg = f"this form must be sent once, got it again; key {key_id} was created the first time"
        raise ConflictError(msg)
    return record, secret


def list_keys(database: Database, account: str | None = None) -> list[KeyRecord]:
    """List the keys, revoked ones too, by account and age; of one account or of all."""
    query = _RECORDS.order_by(accounts.c.name, api_keys.c.created_at, api_keys.c.id)
    if account is not None:
        query = query.where(accounts.c.name == check_visible(account, "account"))
    with database.reading() as connection:
        return [_record(row) for row in connection.execute(query).mappings()]


def revoke_key_of(
    database: Database,
    account_id: int,
    key_id: str,
    *,
    clock: Callable[[], datetime] = utc_now,
) -> None:
    """Revoke a key of an account; every process refuses it at once.

    Raises:
        NotFoundError: The account has no such key in force.
    """
    mine = (api_keys.c.account_id == account_id) & api_keys.c.revoked_at.is_(None)
    with change_access(database) as connection:
        if is_storable(key_id):
            revoke = api_keys.update().where(mine, api_keys.c.id == key_id)
            if connection.execute(revoke.values(revoked_at=clock())).rowcount:
                return
    msg = f"key_id must be that of a key of yours in force, got {quote(key_id)}"
    raise NotFoundError(msg)


def revoke_key(
    database: Database, key: str, *, clock: Callable[[], datetime] = utc_now
) -> KeyRecord:
    """Revoke a key; every process refuses it at once. Revoking it again changes nothing.

    Args:
        database: Where keys are stored.
        key: Its `key_id`, its hint, or the secret itself.
        clock: Returns the current time.

    Returns:
        The key; `revoked_at` says when it was revoked first.

    Raises:
        NotFoundError: There is no such key.
        InputError: Several keys share the hint.
    """
    came = f"{key[:_HINT_LENGTH]}..." if is_secret(key) else quote(key)
    if not is_storable(key):
        msg = f"key must be a key_id or the first {_HINT_LENGTH} characters of a key, got {came}"
        raise NotFoundError(msg)
    if is_secret(key):
        named = api_keys.c.secret_sha256 == hash_secret(key)
    else:
        named = (api_keys.c.id == key) | (api_keys.c.hint == key)
    with change_access(database) as connection:
        records = [_record(row) for row in connection.execute(_RECORDS.where(named)).mappings()]
        if not records:
            msg = (
                f"key must be a key_id or the first {_HINT_LENGTH} characters of a key, "
                f"got {came}, which no key has; see `searchlab keys list`"
            )
            raise NotFoundError(msg)
        if len(records) > 1:
            ids = ", ".join(record.key_id for record in records)
            msg = f"key must name one key, got {came}, which {ids} share; use the key_id"
            raise InputError(msg)
        mine = api_keys.c.id == records[0].key_id
        connection.execute(
            api_keys.update()
            .where(mine, api_keys.c.revoked_at.is_(None))
            .values(revoked_at=clock())
        )
        return _record(connection.execute(_RECORDS.where(mine)).mappings().one())


_ACCOUNT = sa.select(accounts.c.id, accounts.c.name, accounts.c.plan)
_RECORDS = sa.select(
    api_keys.c.id,
    api_keys.c.name,
    accounts.c.name.label("account"),
    accounts.c.plan,
    api_keys.c.created_at,
    api_keys.c.revoked_at,
    api_keys.c.last_used_at,
    api_keys.c.hint,
).join_from(api_keys, accounts)


def _record(row: sa.RowMapping) -> KeyRecord:
    values: dict[str, Any] = dict(row)
    return KeyRecord(key_id=values.pop("id"), **values)


def check_plan(plan: str) -> str:
    """Check that there is a plan of a name, and return it.

    Raises:
        InputError: There is none.
    """
    if plan not in PLAN_NAMES:
        msg = f"plan must be one of {', '.join(PLAN_NAMES)}, got {quote(plan)}"
        raise InputError(msg)
    return plan


def check_visible(text: str, field: str) -> str:
    """Check the name of an account or key, and return it normalised.

    Raises:
        InputError: It is not 1 to `MAX_NAME` visible characters, or has spaces around it.
    """
    # Normalised, so that composed and decomposed accents make the same name.
    name = unicodedata.normalize("NFC", storable(text, field, least=1, most=MAX_NAME))
    if not name.isprintable() or name != name.strip():
        msg = (
            f"{field} must be 1 to {MAX_NAME} visible characters without spaces around them, "
            f"got {quote(text)}"
        )
        raise InputError(msg)
    return name
