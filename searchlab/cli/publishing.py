"""The commands that copy a library's snapshot to an address, and from one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.cli.options import data_option, stderr
from searchlab.errors import count

if TYPE_CHECKING:
    from searchlab.cluster.publishing import Published


@click.command()
@click.argument("address")
@data_option
@click.option(
    "--replace", is_flag=True, help="Replace another library, or a newer snapshot, there."
)
@click.option("--all", "everything", is_flag=True, help="Copy what is there too, to mend damage.")
def push(address: str, data: Path, replace: bool, everything: bool) -> None:
    """Copy a library's vectors and index to ADDRESS.

    Other machines search them from there. ADDRESS is a folder, or one such as s3://bucket/library
    (extra `cluster`). Only what is not there yet is copied, and what was there stays in force until
    all of it is. Photos, thumbnails, accounts and keys stay here.
    """
    from searchlab.cli.console import ConsoleProgress
    from searchlab.cluster import publishing
    from searchlab.cluster.storage import Store
    from searchlab.library.library import open_library

    library = open_library(data)
    done = publishing.push(
        library,
        Store(address),
        replace=replace,
        everything=everything,
        progress=ConsoleProgress(stderr()),
    )
    _show(done)


@click.command()
@click.argument("address")
@data_option
@click.option("--replace", is_flag=True, help="Replace photos that never were at ADDRESS.")
def pull(address: str, data: Path, replace: bool) -> None:
    """Take over what was pushed to ADDRESS.

    A library here gets it, and searches by it from then on. Every file is compared with its
    checksum. A server that runs goes on with what comes.
    """
    from searchlab.cli.console import ConsoleProgress
    from searchlab.cluster import publishing
    from searchlab.cluster.storage import Store
    from searchlab.errors import NotFoundError
    from searchlab.library.library import create_library

    store = Store(address)
    if publishing.published_id(store) is None:  # asked first: no empty library is left behind
        msg = f"{store.address} must hold a library, got none; `searchlab push` puts one there"
        raise NotFoundError(msg)
    progress = ConsoleProgress(stderr())
    _show(publishing.pull(store, create_library(data), replace=replace, progress=progress))


def _show(done: Published) -> None:
    click.echo(
        f"snapshot {done.snapshot_id}: {done.n_copied} of {count(done.n_files, 'file')} copied, "
        f"{done.n_bytes / 1e6:,.1f} MB"
    )
