"""The commands on accounts: create, list, sign in, change the plan, close. They hold at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.cli.completion import complete_words
from searchlab.cli.database import database_option
from searchlab.cli.keys import accounts_database, in_seconds
from searchlab.cli.options import data_option, print_columns
from searchlab.errors import InputError, count, quote

if TYPE_CHECKING:
    from searchlab.api.accounts.administration import AccountRecord

_account_option = click.option("--account", required=True, help="Name of the account.")
_PLANS = ("free", "starter", "growth", "scale")


@click.group()
def accounts() -> None:
    """Administer the accounts of people and programs."""


@accounts.command("create")
@data_option
@database_option
@_account_option
@click.option("--plan", default="free", show_default=True, shell_complete=complete_words(*_PLANS))
def create(data: Path, database_url: str | None, account: str, plan: str) -> None:
    """Create an account; `accounts link` then signs its owner in."""
    from searchlab.api.accounts.administration import create_account

    with accounts_database(data, database_url) as database:
        record = create_account(database, account, plan=plan)
    click.echo(f"account {record.name} is created, with plan {record.plan}")


@accounts.command("list")
@data_option
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def list_all(data: Path, database_url: str | None, as_json: bool) -> None:
    """List the accounts, and how much belongs to each."""
    from searchlab.api.accounts.administration import list_accounts

    with accounts_database(data, database_url) as database:
        records = list_accounts(database)
    if as_json:
        _print_json(records)
        return
    heads = ("ACCOUNT", "PLAN", "CREATED", "KEYS", "SESSIONS", "COLLECTIONS", "SEARCHES THIS MONTH")
    print_columns([heads, *(_row(record) for record in records)])


@accounts.command("link")
@data_option
@database_option
@_account_option
@click.option(
    "--base-url",
    envvar="SEARCHLAB_BASE_URL",
    show_envvar=True,
    help="Address of the server, such as https://photos.example.org; port 8000 (SEARCHLAB_PORT) of "
    "this machine if not given.",
)
@click.option("--port", envvar="SEARCHLAB_PORT", type=int, default=8000, hidden=True)
def link(data: Path, database_url: str | None, account: str, base_url: str, port: int) -> None:
    """Print an address that signs in whoever opens it.

    It can be used once, within ten minutes.
    """
    from searchlab.api.accounts.sessions import create_link
    from searchlab.api.settings import Settings
    from searchlab.api.web.session_cookies import NEEDS_HTTPS, Site

    address = base_url or f"http://127.0.0.1:{port}"
    site = Site(Settings(data=data, base_url=address).base_url)
    with accounts_database(data, database_url) as database:
        token, expires_at = create_link(database, account)
    if not site.can_sign_in:
        click.echo(NEEDS_HTTPS, err=True)
    click.echo(
        f"opens account {account} in the browser, once, until {in_seconds(expires_at)}:", err=True
    )
    click.echo(site.sign_in_link(token))


@accounts.command("plan")
@data_option
@database_option
@_account_option
@click.option("--plan", required=True, shell_complete=complete_words(*_PLANS))
def plan(data: Path, database_url: str | None, account: str, plan: str) -> None:
    """Move an account to another plan."""
    from searchlab.api.accounts.administration import change_plan, find_account

    with accounts_database(data, database_url) as database:
        before = find_account(database, account)
        change_plan(database, account, plan)
    click.echo(f"account {before.name} changes from plan {before.plan} to {plan}")


@accounts.command("close")
@data_option
@database_option
@_account_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def close(data: Path, database_url: str | None, account: str, yes: bool) -> None:
    """Delete an account with all that is its own.

    Its keys and sessions are refused from now on; its collections, judgments and usage are deleted.
    None of it can be brought back. The judging tasks that it made stay, without its name.
    """
    from searchlab.api.accounts.administration import close_account, find_account
    from searchlab.evaluation.judging.makers import forget_maker
    from searchlab.evaluation.judging.tasks import delete_journals

    with accounts_database(data, database_url) as database:
        record = find_account(database, account)
        if not yes:
            _confirm(record)
        owner = str(record.account_id)
        # First, as it may fail: then there still is an account that can be closed again.
        forget_maker(data, owner, record.name)
        close_account(database, record.name)
    delete_journals(data, owner)
    forget_maker(data, owner, record.name)  # of a task that was made just now
    click.echo(f"account {record.name} is closed, and all that was its own is deleted")


def _confirm(record: AccountRecord) -> None:
    if not _is_asked():
        msg = "--yes must be given where nobody can be asked, got none"
        raise InputError(msg)
    parts = (count(record.keys, "key"), count(record.collections, "collection"))
    click.echo(
        f"account {record.name} has {', '.join(parts)} and "
        f"{count(record.sessions, 'session')}; all of it will be deleted for good",
        err=True,
    )
    answer = click.prompt("Its name, to go on", default="", show_default=False, err=True)
    if answer != record.name:
        msg = f"the answer must be the account's name, got {quote(answer)}; nothing was deleted"
        raise InputError(msg)


def _is_asked() -> bool:
    return sys.stdin.isatty()


def _row(record: AccountRecord) -> tuple[str, ...]:
    numbers = (record.keys, record.sessions, record.collections, record.requests)
    return (
        record.name,
        record.plan,
        in_seconds(record.created_at),
        *(f"{number:,}" for number in numbers),
    )


def _print_json(records: list[AccountRecord]) -> None:
    import json
    from dataclasses import asdict

    from searchlab.api.accounts.values import as_timestamp

    rows = [asdict(r) | {"created_at": as_timestamp(r.created_at)} for r in records]
    click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
