"""Runners: pictures embedded and tasks run, in this process or on Ray, with the same outcome.

Ray schedules the tasks, restarts those whose worker or node died, and carries what they say; what
they compute goes through parts with markers of our own. Workers read the files by the paths that
the library knows, so that folders of photos must be mounted alike on all nodes.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from filelock import FileLock

from searchlab.cluster.connecting import parse_address
from searchlab.cluster.parts import (
    PLAN,
    Shard,
    code_here,
    cut_shards,
    drop_part,
    is_done,
    read_plan,
    take_part,
    write_part,
    write_plan,
)
from searchlab.cluster.storage import Store, check_address
from searchlab.cluster.tasks import Item, LocalTasks, RayTasks
from searchlab.errors import InputError, MismatchError, SearchlabError
from searchlab.files import id_of_folder
from searchlab.library.cache import ContentCache
from searchlab.library.decoding import CHANGED
from searchlab.library.embed import embed_pictures, find_unknown, images_at_once
from searchlab.models import load_model
from searchlab.models.protocol import Embedder
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress

_ID: Final = "ID"
_MOST_FAILED: Final = 16
"""Shards that may fail before the others are not tried any more."""
_TRIES: Final = 3
"""How often a part that cannot be read is made."""


def open_runner(name: str, **options: Any) -> LocalRunner | RayRunner:
    """Make a runner by its name.

    Args:
        name: `local` for this process, `ray:local` for a Ray that is started on this machine and
            stopped at the end, or `ray:ADDRESS` of a cluster, such as `ray:auto`.
        options: Fields of `RayRunner`.

    Raises:
        InputError: It is no such name, or options come without Ray.
        MissingExtraError: Ray is not installed.
    """
    if name != "local":
        return RayRunner(parse_address(name), **options)
    if options:
        msg = f"{', '.join(sorted(options))} must go with Ray, got them with local"
        raise InputError(msg)
    return LocalRunner()


@dataclass(frozen=True)
class LocalRunner(LocalTasks):
    """Does in this process, one after the other, what others do on Ray."""

    def embed(
        self,
        files: Mapping[str, Path],
        models: Sequence[Embedder],
        cache: ContentCache,
        thumbnails: Path,
        progress: Progress,
    ) -> list[Skipped]:
        """Embed in this process; see `embed_pictures`."""
        return embed_pictures(files, models, cache, thumbnails, progress)


@dataclass(frozen=True)
class RayRunner:
    """Embeds pictures by tasks on Ray, and runs other tasks there; use `open_runner`.

    Attributes:
        address: The address of the cluster, or `local`.
        work: Address that all workers write to and this process reads, which libraries may share; a
            folder in the library's own if left out, which all nodes must then reach.
        cpus: Processors that a task takes; it decodes as many pictures at once.
        gpus: GPUs that a task takes; may be a fraction.
        most_pictures: Pictures of a task, at most, if that is a batch of the model or more.
        most_bytes: Bytes of files after which a task takes no further batch.
        store_options: What the file system of `work` takes; see `Store`.

    Raises:
        InputError: `cpus` or `gpus` is less than 0, or no whole number above 1; or `work` names no
            place.
    """

    address: str
    work: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    most_pictures: int = 256
    most_bytes: int = 512 * 2**20
    store_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("cpus", self.cpus), ("gpus", self.gpus)):
            # Ray counts in ten-thousandths, and gives parts of one device alone.
            is_whole = math.isfinite(value) and (value <= 1 or value == int(value))
            if not is_whole or value < 0 or 0 < value < 1e-4:
                msg = f"{name} must be a whole number, or a part of 1 from 0.0001 on, got {value!r}"
                raise InputError(msg)
        if self.work is not None:  # here, before a library's id is appended to nothing
            check_address(self.work)

    def embed(
        self,
        files: Mapping[str, Path],
        models: Sequence[Embedder],
        cache: ContentCache,
        thumbnails: Path,
        progress: Progress,
    ) -> list[Skipped]:
        """Analyse and embed every picture that is not known yet; see `embed_pictures`.

        What workers finished before this process or theirs died is taken in first. At most the
        shards that were under way are done again.

        Raises:
            SearchlabError: Ray cannot be reached, or tasks failed; what the others made is kept.
            MismatchError: Workers have another searchlab, or another model of that name.
        """
        own = thumbnails.parent / "cluster"
        own.mkdir(parents=True, exist_ok=True)
        # Whoever else embeds for this library would take this run for one that died.
        with FileLock(own / "embedding.lock"):
            store = Store(self._work_of(thumbnails.parent), **self.store_options)
            work = store.address  # absolute: workers stand in folders of their own
            if not store.is_shared:
                msg = f"work must be an address that other processes reach, got {work}"
                raise InputError(msg)
            for shard in read_plan(store):
                take_part(store, shard, cache, thumbnails)
                drop_part(store, shard)
            store.delete(PLAN)
            todo, problems = find_unknown(files, models, cache, thumbnails)
            if not todo:
                return problems
            shards = cut_shards(
                todo,
                files,
                at_once=images_at_once(models),
                most_pictures=self.most_pictures,
                most_bytes=self.most_bytes,
            )
            write_plan(store, shards)
            with (
                progress.step("embedding photos", len(todo), unit="images") as step,
                closing(self._run(store, work, shards, cache, thumbnails)) as run,
            ):
                for shard, refused in run:
                    for problem in refused:
                        if problem.reason == CHANGED:
                            cache.forget_file(problem.where)
                    problems += refused
                    step.advance(len(shard.files))
            store.delete(PLAN)
            return problems

    def run(
        self, function: Callable[..., object], waiting: deque[Item], *shared: object
    ) -> Generator[tuple[Item, SearchlabError | None], None, None]:
        """Call a function for each item on Ray; see `RayTasks.run`."""
        return RayTasks(self.address, self.cpus, self.gpus).run(function, waiting, *shared)

    def _work_of(self, folder: Path) -> str:
        """Return the address for a library: several libraries may share `work`."""
        own = folder / "cluster"
        if self.work is None:
            return str(own)
        own.mkdir(parents=True, exist_ok=True)
        # A copy of the library has its own, so that it takes no work of the original.
        return f"{self.work.rstrip('/')}/{id_of_folder(own, _ID)}"

    def _run(
        self,
        store: Store,
        work: str,
        shards: Sequence[Shard],
        cache: ContentCache,
        thumbnails: Path,
    ) -> Generator[tuple[Shard, list[Skipped]], None, None]:
        """Run every shard, as many at once as fit; gives each as soon as it is in the cache."""
        tasks = RayTasks(self.address, self.cpus, self.gpus, purpose="embed its pictures")
        waiting = deque(shards)
        tries: Counter[str] = Counter()
        threads = max(1, round(self.cpus))
        failed: list[tuple[Shard, SearchlabError]] = []
        options = dict(self.store_options)
        run = tasks.run(embed_shard, waiting, work, options, threads, code_here())
        with closing(run):
            for shard, error in run:
                if error is not None:
                    failed.append((shard, error))
                    if isinstance(error, MismatchError) or len(failed) >= _MOST_FAILED:
                        break
                    continue
                tries[shard.name] += 1
                refused = take_part(store, shard, cache, thumbnails)
                if refused is None and tries[shard.name] == _TRIES:
                    raise _not_kept(store, shard)
                drop_part(store, shard)
                if refused is None:
                    waiting.appendleft(shard)
                else:
                    yield shard, refused
        _tell_failed(failed, len(shards))


def _not_kept(store: Store, shard: Shard) -> SearchlabError:
    """Say why nothing can be taken of a shard whose task has just ended well."""
    if store.is_folder and not is_done(store, shard):
        msg = (
            f"{store.address} must be a folder that all nodes mount alike, got none of what a "
            "worker wrote there; mount it, or name an address that all of them reach with --work"
        )
        return SearchlabError(msg)
    msg = f"{store.address} must keep what workers write, got parts that are lost or damaged"
    return SearchlabError(msg)


def _tell_failed(failed: Sequence[tuple[Shard, SearchlabError]], n_shards: int) -> None:
    """Raise one error for all shards that failed.

    Raises:
        MismatchError: It would be the same for all of them.
        SearchlabError: Some failed.
    """
    if not failed:
        return
    shard, error = failed[-1]
    if isinstance(error, MismatchError):
        raise error
    first = next(iter(shard.files.values()))
    msg = (
        f"pictures must be embedded in {n_shards} parts, got {len(failed)} that failed, such as "
        f"the one of {len(shard.files)} pictures from {first} on: {error}; what the others made is "
        "kept: run it again, without the picture that stops it if it is always the same"
    )
    raise SearchlabError(msg) from error


def embed_shard(
    shard: Shard, work: str, options: Mapping[str, Any], threads: int, code: str
) -> None:
    """Read and embed the pictures of a shard and write its part; the task that workers run.

    A task that runs again, because its worker died after it had written, does nothing.

    Raises:
        MismatchError: searchlab is another one here, or a model has other weights.
    """
    if (here := code_here()) != code:
        msg = f"searchlab must have code {code} on every node, got {here}; install the same"
        raise MismatchError(msg)
    store = Store(work, **options)
    if is_done(store, shard):
        return
    models = [load_model(spec) for spec, _, _ in shard.models]
    for model, (spec, model_id, _) in zip(models, shard.models, strict=True):
        if model.model_id != model_id:
            msg = f"{spec} must be {model_id} on every node, got {model.model_id}; install the same"
            raise MismatchError(msg)
    files = {digest: Path(path) for digest, path in shard.files.items()}
    with TemporaryDirectory(prefix="searchlab-shard-") as name:
        folder = Path(name)
        small = folder / "thumbnails"
        with ContentCache(folder / "cache.db") as cache:
            problems = embed_pictures(files, models, cache, small, Progress(), threads=threads)
        write_part(store, shard, folder, small, problems)
