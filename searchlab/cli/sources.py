"""The command that fetches records and pictures of an upstream library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from searchlab.cli.completion import complete_libraries, complete_words
from searchlab.cli.options import EXISTING_FILE, FOLDER, stderr
from searchlab.errors import InputError, count, shell_word


@click.command()
@click.argument("source", shell_complete=complete_libraries)
@click.option("--query", default="", help="Words to search the library for.")
@click.option(
    "--dump", type=EXISTING_FILE, help="Fetch no records, but the pictures of this file of records."
)
@click.option(
    "--pages", type=int, default=1, show_default=True, help="Most pages of results to fetch."
)
@click.option(
    "--out",
    type=FOLDER,
    help="Folder to fetch into; if not given, a folder named as SOURCE, or the dump's own.",
)
@click.option(
    "--key",
    default="",
    help="Key of the source's API; safer as an environment variable, such as PEXELS_API_KEY.",
)
@click.option(
    "--size",
    help="Size of the pictures: thumb, small, regular, large or full; the source's usual size if "
    "not given.",
    shell_complete=complete_words("thumb", "small", "regular", "large", "full"),
)
@click.option(
    "--allow",
    multiple=True,
    help="Also fetch pictures with such a licence: nc (non-commercial), nd (no derivatives), "
    "reserved (all rights), none (unknown); repeatable.",
    shell_complete=complete_words("nc", "nd", "reserved", "none"),
)
@click.option(
    "--fresh", is_flag=True, help="Ignore answers of the API that were stored in the last day."
)
def fetch(source: str, dump: Path | None, out: Path | None, **options: Any) -> None:
    """Fetch records and pictures of a photo library.

    SOURCE is the name of the library. For example: searchlab fetch pexels --query boats --pages 2
    --out photos, then searchlab index --source pexels photos/pexels.jsonl. After an interruption,
    the same command goes on where it stopped.
    """
    from searchlab.cli.console import ConsoleProgress, print_problems
    from searchlab.library.roots import check_allowed
    from searchlab.sources import find_source
    from searchlab.sources.fetch.client import PoliteClient, open_client
    from searchlab.sources.fetch.records_and_pictures import fetch as fetch_records
    from searchlab.sources.fetch.records_and_pictures import fetch_pictures

    library = find_source(source)
    check_allowed(options["allow"])
    if bool(options["query"].strip()) == (dump is not None):
        msg = "fetch must be given either --query or --dump"
        raise InputError(msg)
    folder = out or (Path(source) if dump is None else dump.parent)
    variable = library.key.variable if library.key else ""
    key = options["key"] or os.environ.get(variable, "")
    log = stderr()
    progress = ConsoleProgress(log)
    with open_client() as client:
        api = PoliteClient(
            library,
            client,
            folder / "responses",
            key=key,
            cache_s=0 if options["fresh"] else 86_400,
            say=progress.say,
        )
        shared = {"size": options["size"], "allowed": options["allow"], "progress": progress}
        if dump is None:
            pages = options["pages"]
            report = fetch_records(api, client, options["query"], folder, pages=pages, **shared)
        else:
            report = fetch_pictures(api, client, dump, folder, **shared)
    print_problems(report.problems, log)
    click.echo(
        f"{count(report.records, 'record')}, {report.new:,} new; pictures: "
        f"{report.fetched:,} fetched, {report.there:,} there already, "
        f"{len(report.problems):,} left out"
    )
    beside = (
        ""
        if folder.resolve() == report.dump.resolve().parent
        else f" --pictures {shell_word(folder)}"
    )
    click.echo(f"next: searchlab index --source {source} {shell_word(report.dump)}{beside}")
