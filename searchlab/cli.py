"""The command line: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from searchlab import __version__
from searchlab.errors import InputError, NotFoundError, SearchlabError

if TYPE_CHECKING:
    from rich.console import Console

    from searchlab.queries import Query

_EXISTING_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_data = click.option(
    "--data",
    type=_FOLDER,
    default=Path("searchlab-data"),
    envvar="SEARCHLAB_DATA",
    show_default=True,
    help="Folder of the library.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="searchlab")
def searchlab() -> None:
    """Search stock photos by meaning, compare models on judged photos, put the best in force."""


@searchlab.command()
@click.option(
    "--data",
    type=_FOLDER,
    default=Path("searchlab-demo"),
    show_default=True,
    help="Folder of the demo's own library.",
)
@click.option("--force", is_flag=True, help="Evaluate again what is recorded already.")
def demo(data: Path, force: bool) -> None:
    """Index the bundled photos, compare models on bundled judgments, promote the winner."""
    from searchlab.demo import run_demo

    run_demo(data, force=force, out=_stdout(), log=_stderr())


@searchlab.command()
@click.argument("folders", nargs=-1, type=_FOLDER)
@_data
@click.option(
    "--records", type=_EXISTING_FILE, help="Sidecar JSONL; photos.jsonl is found by itself."
)
@click.option("--source", default="", help="Library name of these photos; local if not given.")
@click.option("--model", help="Embedding model, such as mini or hybrid:mini=0.7,captions=0.3.")
@click.option("--config", "config_file", type=_EXISTING_FILE, help="A chosen configuration.")
@click.option("--forget", multiple=True, type=_FOLDER, help="Cover this folder no more.")
@click.option("--rebuild", is_flag=True, help="Build the snapshot anew; nothing is embedded twice.")
@click.option("--prune", is_flag=True, help="Drop what is kept of contents that no snapshot has.")
def index(folders: tuple[Path, ...], data: Path, **options: Any) -> None:
    """Index folders of photos; run again to take in what has changed."""
    from searchlab.config import Config
    from searchlab.console import ConsoleProgress, print_report
    from searchlab.ingest import index_photos
    from searchlab.library import create_library
    from searchlab.models import load_model
    from searchlab.pruning import prune
    from searchlab.scan import check_root

    if options["records"] is not None and len(folders) != 1:
        msg = f"--records goes with exactly one folder, got {len(folders)}"
        raise InputError(msg)
    roots = [
        check_root(folder, records=options["records"], source=options["source"])
        for folder in folders
    ]
    config = None if options["config_file"] is None else Config.load(options["config_file"])
    if options["model"] is not None:
        load_model(options["model"])  # a misspelt one leaves no empty library behind
    library = create_library(data)
    log = _stderr()
    report = index_photos(
        library,
        roots,
        config=config,
        model=options["model"],
        forget=options["forget"],
        rebuild=options["rebuild"],
        progress=ConsoleProgress(log),
    )
    if options["prune"]:
        prune(library)
    print_report(report, _stdout())


@searchlab.command()
@click.argument("text", required=False)
@_data
@click.option("--image", type=_EXISTING_FILE, help="Search by this picture.")
@click.option("--photo-id", help="Search by this indexed photo.")
@click.option(
    "--text-alpha", type=float, default=1.7, show_default=True, help="Text beside a picture."
)
@click.option("--color-name", help="A colour family, such as teal.")
@click.option("--color-hex", help="A shade, such as #1f6f8b.")
@click.option("--color-tolerance", type=int, default=20, show_default=True)
@click.option("--orientation", multiple=True, help="landscape, portrait, square; repeatable.")
@click.option("--source", multiple=True, help="Library; repeatable.")
@click.option("--license-type", multiple=True, help="Licence; repeatable.")
@click.option("--photographer", help="Exact username.")
@click.option("--after-date", help="YYYY-MM-DD, that day and later.")
@click.option("--sort-by", default="relevance", show_default=True, help="relevance or newest.")
@click.option("--score-threshold", type=float, help="Least score, 0 to 1.")
@click.option("--limit", type=int, help="Most results over all pages, 1 to 100.")
@click.option("--per-page", type=int, default=10, show_default=True)
@click.option("--cursor", help="next_cursor of the page before, from --json.")
@click.option("--fields", help="Comma-separated fields for --json.")
@click.option("--plan", is_flag=True, help="Explain how the query is answered.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
@click.option("--html", type=_EXISTING_FILE, help="Also write the results as a page of pictures.")
def search(data: Path, **options: Any) -> None:
    """Search by words in any language, by a picture, by filters, or by all of them."""
    from searchlab.console import print_page
    from searchlab.library import open_library
    from searchlab.photos import check_fields

    fields = None
    if options["fields"] is not None:
        fields = [name.strip() for name in options["fields"].split(",")]
        check_fields(fields)
    library = open_library(data)
    query = None if options["cursor"] else _query(options)
    page = library.search(query, per_page=options["per_page"], cursor=options["cursor"])
    if options["html"] is not None:
        from searchlab.display import page_html

        body = page_html(page, title=options["text"] or "")
        _write(options["html"], f'<!doctype html><meta charset="utf-8">{body}')
    if options["as_json"]:
        answer = {
            "data": [hit.to_dict(fields) for hit in page],
            "pagination": {
                "per_page": page.per_page,
                "has_more": page.has_more,
                "next_cursor": page.next_cursor,
            },
        }
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    out = _stdout()
    if options["plan"]:
        out.print(page.plan.explain(), markup=False, highlight=False, soft_wrap=True)
    if not page.hits:
        out.print("no photo meets all conditions")
        return
    print_page(page, out)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"{path} must be a file that can be written, got: {error.strerror}"
        raise InputError(msg) from error


def _query(options: dict[str, Any]) -> Query:
    from searchlab.filters import PhotoFilter
    from searchlab.queries import Query

    colors = ["color_name", "color_hex", "color_tolerance"]
    conditions = [*colors, "orientation", "source", "license_type", "photographer", "after_date"]
    names = ["text", "image", "photo_id", "text_alpha", "sort_by", "score_threshold", "limit"]
    return Query(
        filter=PhotoFilter(**{name: options[name] for name in conditions}),
        **{name: options[name] for name in names},
    )


@searchlab.command()
@_data
def check(data: Path) -> None:
    """Read the whole library and compare every file with its checksum."""
    from searchlab.library import open_library

    library = open_library(data)
    for name in library.check():
        click.echo(f"ok {name}")


@searchlab.group()
def models() -> None:
    """Embedding models."""


@models.command("list")
def list_models() -> None:
    """List the kinds of models and how to name them."""
    import inspect

    from searchlab import models as package

    click.echo(inspect.getdoc(package))


@models.command("export")
@click.argument("spec")
@click.argument("folder", type=_FOLDER)
@click.option("--int8/--no-int8", default=True, show_default=True)
def export_model(spec: str, folder: Path, int8: bool) -> None:
    """Export an open_clip model to ONNX, fp32 and int8, and measure the agreement."""
    from searchlab.models.export import export_onnx

    click.echo(str(export_onnx(spec, folder, int8=int8)))


def _stdout() -> Console:
    from rich.console import Console

    return Console()


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def main() -> None:
    """Run the command line; an error is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        searchlab(standalone_mode=False)
    except click.exceptions.Abort:
        _stop("interrupted; what was finished is kept, the same command goes on from there", 130)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _stop(f"{error.format_message()} (see --help)", 2)
    except (InputError, NotFoundError) as error:
        _stop(str(error), 2)
    except SearchlabError as error:
        _stop(str(error), 1)
    except BrokenPipeError:  # whoever read has seen enough
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # a full disk, a file system that cannot be written
        _stop(f"{error.filename or 'the system'}: {error.strerror or error}", 1)


def _stop(message: str, code: int) -> None:
    click.echo(f"searchlab: {message}", err=True)
    sys.exit(code)
