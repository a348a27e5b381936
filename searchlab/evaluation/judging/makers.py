"""Who made a judging task, and what becomes of it when the account that made it is closed.

Others judge a task, so it stays; the name of its maker goes. An account is known by its number,
which no other gets, as another account may be given its name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from searchlab.evaluation.judging.tasks import COMMAND_LINE, FOLDER, JudgingTask, list_tasks
from searchlab.files import write_atomically


def is_made_by(task: JudgingTask, owner: str, name: str) -> bool:
    """Say whether an account made a task.

    Args:
        task: The task.
        owner: The account's number.
        name: The account's name, by which tasks are known that were made before they kept a number.
    """
    return _is_by(task.owner, task.made_by, owner, name)


def list_made(library: Path, owner: str, name: str) -> list[dict[str, Any]]:
    """Return what an account wrote of the tasks that it made: their titles and queries.

    Args:
        library: The library's folder.
        owner: The account's number.
        name: The account's name.
    """
    return [
        {"task": path.parent.name}
        | {field: values.get(field) for field in ("title", "made_at", "queries")}
        for path, values in _read_made(library, owner, name)
    ]


def forget_maker(library: Path, owner: str, name: str) -> None:
    """Take name and number of an account off the tasks that it made; nothing else of them changes.

    Args:
        library: The library's folder.
        owner: The account's number.
        name: The account's name.
    """
    for path, values in _read_made(library, owner, name):
        nobodys = values | {"made_by": "", "owner": ""}
        with suppress(FileNotFoundError):  # deleted just now
            made_ns = path.stat().st_mtime_ns  # tasks are listed by it
            write_atomically(path, json.dumps(nobodys, ensure_ascii=False).encode())
            os.utime(path, ns=(made_ns, made_ns))


def _read_made(library: Path, owner: str, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for task in list_tasks(library):
        path = library / FOLDER / task / "task.json"
        try:
            values = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue  # deleted just now, or so damaged that no page opens it
        if isinstance(values, dict) and _is_by(
            values.get("owner", ""), values.get("made_by", ""), owner, name
        ):
            yield path, values


def _is_by(made_owner: str, made_by: str, owner: str, name: str) -> bool:
    if made_owner:
        return made_owner == owner
    return made_by == name != COMMAND_LINE  # an account may have that name, too
