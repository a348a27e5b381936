"""The commands that copy a library with its accounts, and put a copy back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from searchlab.cli.database import database_option
from searchlab.cli.options import FOLDER, data_option
from searchlab.errors import count

_POSTGRES = "accounts and collections are not in it: they lie in PostgreSQL, see pg_dump"


@click.command()
@click.argument("target", type=FOLDER)
@data_option
@database_option
def backup(target: Path, data: Path, database_url: str | None) -> None:
    """Copy a library into the new folder TARGET.

    It may be served and indexed meanwhile. The copy has photos, vectors, thumbnails, models and,
    unless they lie in PostgreSQL, accounts, keys, usage and collections, each as at one moment
    after the command began. The files of the photos are not in it. `searchlab restore` puts it
    back.
    """
    from searchlab.library.backup import API_DATABASE, back_up
    from searchlab.library.library import open_library

    library = open_library(data)
    copy = None
    if not database_url and (library.folder / API_DATABASE).exists():
        from searchlab.api.accounts.backups import copy_accounts
        from searchlab.api.accounts.database import open_database, sqlite_url

        database = open_database(sqlite_url(library.folder))

        def copy(path: Path) -> None:
            copy_accounts(database, path)

    made = back_up(library, target, copy_accounts=copy)
    click.echo(
        f"{made.folder}: snapshot {made.snapshot_id} of {made.created_at}, "
        f"{count(len(made.files), 'file')}, {made.size_bytes / 1e6:,.1f} MB"
    )
    if database_url:
        click.echo(f"searchlab: {_POSTGRES}", err=True)


@click.command()
@click.argument("source", metavar="BACKUP", type=FOLDER)
@data_option
@database_option
@click.option("--replace", is_flag=True, help="Put it in place of the library that is there.")
def restore(source: Path, data: Path, database_url: str | None, replace: bool) -> None:
    """Put a library back from BACKUP.

    BACKUP is a folder that `searchlab backup` made. Every file is compared with its checksum first.
    A server that runs goes on with what is restored: photos, accounts, keys, usage and collections
    are those of the backup, and what came since is lost. Never copy a file over api.db by hand.
    """
    from searchlab.library import backup as backups

    made = backups.read_backup(source)
    library = backups.restore(made, data, replace=replace)
    if backups.API_DATABASE in made.files and not database_url:
        from searchlab.api.accounts.backups import restore_accounts
        from searchlab.api.accounts.database import open_database, sqlite_url

        with closing(open_database(sqlite_url(library.folder))) as database:
            restore_accounts(database, made.folder / backups.API_DATABASE)
    click.echo(f"{library.folder} is as it was at {made.created_at}, snapshot {made.snapshot_id}")
    if database_url:
        click.echo(f"searchlab: {_POSTGRES}", err=True)
