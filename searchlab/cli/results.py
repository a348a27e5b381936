"""Results of a search: a line each, all that is known of each, paths, JSON, or a page of pictures.

What is printed for a terminal is made for eyes; what goes into a pipe is whole and has no links.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_url

import click
from rich.console import Console
from rich.style import Style
from rich.text import Text

from searchlab.cli.console import escape, print_plain
from searchlab.cli.graphics import choose_protocol, draw
from searchlab.cli.options import stderr, stdout, write_text
from searchlab.errors import InputError, NotFoundError, count
from searchlab.files import write_atomically
from searchlab.library.library import Library
from searchlab.photos.photo import OWNERS_FIELDS, PHOTO_FIELDS
from searchlab.search.hits import Hit
from searchlab.search.queries import Page

_FILE = "file"
_FIELDS = (*PHOTO_FIELDS, "title", *OWNERS_FIELDS)
_SHEET = "search.html"
_LEAST_CAPTION = 16


@dataclass(frozen=True)
class Output:
    """How results are shown.

    Attributes:
        form: `lines`, `details`, `paths` or `json`.
        ending: What follows each path: a line break or a NUL.
        fields: Fields of the JSON; all if None.
        html: File for the page of pictures, if one is to be written.
        is_opened: Whether the page of pictures is opened in the browser.
        has_files: Whether paths, places and keywords of the photos may be shown.
        thumbnails: `auto`, `never` or a protocol of terminals.
        has_plan: Whether the plan is explained.
    """

    form: str
    ending: bytes
    fields: tuple[str, ...] | None
    html: Path | None
    is_opened: bool
    has_files: bool
    thumbnails: str
    has_plan: bool


def check_output(options: Mapping[str, Any]) -> Output:
    """Read `output_options`.

    Raises:
        InputError: Options that contradict each other, or an unknown field.
    """
    paths = "--paths" if options["paths"] else "-0"
    forms = {
        "--verbose": ("details", options["verbose"]),
        paths: ("paths", options["paths"] or options["null"]),
        "--json": ("json", options["as_json"]),
    }
    chosen = [name for name, (_, is_set) in forms.items() if is_set]
    if len(chosen) > 1:
        msg = f"results can be printed in one form, got {' and '.join(chosen)}; keep one"
        raise InputError(msg)
    form = forms[chosen[0]][0] if chosen else "lines"
    if options["fields"] is not None and form != "json":
        msg = "--fields goes with --json, got it without; add --json"
        raise InputError(msg)
    fields = None if options["fields"] is None else _read_fields(options["fields"])
    private = [name for name in OWNERS_FIELDS if name in (fields or ())]
    if options["share"] and (form == "paths" or private):
        which = paths if form == "paths" else f"the field {private[0]}"
        msg = f"--share leaves out files, places and keywords, got {which} too; keep one"
        raise InputError(msg)
    return Output(
        form=form,
        ending=b"\0" if options["null"] else b"\n",
        fields=fields,
        html=options["html"],
        is_opened=options["opened"],
        has_files=not options["share"],
        thumbnails=options["thumbnails"],
        has_plan=options["plan"],
    )


def _read_fields(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    unknown = sorted({*names} - {*_FIELDS})
    if unknown:
        msg = f"fields must be names among {', '.join(_FIELDS)}, got {unknown}"
        raise InputError(msg)
    return tuple(name for name in _FIELDS if name in names)


def show_page(page: Page, output: Output, library: Library) -> None:
    """Print a page of results, and write and open it as pictures where that is asked for.

    Raises:
        InputError: The file of `--html` cannot be written.
        NotFoundError: There is no browser to open it in.
    """
    sheet = _write_sheet(page, output, library)
    out = stdout()
    if output.has_plan:
        print_plain(stderr() if output.form in ("json", "paths") else out, page.plan.explain())
    if output.form == "json":
        click.echo(json.dumps(_answer(page, output), ensure_ascii=False, indent=2))
    elif output.form == "paths":
        _print_paths(page, output.ending)
    elif not page.hits:
        print_plain(out, _explain_nothing(page))
    else:
        _print_hits(page, out, output)
    if sheet is not None and output.is_opened:
        _open(sheet)


def _answer(page: Page, output: Output) -> dict[str, Any]:
    return {
        "data": [_record(hit, output) for hit in page],
        "pagination": {
            "per_page": page.per_page,
            "total": page.total,
            "has_more": page.has_more,
            "next_cursor": page.next_cursor,
        },
    }


def _record(hit: Hit, output: Output) -> dict[str, Any]:
    fields = output.fields
    names = None if fields is None else [name for name in fields if name in PHOTO_FIELDS]
    record = hit.to_dict(names)
    # What is the owner's is shown where it is named; the file without that too.
    for name in (_FILE,) if fields is None and output.has_files else fields or ():
        if name not in PHOTO_FIELDS:
            value = getattr(hit.photo, name)
            record[name] = None if value == "" else value
    return record


def _print_paths(page: Page, ending: bytes) -> None:
    is_seen = stdout().file.isatty()
    files = [hit.file for hit in page if hit.file is not None]
    for file in files:
        # In a pipe the bytes of the name, whatever the encoding of the terminal.
        name = (
            escape(str(file)).encode(sys.stdout.encoding, "backslashreplace")
            if is_seen
            else os.fsencode(file)
        )
        click.echo(name + ending, nl=False)
    if not page.hits:
        print_plain(stderr(), _explain_nothing(page))
    elif len(files) < len(page):
        n_without = len(page) - len(files)
        print_plain(stderr(), f"{count(n_without, 'result')} without a file on this machine")


def _explain_nothing(page: Page) -> str:
    if not page.plan.n_allowed:
        return "no photo meets all conditions"
    if page.plan.newest_score is not None:
        least = f"{page.plan.newest_score:g} or more, as all do that are shown by date"
        return f"no photo scores {least}; --score-threshold 0 shows all"
    return "no photo scores as high as --score-threshold asks"


def _print_hits(page: Page, out: Console, output: Output) -> None:
    is_seen = out.file.isatty()
    protocol = choose_protocol(output.thumbnails) if is_seen else None
    digits = len(str(page.start + len(page) - 1))
    for place, hit in enumerate(page, start=page.start):
        head = f"{place:>{digits}}  {hit.relevance_score:.2f}  "
        if output.form == "details":
            _print_details(head, hit, out, has_files=output.has_files)
        else:
            line = _line(head, hit, has_files=output.has_files, width=out.width if is_seen else 0)
            out.print(line, highlight=False, soft_wrap=True)
        if protocol is not None and hit.thumbnail is not None:
            draw(hit.thumbnail, protocol, out, indent=digits + 2)
    if is_seen:
        more = ""
        if page.has_more and (page.start - 1) % page.per_page == 0:
            more = f"; more with --page {(page.start - 1) // page.per_page + 2}"
        print_plain(out, f"{page.extent}{more}")


def _line(head: str, hit: Hit, *, has_files: bool, width: int) -> Text:
    """Write a result on one line.

    Args:
        head: Place and score.
        hit: The result.
        has_files: Whether its path is shown.
        width: Columns of the terminal, 0 for a pipe. Only what is written about a photo is cut.
    """
    file = hit.file if has_files else None
    caption = Text(escape(" ".join(hit.caption.split())))
    line = Text(head)
    if file is None:
        line.append(hit.photo.source_image_url or hit.photo.photo_id)
    else:
        line.append(_shown(file, is_seen=width > 0), style=_link(file) if width else "")
    line.append("  ")
    if width:
        # What is left of the terminal's row, or of the next one after a long path.
        room = -line.cell_len % width
        caption.truncate(room if room >= _LEAST_CAPTION else room + width, overflow="ellipsis")
    return line.append_text(caption)


def _shown(file: Path, *, is_seen: bool) -> str:
    here = Path.cwd()
    if is_seen and file.is_relative_to(here):
        return escape(str(file.relative_to(here)))
    return escape(str(file))


def _link(file: Path) -> Style:
    # With the host's name, so that a terminal on another machine does not look on its own disk.
    return Style(link=f"file://{socket.gethostname()}{quote_url(os.fsencode(file))}")


def _print_details(head: str, hit: Hit, out: Console, *, has_files: bool) -> None:
    photo = hit.photo
    line = Text(head).append_text(_bar(hit.relevance_score)).append("  ").append_text(_chip(hit))
    out.print(line.append(f"  {escape(hit.caption)}"), highlight=False, soft_wrap=True)
    lines = [
        ("credit", photo.attribution["plain"]),
        ("photo", str(hit.file) if has_files and hit.file else photo.source_image_url),
        ("thumbnail", str(hit.thumbnail) if has_files and hit.thumbnail else ""),
        ("place", photo.place if has_files else ""),
        ("tags", ", ".join(photo.tags) if has_files else ""),
        ("photo_id", photo.photo_id),
    ]
    for name, value in lines:
        if value:
            print_plain(out, f"     {name:9}  {escape(value)}")


def _bar(score: float) -> Text:
    filled = round(8 * score)
    return Text("█" * filled + "░" * (8 - filled))


def _chip(hit: Hit) -> Text:
    chip = Text("  ", style=f"on {hit.photo.color_hex}")
    return chip.append(f" {hit.photo.color_name}", style="not on default")


def _write_sheet(page: Page, output: Output, library: Library) -> Path | None:
    if output.html is None and not output.is_opened:
        return None
    text = page.to_html(files=output.has_files, document=True)
    if output.html is not None:
        write_text(output.html, text)
        return output.html.resolve()
    # Not among temporary files, which a browser in a sandbox cannot read.
    sheet = library.folder / _SHEET
    write_atomically(sheet, text.encode(), mode=0o600)
    return sheet


def _open(sheet: Path) -> None:
    if not webbrowser.open(sheet.as_uri()):
        msg = (
            f"--open must find a browser, got none on this machine; open {sheet} elsewhere, or "
            "name one in the variable BROWSER"
        )
        raise NotFoundError(msg)
