"""The commands on API keys: create, list, revoke. A running server applies changes at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.cli.completion import complete_words
from searchlab.cli.database import database_option
from searchlab.cli.options import data_option, print_columns
from searchlab.errors import InputError, NotFoundError, quote, shell_word

if TYPE_CHECKING:
    from searchlab.api.accounts.accounts import KeyRecord
    from searchlab.api.accounts.database import Database


@click.group()
def keys() -> None:
    """Create, list and revoke keys of the HTTP API."""


@keys.command("create")
@data_option
@database_option
@click.option("--account", required=True, help="Account of the key; created with its first key.")
@click.option("--name", required=True, help="Name of the key.")
@click.option(
    "--plan",
    help="Plan of the account from now on: free, starter, growth or scale; free for a new account.",
    shell_complete=complete_words("free", "starter", "growth", "scale"),
)
def create(data: Path, database_url: str | None, account: str, name: str, plan: str | None) -> None:
    """Create a key and print it; it cannot be shown again."""
    from searchlab.api.accounts.accounts import PLAN_NAMES, create_key, plan_of

    if plan is not None and plan not in PLAN_NAMES:
        msg = f"--plan must be one of {', '.join(PLAN_NAMES)}, got {quote(plan)}"
        raise InputError(msg)
    with accounts_database(data, database_url) as database:
        before = plan_of(database, account)
        record, secret = create_key(database, account=account, name=name, plan=plan)
    if before is None:
        click.echo(f"account {record.account} is created, with plan {record.plan}", err=True)
    elif before != record.plan:
        click.echo(
            f"account {record.account} changes from plan {before} to {record.plan}", err=True
        )
    click.echo(
        f"key {record.key_id} ({record.name}) of account {record.account}; "
        "it cannot be shown again:",
        err=True,
    )
    click.echo(secret)


@keys.command("list")
@data_option
@database_option
@click.option("--account", help="List only the keys of this account.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def list_all(data: Path, database_url: str | None, account: str | None, as_json: bool) -> None:
    """List the keys, also those that were revoked."""
    from searchlab.api.accounts.accounts import list_keys

    with accounts_database(data, database_url) as database:
        records = list_keys(database, account)
    if as_json:
        _print_json(records)
        return
    heads = ("KEY", "ACCOUNT", "PLAN", "NAME", "BEGINS", "CREATED", "LAST USED", "STATE")
    rows = [heads, *(_row(record) for record in records)]
    print_columns(rows)


@keys.command("revoke")
@click.argument("key")
@data_option
@database_option
def revoke(key: str, data: Path, database_url: str | None) -> None:
    """Revoke a key.

    Requests with it are refused from now on. KEY is the id of the key, or its first characters;
    `searchlab keys list` shows both.
    """
    from searchlab.api.accounts.accounts import revoke_key

    with accounts_database(data, database_url) as database:
        record = revoke_key(database, key)
    click.echo(
        f"key {record.key_id} ({record.name}) of account {record.account} "
        f"is revoked since {in_seconds(record.revoked_at)}"
    )


@contextmanager
def accounts_database(data: Path, url: str | None) -> Iterator[Database]:
    """Open the database of a library, or the one of a URL, with the tables of this version.

    Raises:
        NotFoundError: There is no URL, and no library in the folder.
    """
    from searchlab.api.accounts.database import open_database, sqlite_url
    from searchlab.api.accounts.migrations import migrate
    from searchlab.library.roots import refuse_backup

    if not url:
        if not (data / "library.json").is_file():
            msg = (
                f"--data must be a library, got {data}; "
                f"make one with `searchlab index --data {shell_word(data)} PHOTOS`"
            )
            raise NotFoundError(msg)
        refuse_backup(data)
        url = sqlite_url(data)
    database = open_database(url)
    try:
        migrate(database)
        yield database
    finally:
        database.close()


def _row(record: KeyRecord) -> tuple[str, ...]:
    return (
        record.key_id,
        record.account,
        record.plan,
        record.name,
        f"{record.hint}...",
        in_seconds(record.created_at),
        in_seconds(record.last_used_at) if record.last_used_at else "never",
        "in force" if record.revoked_at is None else f"revoked {in_seconds(record.revoked_at)}",
    )


def in_seconds(moment: datetime | None) -> str:
    """Write a moment as people read it; nothing for None."""
    return "" if moment is None else moment.isoformat(sep=" ", timespec="seconds")


def _print_json(records: list[KeyRecord]) -> None:
    import json
    from dataclasses import asdict

    from searchlab.api.accounts.values import as_timestamp

    moments = ("created_at", "revoked_at", "last_used_at")
    rows = [asdict(r) | {name: as_timestamp(getattr(r, name)) for name in moments} for r in records]
    click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
