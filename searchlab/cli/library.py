"""The commands on a library: demo, index, search, check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from searchlab.cli.completion import (
    complete_colors,
    complete_indexes,
    complete_libraries,
    complete_models,
    complete_values,
    complete_words,
)
from searchlab.cli.options import (
    ANY_PATH,
    EXISTING_FILE,
    FOLDER,
    data_option,
    given_options,
    named_models,
    output_options,
    stderr,
    stdout,
    write_text,
)
from searchlab.cli.running import runner_of, runner_options
from searchlab.errors import InputError

if TYPE_CHECKING:
    from searchlab.library.roots import Root
    from searchlab.search.queries import Query

_SHADES = ("color_name", "color_hex", "palette")
_COLORS = (*_SHADES, "color_tolerance")
_PLACES = ("orientation", "source", "license_type", "photographer")
_CONDITIONS = (*_COLORS, *_PLACES, "after_date", "before_date")
_BY = ("text", "image", "photo_id", "text_alpha")
_ASKED = (*_BY, "sort_by", "score_threshold", "limit", "min_recall")
_SEARCHED = {*_CONDITIONS, *_ASKED, "per_page"}
"""What a cursor holds."""


@click.command()
@click.option(
    "--data",
    type=FOLDER,
    default=Path("searchlab-demo"),
    show_default=True,
    help="Folder of the demo's own library.",
)
@click.option("--force", is_flag=True, help="Measure again what was measured already.")
def demo(data: Path, force: bool) -> None:
    """Try searchlab on photos that come with it.

    Indexes the bundled photos, compares models on bundled judgments, and makes the best one the
    library's model.
    """
    from searchlab.cli.demo import run_demo

    run_demo(data, force=force, out=stdout(), log=stderr())


@click.command()
@click.argument("places", nargs=-1, type=ANY_PATH)
@data_option
@click.option(
    "--records",
    type=EXISTING_FILE,
    help="JSONL file with records of the photos; photos.jsonl in the folder if not given.",
)
@click.option(
    "--source",
    default="",
    help="Name of the photos' source, local if not given; for a dump, the library that it is from.",
    shell_complete=complete_libraries,
)
@click.option(
    "--pictures",
    type=FOLDER,
    help="Folder with the pictures of a dump; the dump's own if not given.",
)
@click.option(
    "--allow",
    multiple=True,
    help="Also index photos of a dump with such a licence: nc (non-commercial), nd (no "
    "derivatives), reserved (all rights), none (unknown); repeatable.",
    shell_complete=complete_words("nc", "nd", "reserved", "none"),
)
@click.option(
    "--model",
    help="Embedding model, such as mini or hybrid:mini=0.7,captions=0.3.",
    callback=named_models,
    shell_complete=complete_models,
)
@click.option(
    "--config",
    "config_file",
    type=EXISTING_FILE,
    help="Configuration to index with, such as results/chosen.json.",
)
@click.option(
    "--index",
    "index_kind",
    help="Kind of index: exact, clustered, hnsw, pgvector:URL or milvus:URI.",
    shell_complete=complete_indexes,
)
@click.option(
    "--forget",
    multiple=True,
    type=ANY_PATH,
    help="Drop the photos of this folder or dump from the library; repeatable.",
)
@click.option(
    "--rebuild", is_flag=True, help="Build the snapshot again; photos are not embedded again."
)
@click.option(
    "--prune", is_flag=True, help="Delete cached vectors and thumbnails of photos that are gone."
)
@click.option(
    "--keep-minutes",
    type=float,
    help="Minutes that a replaced snapshot is kept from now on, so that its cursors stay valid; "
    "60 if never given.",
)
@click.option(
    "--keep-gb",
    type=float,
    help="Most GB of all replaced snapshots from now on; 10 if never given. The last two are kept "
    "in any case.",
)
@click.option(
    "--skipped",
    type=EXISTING_FILE,
    help="Also write all files that were skipped into this file, each with its reason, as JSONL.",
)
@runner_options(
    "Embed on Ray: ray:local, or ray:ADDRESS of a cluster whose nodes reach the photos by the same "
    "paths (extra `cluster`); in this process if not given."
)
@click.option(
    "--work",
    help="With --on, where its workers write what they finish: a folder or an address such as "
    "s3://bucket/work; a folder of the library's own if not given.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Name every file that was skipped, not just its kind."
)
def index(places: tuple[Path, ...], data: Path, **options: Any) -> None:
    """Index folders of photos, or dumps of photo libraries.

    PLACES are folders or dumps. Run it again to take in changes; without PLACES it looks at all
    that were named before. A dump is a file of a photo library's own records, as JSONL, JSON or
    CSV, such as `searchlab fetch` writes: searchlab index --source pexels pexels.jsonl

    What is known of a photo comes first from its line in photos.jsonl, which names its file and may
    give title, tags, place and more; then from IMG_1.jpg.xmp or IMG_1.xmp beside it; then from the
    photo itself. A photo without a known day gets the day on which it was first indexed.
    """
    from searchlab.cli.console import ConsoleProgress, print_report
    from searchlab.cli.indexing_checks import check_covered, check_kept, check_skipped, keep
    from searchlab.cli.skipped import skipped_as_jsonl
    from searchlab.config import Config
    from searchlab.library.ingest import index_photos, refuse_inside
    from searchlab.library.library import create_library
    from searchlab.library.prune import prune
    from searchlab.models import load_model

    roots = _roots(places, options)
    config = None if options["config_file"] is None else Config.load(options["config_file"])
    # Checked first, so that a misspelt name leaves no empty library behind.
    check_kept(options["keep_minutes"], options["keep_gb"])
    check_skipped(options["skipped"])
    check_covered(data, roots, options["forget"])
    refuse_inside(roots, data.resolve())
    if options["model"] is not None:
        load_model(options["model"])
    if options["index_kind"] is not None:
        Config(index=options["index_kind"])
    runner = runner_of(options)
    library = create_library(data)
    keep(library.folder, options["keep_minutes"], options["keep_gb"])
    log = stderr()
    report = index_photos(
        library,
        roots,
        config=config,
        model=options["model"],
        index=options["index_kind"],
        forget=options["forget"],
        rebuild=options["rebuild"],
        runner=runner,
        progress=ConsoleProgress(log),
    )
    if options["prune"]:
        prune(library)
    print_report(report, stdout(), every=options["verbose"])
    if options["skipped"] is not None:
        write_text(options["skipped"], skipped_as_jsonl(report.problems))


def _roots(places: tuple[Path, ...], options: dict[str, Any]) -> list[Root]:
    from searchlab.library.roots import check_dump, check_root

    dumps = [place for place in places if place.is_file()]
    if options["records"] is not None and len(places) != 1:
        msg = f"--records goes with exactly one folder, got {len(places)}"
        raise InputError(msg)
    if not dumps and (options["pictures"] or options["allow"]):
        msg = "--pictures and --allow go with a dump, got none; name its file"
        raise InputError(msg)
    if dumps and options["records"] is not None:
        msg = "--records goes with a folder, got a dump, which holds its records itself"
        raise InputError(msg)
    source = options["source"]
    return [
        check_dump(place, source=source, pictures=options["pictures"], allowed=options["allow"])
        if place in dumps
        else check_root(place, records=options["records"], source=source)
        for place in places
    ]


@click.command()
@click.argument("text", required=False)
@data_option
@click.option("--image", type=EXISTING_FILE, help="Picture to search by.")
@click.option("--photo-id", help="Id of an indexed photo to search by.")
@click.option(
    "--text-alpha",
    type=float,
    default=1.7,
    show_default=True,
    help="Weight of the text beside a picture, 0 to 10.",
)
@click.option("--color-name", help="A colour family, such as teal.", shell_complete=complete_colors)
@click.option("--color-hex", help="A shade, such as #1f6f8b.")
@click.option(
    "--color-tolerance",
    type=int,
    default=20,
    show_default=True,
    help="How far a colour may be off, 0 (strict) to 255 (any colour).",
)
@click.option(
    "--palette",
    multiple=True,
    help="A colour somewhere in the photo, and the least percent of it: red, red:30, #1f6f8b:10; "
    "repeatable, all must be there.",
    shell_complete=complete_colors,
)
@click.option(
    "--orientation",
    multiple=True,
    help="landscape, portrait, square; repeatable.",
    shell_complete=complete_words("landscape", "portrait", "square"),
)
@click.option(
    "--source",
    multiple=True,
    help="Source of the photo, such as unsplash; repeatable.",
    shell_complete=complete_values("source"),
)
@click.option(
    "--license-type",
    multiple=True,
    help="Licence, such as cc0; repeatable.",
    shell_complete=complete_values("license_type"),
)
@click.option(
    "--photographer",
    help="Exact username of the photographer.",
    shell_complete=complete_values("photographer_username"),
)
@click.option("--after-date", help="Only photos uploaded on this day or later, as YYYY-MM-DD.")
@click.option("--before-date", help="Only photos uploaded on this day or earlier, as YYYY-MM-DD.")
@click.option(
    "--sort-by",
    default="relevance",
    show_default=True,
    help="relevance or newest.",
    shell_complete=complete_words("relevance", "newest"),
)
@click.option("--score-threshold", type=float, help="Leave out results that score less, 0 to 1.")
@click.option("--limit", type=int, help="Most results over all pages, 1 to 100.")
@click.option(
    "--min-recall",
    type=float,
    help="Least expected share of the exact results to find, above 0, up to 1; the library's own "
    "if not given.",
)
@click.option(
    "--per-page", type=int, default=10, show_default=True, help="Results per page, 1 to 100."
)
@click.option("--page", type=int, default=1, show_default=True, help="Page of the results to show.")
@click.option(
    "--cursor",
    help="Show the next page of a search: the next_cursor that --json printed, and no more.",
)
@output_options
def search(data: Path, **options: Any) -> None:
    """Search by words, a picture, filters, or all of them.

    Prints a line a photo: its place, its score from 0 to 1, its file, and what is written about it.
    """
    from searchlab.cli.results import check_output, show_page
    from searchlab.library.library import open_library

    output = check_output(options)
    if options["cursor"] and (others := sorted(_SEARCHED & given_options())):
        named = ", ".join("TEXT" if name == "text" else _option(name) for name in others)
        msg = f"--cursor must stand without a search, as it holds one, got {named}; leave these out"
        raise InputError(msg)
    library = open_library(data)
    query = None if options["cursor"] else _query(options)
    page = library.search(
        query, per_page=options["per_page"], page=options["page"], cursor=options["cursor"]
    )
    show_page(page, output, library)


def _query(options: dict[str, Any]) -> Query:
    given = given_options()
    has_picture = options["image"] or options["photo_id"]
    if "text_alpha" in given and not (options["text"] and has_picture):
        msg = "--text-alpha goes with TEXT beside --image or --photo-id, got it alone; leave it out"
        raise InputError(msg)
    if "color_tolerance" in given and not any(options[name] for name in _SHADES):
        msg = (
            "--color-tolerance goes with --color-name, --color-hex or --palette, got it alone; "
            "leave it out"
        )
        raise InputError(msg)
    from searchlab.search.filters.photo_filter import PhotoFilter
    from searchlab.search.queries import Query

    return Query(
        filter=PhotoFilter(**{name: options[name] for name in _CONDITIONS}),
        **{name: options[name] for name in _ASKED},
    )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@click.command()
@data_option
def check(data: Path) -> None:
    """Read a whole library for damage.

    Every file of the state in force is compared with its checksum; then the databases are read:
    what was embedded, and accounts.
    """
    from searchlab.library.checking import check_library
    from searchlab.library.library import open_library

    for name in check_library(open_library(data)):
        click.echo(f"ok {name}")
