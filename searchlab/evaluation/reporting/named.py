"""Finding a recorded result by what the last leaderboard called it: a name, a model, or a rank."""

from __future__ import annotations

from pathlib import Path

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.reports import load_report

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
    board = load_report(newest)
    if text.isdecimal() and 1 <= int(text) <= len(board.results):
        return board.results[int(text) - 1].path(folder)
    ways = (
        [
            one
            for one in board.results
            if text in (board.names[one.config_id], one.config_id, one.path(folder).stem)
        ],
        [one for one in board.results if one.config.model == text],
        [
            one
            for one in board.results
            if len(text) >= _LEAST_HASH and one.config_id.startswith(text)
        ],
        [
            one
            for one in board.results
            if len(text) >= _LEAST_PART and text.casefold() in one.name.casefold()
        ],
    )
    matches = next(filter(None, ways), [])
    if len(matches) == 1:
        return matches[0].path(folder)
    listed = "; ".join(
        f"{place} {board.names[one.config_id]} ({one.config_id})"
        for place, one in enumerate(board.results[:_LISTED], start=1)
    )
    why = f"{len(matches)} of them" if matches else "none of them"
    msg = (
        f"{text!r} must be a result of `searchlab evaluate`, or a place or name of the last "
        f"leaderboard, {newest}, got {why}: {listed}"
    )
    raise InputError(msg) if matches else NotFoundError(msg)


def _last_change(board: Path) -> float:
    return max((file.stat().st_mtime for file in board.glob("*.json")), default=0.0)
