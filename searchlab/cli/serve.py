"""The command that serves a library over HTTP."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.core import ParameterSource

from searchlab.cli.database import database_option
from searchlab.cli.extras import require_extra
from searchlab.cli.option_names import with_options
from searchlab.cli.options import EXISTING_FILE, data_option
from searchlab.errors import InputError, SearchlabError

_MIB = 2**20
_OF_SHARDS = ("shards", "replicas", "shard_cpus", "shard_timeout_s", "shard_open_timeout_s")


@click.command(context_settings={"auto_envvar_prefix": "SEARCHLAB"})
@data_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=int, default=8000, show_default=True, help="Port to listen on; 0 for a free one."
)
@click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    help="Number of processes that answer; more than one per CPU core is of no use.",
)
@click.option(
    "--config",
    type=EXISTING_FILE,
    help="Switch the library to this configuration first, such as results/chosen.json.",
)
@database_option
@click.option(
    "--base-url",
    default="",
    help="Address that links in answers start with, such as https://photos.example.org; the "
    "address of each request if not given.",
)
@click.option(
    "--mcp-url",
    default="",
    help="Address under which clients of language models reach /mcp, without /mcp itself; that of "
    "--base-url if not given. Their tokens are for this address alone.",
)
@click.option(
    "--visitors",
    default="",
    metavar="ACCOUNT",
    help="Let anybody search on the pages without signing in, on the quota of this account.",
)
@click.option(
    "--cors-origin",
    "cors_origins",
    multiple=True,
    envvar="SEARCHLAB_CORS_ORIGINS",
    help="Origin whose web pages may call the API, or * for any; repeatable.",
)
@click.option(
    "--rate",
    "rate_per_second",
    envvar="SEARCHLAB_RATE",
    type=float,
    default=200.0,
    show_default=True,
    help="Requests per second that a key may send continuously.",
)
@click.option(
    "--burst",
    "rate_burst",
    envvar="SEARCHLAB_BURST",
    type=int,
    default=400,
    show_default=True,
    help="Requests that a key may send at once.",
)
@click.option(
    "--max-in-flight",
    type=int,
    default=512,
    show_default=True,
    help="Requests that a worker handles at once; more are answered 503.",
)
@click.option(
    "--max-connections-per-address",
    type=int,
    default=512,
    show_default=True,
    help="Connections to a worker that one address may hold; of more, the most idle are closed.",
)
@click.option(
    "--trusted-proxy-header",
    default="",
    help="Header in which a proxy says for which address it asks, such as X-Forwarded-For; limits "
    "by address then count by it, and connections of the proxy are not limited.",
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    default=["127.0.0.0/8", "::1/128"],
    show_default=True,
    envvar="SEARCHLAB_TRUSTED_PROXIES",
    help="Address or network of a proxy whose header is believed; repeatable.",
)
@click.option(
    "--send-timeout",
    "send_timeout_s",
    envvar="SEARCHLAB_SEND_TIMEOUT",
    type=float,
    default=30.0,
    show_default=True,
    help="Seconds after which a connection is closed whose client does not read its answer.",
)
@click.option(
    "--max-upload-mib",
    type=click.IntRange(1, 2048),
    default=20,
    show_default=True,
    help="Largest upload in MiB.",
)
@click.option(
    "--decode-slots",
    type=int,
    default=2,
    show_default=True,
    help="Uploaded pictures that a worker decodes at once.",
)
@click.option(
    "--decode-timeout",
    "decode_timeout_s",
    envvar="SEARCHLAB_DECODE_TIMEOUT",
    type=float,
    default=10.0,
    show_default=True,
    help="Seconds that decoding an uploaded picture may take.",
)
@click.option(
    "--show-places",
    is_flag=True,
    help="Send originals as they are, and find photos by names of files, folders and places; else "
    "nobody learns from the server of the places and keywords that are written in them.",
)
@click.option(
    "--on",
    default="",
    metavar="ray:ADDRESS",
    help="Let actors of a Ray cluster search the vectors, such as ray:auto; the library must lie "
    "under the same path on every node (extra `cluster`). In the workers if not given.",
)
@click.option(
    "--shards",
    type=int,
    default=2,
    show_default=True,
    help="With --on: parts that the library is cut into.",
)
@click.option(
    "--replicas",
    type=int,
    default=1,
    show_default=True,
    help="With --on: actors for each part; with two, the death of one costs no request.",
)
@click.option(
    "--shard-cpus",
    type=float,
    default=1.0,
    show_default=True,
    help="With --on: processors that an actor takes.",
)
@click.option(
    "--shard-timeout",
    "shard_timeout_s",
    envvar="SEARCHLAB_SHARD_TIMEOUT",
    type=float,
    default=5.0,
    show_default=True,
    help="With --on: seconds within which all parts must answer; else the request is answered 503.",
)
@click.option(
    "--shard-open-timeout",
    "shard_open_timeout_s",
    envvar="SEARCHLAB_SHARD_OPEN_TIMEOUT",
    type=float,
    default=600.0,
    show_default=True,
    help="With --on: seconds within which all parts must have opened a new snapshot; else the one "
    "before stays in force.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log on standard error.",
)
@click.option(
    "--access-log/--no-access-log",
    default=True,
    show_default=True,
    help="Log a line for each request.",
)
def serve(max_upload_mib: int, database_url: str | None, **options: Any) -> None:
    """Serve the HTTP API on a library.

    A line on standard error says when it is ready; SIGTERM or Ctrl-C stops it. `searchlab index`
    on the same library, `searchlab keys create` and `searchlab keys revoke` take effect while it
    runs. Every option can also be given as an environment variable, such as SEARCHLAB_PORT.
    """
    try:
        _check_shards(click.get_current_context())
        require_extra("serve")
        if options["mcp_url"]:
            require_extra("mcp")
        from searchlab.api.ops.server import serve as run
        from searchlab.api.settings import Settings
        from searchlab.library.roots import refuse_backup

        refuse_backup(options["data"])

        settings = Settings(
            max_upload_bytes=max_upload_mib * _MIB, database_url=database_url or "", **options
        )
        run(settings)
    except SearchlabError as error:
        # Exit code 2 for every error here: the person who starts the server can mend it.
        message = with_options(str(error), click.get_current_context().command.params)
        click.echo(f"searchlab: {message}", err=True)
        sys.exit(2)


def _check_shards(context: click.Context) -> None:
    """Refuse options of shards where there are none.

    Raises:
        InputError: One is given without --on.
    """
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in _OF_SHARDS
        and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT
    ]
    if given and not context.params["on"]:
        msg = f"{given[0]} goes with --on, got none; name who searches, such as --on ray:auto"
        raise InputError(msg)
