"""Look up one value in the files of results by a short reference.

    FILE.json[KEY=VALUE & KEY=VALUE] PATH

FILE is relative to the folder of results and may contain `*`; the conditions in brackets then
select one of the files. PATH is dotted; its keys may themselves contain dots, spaces and slashes.
An entry of a list is selected by its position (`rows.3`, `rows[3]`) or by a value of the entry
(`rows[ef=100]`). A TSV file is a list of its lines, and a cell `1 / 2.5` is a list of two numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchlab.errors import DataError, InputError

_REFERENCE = re.compile(r"(?P<file>\S+?\.(?:json|tsv))(?P<where>\[[^]]*])?(?:\s+(?P<path>\S.*))?\Z")
_SELECTOR = re.compile(r"\[([^]]*)]")
_POSITION = re.compile(r"(\d+)(?=[.[]|\Z)")


class Results:
    """A folder of results whose files are read once.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path | str) -> None:
        """Open a folder of results; files are read when they are needed.

        Args:
            folder: Folder, such as `results`.
        """
        self.folder = Path(folder)
        self._read: dict[Path, Any] = {}

    def values(self, path: Path) -> Any:
        """Return the contents of a JSON or TSV file.

        Raises:
            DataError: The file cannot be read.
        """
        if path not in self._read:
            try:
                text = path.read_text(encoding="utf-8")
                self._read[path] = _parse_tsv(text) if path.suffix == ".tsv" else json.loads(text)
            except (OSError, ValueError) as error:
                msg = f"{path} must be a file of results, got: {error}"
                raise DataError(msg) from error
        return self._read[path]

    def files(self, pattern: str, where: str = "") -> list[Path]:
        """Return the files that a pattern names, sorted.

        Args:
            pattern: Relative to the folder; may hold `*`.
            where: Conditions `KEY=VALUE & KEY=VALUE` on the file's values.
        """
        paths = sorted(self.folder.glob(pattern))
        return [path for path in paths if not where or _meets(self.values(path), where)]

    def file(self, pattern: str, where: str = "") -> Path:
        """Return the one file that a pattern names.

        Raises:
            InputError: There is none, or more than one.
        """
        paths = self.files(pattern, where)
        if len(paths) != 1:
            names = ", ".join(path.relative_to(self.folder).as_posix() for path in paths) or "none"
            name = f"{pattern}[{where}]" if where else pattern
            msg = f"{name} must name one file of {self.folder}, got {names}"
            raise InputError(msg)
        return paths[0]

    def find(self, reference: str) -> Any:
        """Return the value that a reference names.

        Raises:
            InputError: The reference is malformed, or names nothing or more than one value.
            DataError: The file cannot be read.
        """
        parts = _REFERENCE.match(" ".join(reference.split()))
        if parts is None:
            msg = f"a reference must be FILE.json PATH, got {reference!r}"
            raise InputError(msg)
        path = self.file(parts["file"], (parts["where"] or "")[1:-1])
        return pick(self.values(path), parts["path"] or ".", what=path.name)


def pick(values: Any, path: str, *, what: str = "the values") -> Any:
    """Return the value at a dotted path in plain values.

    Args:
        values: Contents of a JSON file.
        path: Dotted path; `.` is the whole.
        what: Name of the values in messages.

    Raises:
        InputError: There is no value at the path, or the path can be read in two ways.

    Example:
        >>> pick({"rows": [{"ef": 10, "r@1": 0.5}, {"ef": 20, "r@1": 0.75}]}, "rows[ef=20].r@1")
        0.75
    """
    readings = list(_readings(values, "" if path == "." else path))
    if len(readings) != 1:
        how_many = (
            f"{len(readings)} readings" if readings else f"nothing; {_say_how_far(values, path)}"
        )
        msg = f"{path!r} must name one value of {what}, got {how_many}"
        raise InputError(msg)
    return readings[0]


def interval_of(value: Any) -> Any:
    """Return [mean, low, high] of an interval in either of its two notations; else the value."""
    if isinstance(value, Mapping) and {"mean", "low", "high"} <= value.keys():
        return [value["mean"], value["low"], value["high"]]
    if isinstance(value, Mapping) and {"mean", "interval"} <= value.keys():
        return [value["mean"], *value["interval"]]
    return value


def _parse_tsv(text: str) -> list[dict[str, Any]]:
    head, *lines = (line.split("\t") for line in text.splitlines())
    return [{name: _cell(cell) for name, cell in zip(head, line, strict=False)} for line in lines]


def _cell(text: str) -> Any:
    try:
        numbers = [float(part) for part in text.split(" / ")]
    except ValueError:
        return text
    return numbers if len(numbers) > 1 else numbers[0]


def _readings(values: Any, path: str) -> Iterator[Any]:
    if not path:
        yield values
    elif isinstance(values, Mapping):
        for key, value in values.items():
            rest = path[len(key) :]
            if path.startswith(key) and (not rest or rest[0] in ".["):
                yield from _readings(value, rest.removeprefix("."))
    elif isinstance(values, list):
        step = _POSITION.match(path) or _SELECTOR.match(path)
        if step is not None:
            for value in _entries(values, step[1]):
                yield from _readings(value, path[step.end() :].removeprefix("."))


def _entries(values: list[Any], where: str) -> list[Any]:
    if where.isdecimal():
        return values[int(where) : int(where) + 1]
    return [value for value in values if _meets(value, where)]


def _meets(values: Any, where: str) -> bool:
    for condition in where.split("&"):
        key, _, expected = condition.partition("=")
        readings = list(_readings(values, key.strip()))
        if len(readings) != 1 or not _same(readings[0], expected.strip()):
            return False
    return True


def _same(value: Any, expected: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value) == expected
    try:
        return float(expected) == value
    except ValueError:
        return False


def _say_how_far(values: Any, path: str) -> str:
    """Say how far a path is valid, and which keys follow there."""
    for end in range(len(path), 0, -1):
        readings = list(_readings(values, path[:end]))
        if len(readings) == 1 and (end == len(path) or path[end] in ".["):
            return f"{path[:end]!r} has {_contents(readings[0])}"
    return f"there is {_contents(values)}"


def _contents(values: Any) -> str:
    if isinstance(values, Mapping):
        return ", ".join(values) or "no key"
    if isinstance(values, list):
        return f"{len(values)} entries"
    return f"the value {values!r}"
