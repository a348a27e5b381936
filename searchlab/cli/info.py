"""The command that says what a library holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.cli.options import data_option, stdout
from searchlab.errors import count

if TYPE_CHECKING:
    from searchlab.library.info import LibraryInfo

_SHOWN = 8


@click.command()
@data_option
@click.option("-v", "--verbose", is_flag=True, help="Name every file that was skipped.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def info(data: Path, verbose: bool, as_json: bool) -> None:
    """Say what a library holds: photos, model, sizes, problems."""
    from searchlab.cli.console import print_plain
    from searchlab.library.info import describe_library
    from searchlab.library.library import open_library

    library = describe_library(open_library(data))
    if as_json:
        click.echo(json.dumps(library.to_dict(), ensure_ascii=False, indent=2))
        return
    out, label = stdout(), ""
    for name, text in _lines(library, every=verbose):
        print_plain(out, f"{'' if name == label else name:<13}{text}")
        label = name


def _lines(library: LibraryInfo, *, every: bool) -> Iterator[tuple[str, str]]:
    yield "library", library.folder
    days = f"{library.first_day} to {library.last_day}"
    yield "photos", f"{library.n_photos:,}, uploaded {days}"
    for root in library.roots:
        source = f" of {root.source}" if root.source else ""
        away = "" if root.is_there else ", cannot be reached now"
        yield "folders", f"{root.place}: {count(root.n_photos, 'photo')}{source}{away}"
    yield "sources", _counted(library.sources)
    yield "licences", _counted(library.licenses)
    yield "written", _counted(library.written)
    shares = {name: f"{share:.0%}" for name, share in library.languages.items() if share >= 0.01}
    yield "languages", ", ".join(f"{name} {share}" for name, share in shares.items())
    yield "usernames", f"{library.photographers:,} of photographers"
    yield "model", f"{library.model} ({library.model_id})"
    yield "index", library.index
    yield "config", library.config_id
    yield "snapshot", f"{library.snapshot_id}, {library.snapshots} on disk"
    yield "made", library.created_at
    yield "last indexed", library.indexed_at or "not known; `searchlab index` notes it"
    sizes = {part: _readable(size) for part, size in library.sizes.items()}
    total = sizes.pop("total")
    yield "on disk", f"{total}: {', '.join(f'{part} {size}' for part, size in sizes.items())}"
    yield from _problems(library, every=every)


def _problems(library: LibraryInfo, *, every: bool) -> Iterator[tuple[str, str]]:
    from searchlab.cli.skipped import skipped_lines

    for place in library.missing:
        yield "problems", f"{place} showed no photo when it was indexed last; its photos are kept"
    for line in skipped_lines(library.problems, every=every):
        yield "problems", line
    if not library.missing and not library.problems:
        yield "problems", "none"


def _counted(counts: Mapping[str, int]) -> str:
    shown = [f"{name} {number:,}" for name, number in list(counts.items())[:_SHOWN]]
    rest = len(counts) - len(shown)
    return ", ".join([*shown, *([f"and {rest:,} more"] if rest else [])])


def _readable(size: int) -> str:
    """Write a number of bytes with three digits or so.

    >>> _readable(999), _readable(4_300_000), _readable(20 * 2**30)
    ('999 B', '4.1 MiB', '20 GiB')
    """
    number, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1_000 or unit == "TiB":
            break
        number /= 1_024
    return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"
