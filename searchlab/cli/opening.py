"""The command that shows a library in the browser: one server, signed in, for one person."""

from __future__ import annotations

import io
import os
import threading
import webbrowser
import zlib
from pathlib import Path

import click

from searchlab.cli.database import database_option
from searchlab.cli.extras import require_extra
from searchlab.cli.keys import accounts_database
from searchlab.cli.options import FOLDER, data_option, given_options
from searchlab.errors import ConflictError, InputError, NotFoundError, shell_word

_HOST = "127.0.0.1"
_PORTS = range(20_000, 30_000)


@click.command("open")
@click.argument("library", required=False, type=FOLDER)
@data_option
@database_option
@click.option("--account", default="me", show_default=True, help="Account to sign in with.")
@click.option(
    "--port",
    type=int,
    help="Port to listen on; if not given, the library's own, or a free one if that is in use.",
)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening it.")
def open_library(
    library: Path | None,
    data: Path,
    database_url: str | None,
    account: str,
    port: int | None,
    no_browser: bool,
) -> None:
    """Show a library in the browser, on this machine alone.

    Starts a server, signs in and opens the browser; Ctrl-C ends it. LIBRARY is the folder that
    `searchlab index` made, as for --data. The account is made if there is none, with plan scale.
    """
    require_extra("serve")
    from searchlab.api.ops.server import serve
    from searchlab.api.settings import Settings
    from searchlab.api.web.session_cookies import Site

    if library is not None and "data" in given_options():
        msg = f"LIBRARY and --data cannot be combined, got {library} and {data}; keep one"
        raise InputError(msg)
    folder = (library or data).expanduser().resolve()
    if not (folder / "library.json").is_file():
        msg = (
            f"LIBRARY must be a library, got {library or data}; "
            f"make one with `searchlab index --data {shell_word(library or data)} ~/Pictures`"
        )
        raise NotFoundError(msg)
    settings = Settings(
        data=folder,
        database_url=database_url or "",
        host=_HOST,
        port=_choose_port(folder) if port is None else port,
        access_log=False,
        show_places=True,  # to whoever owns the library, on this machine
    )

    def show(address: str) -> None:
        link = Site(address).sign_in_link(_make_token(folder, database_url, account))
        if no_browser or not _browse(link):
            click.echo("open this address in the browser, within ten minutes:", err=True)
            click.echo(link)
        click.echo(f"searchlab shows {folder} at {address}/; Ctrl-C ends it", err=True)

    serve(settings, stream=io.StringIO(), on_ready=show)


def _make_token(data: Path, database_url: str | None, account: str) -> str:
    from searchlab.api.accounts.administration import create_account, find_account
    from searchlab.api.accounts.sessions import create_link

    with accounts_database(data, database_url) as database:
        try:
            name = find_account(database, account).name
        except NotFoundError:
            name = create_account(database, account, plan="scale").name
        return create_link(database, name)[0]


def _choose_port(folder: Path) -> int:
    """Return the library's own port, so that bookmarks and sessions last; 0 if it is in use."""
    from searchlab.api.ops.listening import bind

    port = _PORTS[zlib.crc32(os.fsencode(folder)) % len(_PORTS)]
    try:
        bind(_HOST, port).close()
    except ConflictError:
        return 0
    return port


def _browse(link: str) -> bool:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if type(browser) is not webbrowser.GenericBrowser:
        return browser.open(link)
    # It runs until it is closed, and one such as lynx in this terminal.
    if "BROWSER" in os.environ:
        threading.Thread(target=browser.open, args=[link], daemon=True).start()
    return "BROWSER" in os.environ
