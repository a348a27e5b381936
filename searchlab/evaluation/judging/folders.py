"""The judgments of a task as a folder of one's own dataset, which `read_dataset` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from searchlab.errors import ConflictError, InputError
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.folders import DATASET_FILES, write_dataset
from searchlab.evaluation.judging.tasks import EYE, JudgingTask
from searchlab.library.dumps import origins_of
from searchlab.library.rows import UNKNOWN_LICENSE
from searchlab.photos.photo import Photo

if TYPE_CHECKING:
    from searchlab.library.library import Library


# Alternative texts are left out, for nearly all are made by the library.
_WRITTEN = (
    *("title", "source_description", "tags", "place", "uploaded_on", "license_type"),
    *("photographer_username", "photographer_full_name", "photographer_url", "source_image_url"),
)


class WrittenJudgments(NamedTuple):
    """What was written.

    Attributes:
        n_queries: Queries with a relevant photo.
        n_judgments: Judgments of these queries.
        n_dropped: Judged queries without a relevant photo, which no system could answer.
        n_gone: Photos of the library that are left out, as their files are not here.
        n_lost: Judgments left out of photos that are not in the library, or have no file here.
    """

    n_queries: int
    n_judgments: int
    n_dropped: int
    n_gone: int
    n_lost: int


def write_judgments(
    library: Library,
    task: JudgingTask,
    folder: Path,
    *,
    rule: str = "median",
    force: bool = False,
) -> WrittenJudgments:
    """Write the library's photos, the judged queries and their judgments into a folder.

    `searchlab evaluate --dataset FOLDER` and `searchlab calibrate FOLDER` read it. Photos keep
    their ids, titles, descriptions, tags, places in words, photographers, licences and days.

    Args:
        library: Library that the task is of; its pictures stay where they are.
        task: The task.
        folder: The folder, which is created if it does not exist.
        rule: How the grades of several judges become one; see `merge_grades`.
        force: Whether to replace a dataset that the folder holds.

    Raises:
        ConflictError: The folder holds a file of a dataset, which somebody may have written.
        InputError: No judged query has a relevant photo with a file on this machine, the dump of a
            photo cannot be reached, or queries ask for the source of photos that come by another.
    """
    there = [name for name in DATASET_FILES if (folder / name).exists()]
    if there and not force:
        msg = (
            f"{folder} must hold no {' and no '.join(there)}, which may be somebody's own; name "
            "another folder, or replace them with --force"
        )
        raise ConflictError(msg)
    table = library.engine.table
    known = table.photos(range(len(table)))
    photos = [photo for photo in known if photo.file and Path(photo.file).is_file()]
    on_disk = {photo.photo_id for photo in photos}
    every = task.qrels(rule)
    judged = {
        query_id: {photo: grade for photo, grade in grades.items() if photo in on_disk}
        for query_id, grades in every.items()
    }
    qrels = {
        query_id: grades for query_id, grades in judged.items() if max(grades.values(), default=0)
    }
    if not qrels:
        msg = (
            f"a query must have a relevant photo with a file here, got none in {task.name}; "
            "judge more of it, or export it as qrels"
        )
        raise InputError(msg)
    snapshot = library.snapshot()
    origins = origins_of(photos, () if snapshot is None else snapshot.roots)
    queries = [query for i, query in task.pool.queries.items() if i in qrels]
    moved = next((one for one in photos if origins[one.photo_id][0] != one.source), None)
    if moved is not None and any(query.filter.source for query in queries):
        msg = (
            f"queries must not ask for a source where photos come by another one, got "
            f"{moved.photo_id}, of {origins[moved.photo_id][0]} by {moved.source}; export as qrels"
        )
        raise InputError(msg)
    dataset = Dataset(
        name=task.name,
        revision=task.pool.pool_id,
        folder=folder,
        photos=None,
        queries=tuple(queries),
        qrels=qrels,
        records=tuple(_record_of(photo, *origins[photo.photo_id]) for photo in photos),
        origins={query_id: dict.fromkeys(grades, EYE) for query_id, grades in qrels.items()},
    )
    write_dataset(dataset, folder)
    return WrittenJudgments(
        n_queries=len(qrels),
        n_judgments=_count(qrels),
        n_dropped=len(judged) - len(qrels),
        n_gone=len(table) - len(photos),
        n_lost=_count(every) - _count(judged),
    )


def _count(qrels: Mapping[str, Mapping[str, int]]) -> int:
    return sum(map(len, qrels.values()))


def _record_of(photo: Photo, source: str, source_photo_id: str) -> dict[str, Any]:
    """Write what a record may say of a photo."""
    identity = {"file": photo.file, "source": source, "source_photo_id": source_photo_id}
    written = {name: getattr(photo, name) for name in _WRITTEN}
    if written["license_type"] == UNKNOWN_LICENSE:
        del written["license_type"]
    return identity | {name: value for name, value in written.items() if value}
