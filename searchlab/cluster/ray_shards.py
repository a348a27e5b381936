"""A library whose vectors are searched by actors on Ray, each of which maps its part of them.

The photo table, the sets of filters and what is written about photos stay with whoever ranks: they
are what one machine can hold.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from searchlab.cluster.connecting import connect
from searchlab.cluster.replicas import ReplicatedShards
from searchlab.cluster.shard_actors import Attendance, ShardActors, ShardPlan
from searchlab.cluster.shard_files import (
    Place,
    cut_table,
    first_ids,
    manifest_digest,
    read_cut,
    write_cut,
)
from searchlab.cluster.sharded_index import ShardedIndex
from searchlab.config import Config
from searchlab.errors import SearchlabError, UnavailableError
from searchlab.library.library import Library
from searchlab.library.snapshots import current_id
from searchlab.photos.table import PhotoTable


class RayShards:
    """Opens snapshots on the actors of a library's shards.

    Attributes:
        observe: Called with the number of a shard, from 0, and the seconds that an answer took.
    """

    def __init__(self, folder: Path, actors: ShardActors) -> None:
        self.actors = actors
        self.observe: Callable[[int, float], None] = lambda shard, seconds: None
        self._plan = actors.plan
        self._cutting = threading.Lock()
        self._firsts = read_cut(folder, self._plan.n_shards)

    def open_vectors(
        self, folder: Path, snapshot_id: str, config: Config, table: PhotoTable
    ) -> ShardedIndex:
        """Open a snapshot on every shard, and return its vectors once all of them are ready.

        Raises:
            MismatchError: A node has another snapshot of that name, or none.
            DataError: A node's copy is damaged.
            UnavailableError: A shard has no replica that opened it in time.
        """
        digest = manifest_digest(folder, snapshot_id)
        with self._cutting:
            ranges = cut_table(table, self._plan.n_shards, self._firsts)
            places = [Place(snapshot_id, digest, rows.start, rows.stop) for rows in ranges]
            dims = self._open(places)
            if snapshot_id == current_id(folder):  # an older one, of a cursor, moves no cut
                self._firsts = first_ids(table, ranges)
                write_cut(folder, self._firsts)
        replicas = [
            [partial(replica.answer, place) for replica in some]
            for some, place in zip(self.actors.shards, places, strict=True)
        ]
        shards = ReplicatedShards(
            ranges,
            dims[0],
            replicas,
            timeout_s=self._plan.timeout_s,
            is_lost=self.actors.is_lost,
            observe=lambda shard, seconds: self.observe(shard, seconds),
        )
        return ShardedIndex(shards, config)

    def _open(self, places: list[Place]) -> list[int]:
        futures = [
            [replica.open(place) for replica in some]
            for some, place in zip(self.actors.shards, places, strict=True)
        ]
        pending = [one for some in futures for one in some]
        deadline = time.monotonic() + self._plan.open_timeout_s
        while pending and not all(map(self._is_settled, futures)):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            pending = list(wait(pending, timeout=left, return_when=FIRST_COMPLETED).not_done)
        # Others may follow shortly, and are not waited for where their node is gone.
        wait(pending, timeout=self._plan.timeout_s)
        return [self._opened(number, some) for number, some in enumerate(futures, start=1)]

    @staticmethod
    def _is_settled(futures: list[Future[int]]) -> bool:
        done = [future for future in futures if future.done()]
        return len(done) == len(futures) or any(future.exception() is None for future in done)

    def _opened(self, number: int, futures: list[Future[int]]) -> int:
        """Return what a shard said that opened a snapshot; one replica is enough, if none refuses.

        The others open it when they are asked, as one does that was started again.
        """
        dims = []
        for future in futures:
            error = future.exception() if future.done() else None
            if isinstance(error, SearchlabError):
                raise getattr(error, "cause", None) or error
            if error is not None and not self.actors.is_lost(error):
                raise error
            if future.done() and error is None:
                dims.append(future.result())
        if not dims:
            msg = (
                f"shard {number} of {self._plan.n_shards} must open a new snapshot within "
                f"{self._plan.open_timeout_s:g} s, got no answer; give the cluster more "
                "processors, or shards fewer"
            )
            raise UnavailableError(msg)
        return dims[0]


@contextmanager
def serve_shards(folder: Path | str, on: str, **plan: Any) -> Iterator[Library]:
    """Open a library whose vectors are searched by actors on Ray, which end with it.

    Args:
        folder: The library, under the same path on every node.
        on: `ray:local`, or `ray:ADDRESS` of a cluster, such as `ray:auto`.
        plan: What `ShardPlan` takes.

    Raises:
        InputError: A wrong number, or no such name.
        MissingExtraError: Ray is not installed.
        SearchlabError: Ray cannot be reached.
    """
    place = Path(folder).expanduser().resolve()
    checked = ShardPlan(**plan)
    with connect(on):
        actors = ShardActors(place, checked)
        try:
            yield Library(place, open_vectors=RayShards(place, actors).open_vectors)
        finally:
            actors.close()


@contextmanager
def share_shards(
    folder: Path, on: str, plan: ShardPlan, *, name: str
) -> Iterator[tuple[RayShards, Attendance]]:
    """Join the processes of a server that share actors; the last one that leaves ends them.

    Args:
        folder: The library, under the same path on every node.
        on: As for `serve_shards`.
        plan: The same for all of them.
        name: Of the server, another one each time that it is started.

    Yields:
        What opens snapshots, and what knows which shards answer.

    Raises:
        MissingExtraError: Ray is not installed.
        SearchlabError: Ray cannot be reached.
    """
    with connect(on):
        actors = ShardActors(folder, plan, name=name)
        attendance = Attendance(actors)
        try:
            yield RayShards(folder, actors), attendance
        finally:
            attendance.close()
