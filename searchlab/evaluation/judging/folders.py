"""The judgments of a task as a folder of one's own dataset, which `read_dataset` reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from searchlab.errors import InputError
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.folders import write_dataset
from searchlab.evaluation.judging.tasks import EYE, JudgingTask

if TYPE_CHECKING:
    from searchlab.library.library import Library


class WrittenJudgments(NamedTuple):
    """What was written.

    Attributes:
        n_queries: Queries with a relevant photo.
        n_judgments: Judgments of these queries.
        n_dropped: Judged queries without a relevant photo, which no system could answer.
    """

    n_queries: int
    n_judgments: int
    n_dropped: int


def write_judgments(
    library: Library, task: JudgingTask, folder: Path, *, rule: str = "median"
) -> WrittenJudgments:
    """Write the library's photos, the judged queries and their judgments into a folder.

    `searchlab evaluate --dataset FOLDER` and `searchlab calibrate FOLDER` read it.

    Args:
        library: Library that the task is of; its pictures stay where they are.
        task: The task.
        folder: The folder, which is created if it does not exist; files in it are replaced.
        rule: How the grades of several judges become one; see `merge_grades`.

    Raises:
        InputError: No judged query has a relevant photo with a file on this machine.
    """
    table = library.engine.table
    photos = [photo for photo in table.photos(range(len(table))) if photo.file]
    on_disk = {photo.photo_id for photo in photos}
    judged = {
        query_id: {photo: grade for photo, grade in grades.items() if photo in on_disk}
        for query_id, grades in task.qrels(rule).items()
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
    dataset = Dataset(
        name=task.name,
        revision=task.pool.pool_id,
        folder=folder,
        photos=None,
        queries=tuple(query for i, query in task.pool.queries.items() if i in qrels),
        qrels=qrels,
        records=tuple(
            {"file": p.file, "source": p.source, "source_photo_id": p.source_photo_id}
            for p in photos
        ),
        origins={query_id: dict.fromkeys(grades, EYE) for query_id, grades in qrels.items()},
    )
    write_dataset(dataset, folder)
    return WrittenJudgments(len(qrels), sum(map(len, qrels.values())), len(judged) - len(qrels))
