"""Sidecar records: what people know of their photos, one JSON object a line.

A line names its picture by `file`, relative to the JSONL file, and may set any field that cannot
be seen in the picture. A line that cannot be used is reported and skipped; the others still count.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from searchlab.errors import InputError, quote
from searchlab.photos.photo import day_number

SIDECAR_NAME = "photos.jsonl"
MAX_TEXT = 10_000
# Control characters can steer a terminal; lone surrogates cannot be stored.
_DROPPED = dict.fromkeys(
    [i for i in (*range(32), *range(127, 160)) if chr(i) not in "\t\n"] + [*range(0xD800, 0xE000)]
)

_NO_NAME = re.compile(r"[\0\ud800-\udfff]")


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
        source_photo_id: Identifier there; where it is empty, the picture's content identifies it.
        source_image_url: Page of the photo.
        title: The photo's own title, for the credit line.
        photographer_username: Login name.
        photographer_full_name: Name for display.
        photographer_url: Profile page.
        source_description: Caption by the library or photographer.
        alt_description: Accessibility text written by a person.
        license_type: Licence name.
        license_url: Text of the licence.
        copyright: The notice, for the credit line of a photo whose photographer is not known.
        uploaded_on: `YYYY-MM-DD`; the day of indexing if empty.
        tags: Keywords.
        place: Where it was taken, in words.
        latitude: Degrees, north positive; None where unknown, as is `longitude` then.
        longitude: Degrees, east positive.
        rating: Stars from 1 to 5; 0 for none, -1 for rejected.
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
    copyright: str = ""
    uploaded_on: str = ""
    tags: tuple[str, ...] = ()
    place: str = ""
    latitude: float | None = None
    longitude: float | None = None
    rating: int = 0


NO_RECORD: Final = Record()
_NAMES = tuple(field.name for field in fields(Record) if field.default == "")


def read_records(path: Path) -> Iterator[tuple[Path, Record] | Skipped]:
    """Read a sidecar file.

    Args:
        path: JSONL in UTF-8.

    Yields:
        The picture's absolute path and its record, or what is wrong with a line.

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
    # A file may be named with control characters, which are escaped where they are printed.
    if _NO_NAME.search(values["file"]):
        msg = f"file must be a path in Unicode without NUL, got {values['file']!a}"
        raise InputError(msg)
    texts = {name: _text(name, values.get(name)) for name in _NAMES}
    if texts["uploaded_on"]:
        day_number(texts["uploaded_on"], name="uploaded_on")
    latitude, longitude = _position(values.get("latitude"), values.get("longitude"))
    record = Record(
        **texts,
        tags=_tags(values.get("tags")),
        latitude=latitude,
        longitude=longitude,
        rating=_rating(values.get("rating")),
    )
    # Not resolve(): a link is known by its own name, as the walk over the folder finds it.
    return Path(os.path.normpath(folder.absolute() / values["file"])), record


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        msg = f"{name} must be text of at most {MAX_TEXT} characters, got {quote(value)}"
        raise InputError(msg)
    return plain_characters(value)


def _tags(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        msg = f"tags must be a list of texts, got {str(value)[:60]!r}"
        raise InputError(msg)
    return clean_tags(value)


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return keywords on one line each, every one once whatever its case, up to `MAX_TEXT` in all.

    >>> clean_tags(["Sea  side", "sea side", " ", "Strand"])
    ('Sea side', 'Strand')
    """
    distinct: dict[str, str] = {}
    length = 0
    for tag in tags:
        words = " ".join(plain_characters(tag[:MAX_TEXT]).split())
        if words and words.casefold() not in distinct:
            length += len(words) + 1
            if length > MAX_TEXT:
                break
            distinct[words.casefold()] = words
    return tuple(distinct.values())


def is_position(latitude: float, longitude: float) -> bool:
    """Whether two numbers are a place on Earth; 0 and 0 is what devices write that know none."""
    return -90 <= latitude <= 90 and -180 <= longitude <= 180 and (latitude, longitude) != (0, 0)


def _position(latitude: Any, longitude: Any) -> tuple[float | None, float | None]:
    if latitude is None and longitude is None:
        return None, None
    numbers = [n for n in (latitude, longitude) if type(n) in {int, float}]
    if len(numbers) != 2 or not is_position(numbers[0], numbers[1]):
        got = f"{str(latitude)[:30]} and {str(longitude)[:30]}"
        msg = f"latitude and longitude must both be degrees, and not both 0, got {got}"
        raise InputError(msg)
    return float(numbers[0]), float(numbers[1])


def _rating(value: Any) -> int:
    if value is None:
        return 0
    if type(value) is not int or not -1 <= value <= 5:
        msg = f"rating must be a whole number from -1 to 5, got {str(value)[:30]}"
        raise InputError(msg)
    return value
