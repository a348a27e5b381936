"""Everything that is stored of an account, for its owner to take away; no secret and no hash."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.tables import (
    accounts,
    api_keys,
    collection_photos,
    collections,
    oauth_clients,
    oauth_codes,
    oauth_grants,
    oauth_tokens,
    replays,
    sessions,
    sign_in_links,
    usage_days,
    usage_months,
)
from searchlab.api.accounts.values import as_timestamp

_HIDDEN = {
    *("account_id", "secret_sha256", "token_sha256", "code_sha256", "challenge", "salt"),
    *("scope", "fingerprint", "owner", "body"),
}
_LISTS = {
    "keys": (api_keys, "created_at"),
    "usage_by_month": (usage_months, "month"),
    "usage_by_day": (usage_days, "day"),
    "sessions": (sessions, "created_at"),
    "sign_in_links": (sign_in_links, "created_at"),
    "apps_registered": (oauth_clients, "created_at"),
    "apps_asking": (oauth_codes, "created_at"),
    "apps_connected": (oauth_grants, "created_at"),
    "tokens_of_apps": (oauth_tokens, "created_at"),
    "repeatable_answers": (replays, "created_at"),
}
"""What belongs to an account directly: name in the export -> table and order."""
EXPORTED = {table.name for table, _ in _LISTS.values()} | {
    *(accounts.name, collections.name, collection_photos.name)
}
"""Names of the tables that an export holds; a test checks that they are all."""


def export_account(database: Database, account_id: int) -> dict[str, Any]:
    """Return what is stored of an account, as plain values for JSON.

    Times are ISO 8601 in UTC. `repeatable_answers` are those kept for a day for requests with an
    `Idempotency-Key`, without their bodies.
    """
    with database.reading() as connection:
        (account,) = _rows(connection, accounts, accounts.c.id == account_id, "id")
        export: dict[str, Any] = {"exported_at": as_timestamp(utc_now()), "account": account}
        for name, (table, order) in _LISTS.items():
            export[name] = _rows(connection, table, table.c.account_id == account_id, order)
        export["collections"] = _collections(connection, account_id)
    return export


def _collections(connection: Connection, account_id: int) -> list[dict[str, Any]]:
    theirs = _rows(connection, collections, collections.c.account_id == account_id, "id")
    for collection in theirs:
        entries = collection_photos.c.collection_id == collection["id"]
        collection["photos"] = _rows(connection, collection_photos, entries, "id")
    return theirs


def _rows(
    connection: Connection, table: sa.Table, which: sa.ColumnElement[bool], order: str
) -> list[dict[str, Any]]:
    columns = [column for column in table.c if column.name not in _HIDDEN]
    query = sa.select(*columns).where(which).order_by(table.c[order])
    return [
        {name: _plain(value) for name, value in row.items()}
        for row in connection.execute(query).mappings()
    ]


def _plain(value: Any) -> Any:
    if hasattr(value, "hour"):
        return as_timestamp(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
