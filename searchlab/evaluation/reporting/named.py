"""Finding a recorded result by what the last leaderboard called it: a name, a model, or a rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchlab.errors import InputError, NotFoundError, quote
from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.file_names import result_stem
from searchlab.evaluation.reports import Report, load_report
from searchlab.evaluation.results import Result, load_result
from searchlab.files import write_atomically

PRINTED = "last-leaderboard.txt"
"""File in a folder of results: those of the leaderboard that was printed last, best first."""

_LEAST_HASH = 4
_LEAST_PART = 3
_LISTED = 12


def find_result(named: Path | str, folder: Path) -> Path:
    """Return the file of a result.

    Args:
        named: A file; or a system of the leaderboard that was measured last in the folder, by its
            place (`2`), its name, its model (`mini`), its file's name (`mini-exact-3b46c8f38ff9`),
            or the beginning of its hash.
        folder: Folder of results.

    Returns:
        The file of the result; a path to a file as it was given, whether it is there or not.

    Raises:
        NotFoundError: No system of that leaderboard is called so.
        InputError: Several are.
        DataError: A result of it is damaged.
    """
    text, path = str(named), Path(named)
    boards = {scores.parent for scores in folder.glob("*/*/*.scores.tsv")}
    if path.suffix == ".json" or path.is_file() or not boards:
        return path
    newest = max(boards, key=_last_change)
    whole = load_report(newest)
    printed = _read_printed(folder, since=_last_change(newest))
    board = whole if printed is None else Report(printed)
    results = printed or board.results
    if text.isdecimal() and 1 <= int(text) <= len(results):
        return results[int(text) - 1].path(folder)
    matches = _called(text, board) or _called(text, whole)
    if len(matches) == 1:
        return matches[0].path(folder)
    listed = _list(results, board)
    why = f"{len(matches)} of them" if matches else "none of them"
    msg = (
        f"{text!r} must be a result of `searchlab evaluate`, or a place or name of the last "
        f"leaderboard, {newest}, got {why}: {listed}"
    )
    raise InputError(msg) if matches else NotFoundError(msg)


def find_system(named: str, board: Comparison) -> Result:
    """Return the result of a comparison that a name, a model, or the beginning of a hash means.

    Raises:
        NotFoundError: None is called so.
        InputError: Several are.
    """
    matches = _called(named, board)
    if len(matches) == 1:
        return matches[0]
    why = f"{len(matches)} of them" if matches else "none of them"
    listed = _list(board.results, board)
    msg = f"{quote(named)} must be a system of this leaderboard, got {why}: {listed}"
    raise InputError(msg) if matches else NotFoundError(msg)


def remember_printed(report: Report, folder: Path) -> None:
    """Write down which systems a leaderboard had, so that places are those that were read there.

    A folder may hold more results that can be compared with them, which were measured before.
    """
    paths = [one.path(folder).relative_to(folder).as_posix() for one in report.results]
    write_atomically(folder / PRINTED, "".join(f"{path}\n" for path in paths).encode())


def _read_printed(folder: Path, *, since: float) -> list[Result] | None:
    """Read the systems of the last printed leaderboard; None if more was measured since then."""
    file = folder / PRINTED
    if not file.is_file() or file.stat().st_mtime < since:
        return None
    paths = [folder / line for line in file.read_text(encoding="utf-8").splitlines()]
    return [load_result(path) for path in paths] if all(map(Path.is_file, paths)) else None


def _called(text: str, board: Comparison) -> list[Result]:
    """Return the results that a text names, by the first way in which it names any."""
    results = board.results
    long = len(text) >= _LEAST_HASH
    ways = (
        [
            one
            for one in results
            if text in (board.names[one.config_id], one.config_id, result_stem(one.config))
        ],
        [one for one in results if one.config.model == text],
        [one for one in results if long and one.config_id.startswith(text)],
        [
            one
            for one in results
            if len(text) >= _LEAST_PART and text.casefold() in one.name.casefold()
        ],
    )
    return next(filter(None, ways), [])


def _list(results: Sequence[Result], board: Comparison) -> str:
    return "; ".join(
        f"{place} {board.names[one.config_id]} ({one.config_id})"
        for place, one in enumerate(results[:_LISTED], start=1)
    )


def _last_change(board: Path) -> float:
    return max((file.stat().st_mtime for file in board.glob("*.json")), default=0.0)
