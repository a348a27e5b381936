"""What was skipped, in as few lines as tell it: one a kind of file, and each photo by name."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from searchlab.errors import count
from searchlab.library.walk import HIDDEN_FILE, HIDDEN_FOLDER
from searchlab.photos.sidecar import Skipped

SHOWN: Final = 50
_PICTURES: Final = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".avif", ".heic", ".heif", ".hif", ".gif", ".tif", ".tiff")
)
# Reasons that are the same for all files of a kind, as people say them.
_OF_A_KIND: Final = {
    "not an image": "not a picture",
    "unsupported format": "pictures of a format that is not read",
    "no picture beside it has its name": "no picture beside them has their name",
}
# Of all kinds together: their names say nothing to those who did not hide them.
_HIDDEN: Final = {HIDDEN_FILE: "hidden file", HIDDEN_FOLDER: "hidden folder"}
_LINE: Final = re.compile(r"(.+):\d+", re.DOTALL)


def skipped_lines(problems: Sequence[Skipped], *, every: bool = False) -> list[str]:
    """Say what was skipped.

    Files of a kind that are no pictures share a line, as do the lines of one file that are left
    out for the same reason, and what is hidden. Photos, folders and single files are named.

    Args:
        problems: In the order of the answer.
        every: Name every one; else `SHOWN` lines at most, and how many more there are.

    >>> clips = [Skipped(f"/p/{n}.MOV", "not an image") for n in range(12)]
    >>> skipped_lines([*clips, Skipped("/p/1.jpg", "damaged")])
    ['12 files of kind .mov were skipped: not a picture', 'skipped /p/1.jpg: damaged']
    """
    groups: dict[tuple[str, ...], list[Skipped]] = {}
    for problem in problems:
        key = (problem.where, problem.reason) if every else _group(problem)
        groups.setdefault(key, []).append(problem)
    lines = [_line(group) for group in groups.values()]
    if every or len(lines) <= SHOWN:
        return lines
    left = sum(len(group) for group in [*groups.values()][SHOWN:])
    return [*lines[:SHOWN], f"... and {left:,} more; --verbose names all"]


def skipped_as_jsonl(problems: Sequence[Skipped]) -> str:
    """Write all that was skipped, each as a line of JSON with `where` and `reason`."""
    return "".join(
        json.dumps({"where": problem.where, "reason": problem.reason}) + "\n"
        for problem in problems
    )


def _group(problem: Skipped) -> tuple[str, ...]:
    if problem.reason in _HIDDEN:
        return ("hidden", problem.reason)
    suffix = PurePath(problem.where).suffix.lower()
    if problem.reason in _OF_A_KIND and suffix not in _PICTURES:
        return ("kind", suffix, problem.reason)
    if line := _LINE.fullmatch(problem.where):
        return ("line", line[1], problem.reason)
    return (problem.where, problem.reason)


def _line(group: Sequence[Skipped]) -> str:
    problem = group[0]
    where = problem.where.replace("\n", "\\n")
    if len(group) == 1:
        return f"skipped {where}: {problem.reason}"
    if problem.reason in _HIDDEN:
        what = count(len(group), _HIDDEN[problem.reason])
        return f"{what} were skipped: their names begin with a dot"
    if line := _LINE.fullmatch(where):
        return f"{count(len(group), 'line')} of {line[1]} were skipped: {problem.reason}"
    suffix = PurePath(where).suffix.lower()
    kind = f"of kind {suffix}" if suffix else "without a suffix"
    reason = _OF_A_KIND.get(problem.reason, problem.reason)
    return f"{count(len(group), 'file')} {kind} were skipped: {reason}"
