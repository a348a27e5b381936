"""Language tasks: one language of a configuration each, answered wherever there is room.

<out>/<benchmark>/<dataset>/parts/<name>.<language>.<hash>.gz    the answers to its queries

A task's file is named by the hash of everything its answers depend on, and appears whole. So a file
that exists is the checkpoint: if a worker dies, at most the tasks under way run again. The
result is joined from the files of all languages, which are then deleted.

Workers read the library where it lies and write where the results lie, so that both must be in
folders that all nodes mount alike.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, TypeVar

from searchlab.config import Config
from searchlab.errors import MismatchError, SearchlabError
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.evaluation.file_names import result_stem
from searchlab.evaluation.provenance.registry import code_of
from searchlab.evaluation.query_answers import Answers, answer_queries, join_answers
from searchlab.files import digest_of, write_once
from searchlab.library.cache import ContentCache
from searchlab.library.catalog import build_vectors
from searchlab.library.databases import copy_database
from searchlab.library.embed import PictureRunner
from searchlab.library.library import Library, open_library
from searchlab.models import load_model
from searchlab.progress import Progress

if TYPE_CHECKING:
    from searchlab.search.engine import SearchEngine

Item = TypeVar("Item")


class TaskRunner(PictureRunner, Protocol):
    """Who embeds and runs the tasks: `searchlab.cluster.runners.open_runner` makes one."""

    def run(
        self, function: Callable[..., object], waiting: deque[Item], *shared: object
    ) -> Generator[tuple[Item, SearchlabError | None], None, None]:
        """Call `function(item, *shared)` for each item; gives each with its error as it ends."""
        ...


@dataclass(frozen=True)
class Searched:
    """What all tasks of an experiment search.

    Attributes:
        library: Folder of the library.
        snapshot_id: Its snapshot in force; every task must find the same.
        photo_ids: The photos to search.
        withheld: Photo fields that no model may read.
        depth: Photos of each ranking.
        benchmark: Whose code it is, in `STUDIES`.
        code: `code_version` of that code; every node must have the same.
        cache: A copy of the library's cache, where all nodes read it; set by `run_tasks`.
    """

    library: Path
    snapshot_id: str
    photo_ids: frozenset[str]
    withheld: frozenset[str]
    depth: int
    benchmark: str
    code: str
    cache: Path = Path()


@dataclass(frozen=True)
class LanguageTask:
    """The queries of one language, to be answered under one configuration.

    Attributes:
        name: Dataset, configuration and language, as errors name the task.
        config: The configuration, with its `model_id`.
        queries: The queries, sorted.
        path: The file to write.
    """

    name: str
    config: Config
    queries: tuple[LabelledQuery, ...]
    path: Path


def embed_photos(
    library: Library,
    dataset: Dataset,
    configs: Sequence[Config],
    runner: PictureRunner,
    progress: Progress,
) -> None:
    """Embed the photos of a dataset for every model, so that no task has to."""
    table = library.engine.table.select(dataset.photo_ids)
    with library.cache() as cache:
        for spec in dict.fromkeys(config.model for config in configs):
            build_vectors(
                table,
                model=load_model(spec),
                cache=cache,
                thumbnails=library.thumbnails,
                progress=progress,
                withheld=dataset.unread,
                runner=runner,
            )


def cut_by_language(
    config: Config, queries: Sequence[LabelledQuery], folder: Path, setting: Sequence[object]
) -> list[LanguageTask]:
    """Cut the work of a configuration into a task for each language, in their order.

    Args:
        config: The configuration, with its `model_id`.
        queries: The queries of all languages.
        folder: `<out>/<benchmark>/<dataset>`.
        setting: What the answers depend on besides configuration and language, as plain values.
    """
    stem = result_stem(config)
    tasks = []
    for lang in sorted({query.lang for query in queries}):
        digest = digest_of({"asked": [*setting, config.config_id, lang]})
        path = (folder / "parts" / f"{stem}.{lang}.{digest}.gz").resolve()
        own = tuple(query for query in queries if query.lang == lang)
        tasks.append(LanguageTask(f"{folder.name}, {stem}, {lang}", config, own, path))
    return tasks


def run_tasks(
    tasks: Sequence[LanguageTask],
    searched: Searched,
    runner: TaskRunner,
    progress: Progress,
    *,
    force: bool = False,
) -> Generator[tuple[LanguageTask, SearchlabError | None], None, None]:
    """Run the tasks whose files are not there yet.

    Args:
        tasks: The tasks.
        searched: What they search.
        runner: Runs them.
        progress: Shows how many queries were answered, of those that had no answer.
        force: Whether to run all of them.

    Yields:
        Each task as soon as its file is there, and the error if it failed; the others go on.
    """
    done = [] if force else [task for task in tasks if read_answers(task) is not None]
    yield from ((task, None) for task in done)
    waiting = deque(task for task in tasks if task not in done)
    n_queries = sum(len(task.queries) for task in waiting)
    if not waiting:
        return
    try:
        with (
            progress.step("ranking", n_queries, unit="queries") as step,
            _copied_cache(searched, waiting[0].path.parent) as copied,
            closing(runner.run(answer_language, waiting, replace(searched, cache=copied))) as run,
        ):
            for task, error in run:
                if error is None and read_answers(task) is None:
                    msg = f"{task.path.parent} must be a folder that all nodes mount alike"
                    error = SearchlabError(f"{msg}, got none of what a worker wrote there")
                step.note(task.name)
                step.advance(len(task.queries))
                yield task, error
    finally:
        _open_engine.cache_clear()  # of this process, where it ran the tasks itself


def answer_language(task: LanguageTask, searched: Searched) -> None:
    """Answer the queries of a task and write its file; what workers run.

    Raises:
        MismatchError: The code or the library here differs from the caller's.
        NotFoundError: The library cannot be reached here.
    """
    if (here := code_of(searched.benchmark)) != searched.code:
        msg = f"every node must have code {searched.code}, got {here}; install the same"
        raise MismatchError(msg)
    engine = _open_engine(searched, task.config)
    with Progress().step("ranking") as step:
        answers = answer_queries(engine, task.queries, searched.depth, step, name=task.name)
    _write_answers(task, answers)


def read_answers(task: LanguageTask) -> Answers | None:
    """Read a task's file; None where there is none, or a damaged one."""
    try:
        values = json.loads(gzip.decompress(task.path.read_bytes()))
        values["run"] = {
            query_id: [(photo_id, score) for photo_id, score in ranked]
            for query_id, ranked in values["run"].items()
        }
        answers = Answers(**values)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        return None
    asked = {query.query_id for query in task.queries}
    return answers if answers.run.keys() == answers.seconds.keys() == asked else None


def take_answers(tasks: Sequence[LanguageTask]) -> Answers:
    """Join the answers of a configuration's tasks.

    Raises:
        SearchlabError: The file of one is gone.
    """
    parts = []
    for task in tasks:
        answers = read_answers(task)
        if answers is None:
            msg = f"{task.path} must stay until its result is on record, got none; run it again"
            raise SearchlabError(msg)
        parts.append(answers)
    return join_answers(parts)


def drop_answers(tasks: Sequence[LanguageTask]) -> None:
    """Delete the files of a configuration's tasks, also those of an earlier setting."""
    for task in tasks:
        beginning = task.path.name.rpartition(".gz")[0].rpartition(".")[0]
        # Also what a worker that died had begun.
        for path in task.path.parent.glob(f"{beginning}.*.gz*"):
            path.unlink(missing_ok=True)


def drop_folder(tasks: Sequence[LanguageTask]) -> None:
    """Delete the folder of all tasks of a run when they ended, if nothing is left in it."""
    for folder in {task.path.parent for task in tasks}:
        # Full, where another run writes there too; gone, where that one deleted it.
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _copied_cache(searched: Searched, folder: Path) -> Generator[Path, None, None]:
    # SQLite's journal must not be shared between machines, and holds what was written last.
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="cache-", dir=folder) as own:
        copied = Path(own) / "cache.db"
        copy_database(searched.library / "cache.db", copied)
        yield copied


def _write_answers(task: LanguageTask, answers: Answers) -> None:
    # The same task may run twice at once, where a node was believed dead.
    write_once(task.path, gzip.compress(json.dumps(asdict(answers)).encode(), mtime=0))


@lru_cache(maxsize=1)
def _open_engine(searched: Searched, config: Config) -> SearchEngine:
    """Build the engine of a configuration; the next language of it finds it open."""
    library = open_library(searched.library)
    if (found := library.engine.snapshot_id) != searched.snapshot_id:
        msg = (
            f"{searched.library} must stay at snapshot {searched.snapshot_id} while measured, "
            f"got {found}; run it again when nobody indexes it"
        )
        raise MismatchError(msg)
    with TemporaryDirectory(prefix="searchlab-cache-") as folder:
        own = Path(folder) / "cache.db"  # even a reader writes beside it
        shutil.copyfile(searched.cache, own)
        with ContentCache(own) as cache:
            return library.engine_for(
                config, withheld=searched.withheld, photo_ids=searched.photo_ids, cache=cache
            )
