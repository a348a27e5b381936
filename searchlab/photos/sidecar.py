"""Sidecar records: what people know of their photos, one JSON object a line.

A line names its picture by `file`, relative to the JSONL file, and may set any field that cannot
be seen in the picture. A line that cannot be used is reported and skipped; it stops nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from searchlab.errors import InputError
from searchlab.photos.photo import day_number

SIDECAR_NAME = "photos.jsonl"
MAX_TEXT = 10_000
# Control characters can steer a terminal; lone surrogates cannot be stored.
_DROPPED = dict.fromkeys(
    [i for i in (*range(32), *range(127, 160)) if chr(i) not in "\t\n"] + [*range(0xD800, 0xE000)]
)


def plain_characters(text: str) -> str:
    """Return a text without control characters, lone surrogates and blanks around it."""
    return text.translate(_DROPPED).strip()


@dataclass(frozen=True)
class Skipped:
    """Something that was skipped.

    Attributes:
        where: The file, or the file and line.
        reason: Why, in a few words.
    """

    where: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What a sidecar line says of a picture; empty where it says nothing.

    Attributes:
        source: Upstream library.
        source_photo_id: Identifier there; the picture's content identifies it if empty.
        source_image_url: Page of the photo.
        title: The photo's own title, for the credit line.
        photographer_username: Login name.
        photographer_full_name: Name for display.
        photographer_url: Profile page.
        source_description: Caption by the library or photographer.
        alt_description: Accessibility text written by a person.
        license_type: Licence name.
        license_url: Text of the licence.
        uploaded_on: `YYYY-MM-DD`; the day of indexing if empty.
    """

    source: str = ""
    source_photo_id: str = ""
    source_image_url: str = ""
    title: str = ""
    photographer_username: str = ""
    photographer_full_name: str = ""
    photographer_url: str = ""
    source_description: str = ""
    alt_description: str = ""
    license_type: str = ""
    license_url: str = ""
    uploaded_on: str = ""


_NAMES = tuple(field.name for field in fields(Record))


def read_records(path: Path) -> Iterator[tuple[Path, Record] | Skipped]:
    """Read a sidecar file.

    Args:
        path: JSONL in UTF-8.

    Yields:
        The picture's absolute path and what is said of it, or what is wrong with a line.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    try:
                        yield _record(line, path.parent)
                    except (ValueError, TypeError) as error:
                        yield Skipped(f"{path}:{number}", str(error))
    except OSError as error:
        msg = f"records must be a readable JSONL file, got {path}: {error.strerror}"
        raise InputError(msg) from error


def _record(line: bytes, folder: Path) -> tuple[Path, Record]:
    try:
        values: Any = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"a record must be one JSON object; {error}"
        raise InputError(msg) from error
    if (
        not isinstance(values, dict)
        or not isinstance(values.get("file"), str)
        or not values["file"]
    ):
        msg = "a record must be a JSON object with a file name under 'file'"
        raise InputError(msg)
    if any(ord(character) in _DROPPED for character in values["file"]):
        msg = f"file must be a path without control characters, got {values['file']!a}"
        raise InputError(msg)
    values_by_name = {name: _text(name, values.get(name)) for name in _NAMES}
    if values_by_name["uploaded_on"]:
        day_number(values_by_name["uploaded_on"], name="uploaded_on")
    # Not resolve(): a link is known by its own name, as the walk over the folder finds it.
    return Path(os.path.normpath(folder.absolute() / values["file"])), Record(**values_by_name)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        msg = f"{name} must be text of at most {MAX_TEXT} characters, got {str(value)[:60]!r}"
        raise InputError(msg)
    return plain_characters(value)
