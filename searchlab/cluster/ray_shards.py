"""Shards as actors on Ray: each maps its part of a library's snapshots and answers for it.

Ray starts the actors, spreads replicas over nodes, and starts those again whose process or node
died; an actor that is new opens what it is asked about. The photo table, the sets of filters and
what is written about photos stay with whoever ranks: they are what one machine can hold.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from searchlab.cluster.connecting import connect
from searchlab.cluster.replicas import Replica, ReplicatedShards
from searchlab.cluster.shard_files import (
    Place,
    cut_table,
    first_ids,
    manifest_digest,
    open_part,
)
from searchlab.cluster.sharded_index import ShardedIndex
from searchlab.cluster.shards import Part
from searchlab.config import Config
from searchlab.errors import InputError, SearchlabError, UnavailableError
from searchlab.library.library import Library
from searchlab.library.retention import KEPT
from searchlab.photos.table import PhotoTable

_AT_ONCE: Final = 8  # questions that a replica answers at once


class ShardServer:
    """Answers for one range of a library; what an actor runs.

    Several snapshots may be open, those asked for last: cursors go on while a new one is in force.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._parts: OrderedDict[Place, Part] = OrderedDict()
        self._opening, self._looking = threading.Lock(), threading.Lock()

    def open(self, place: Place) -> int:
        """Open a part before anybody asks; returns the numbers of a vector.

        Raises:
            MismatchError: The snapshot here is another one, or there is none.
            DataError: It is damaged.
        """
        return self._part(place).index.dim

    def answer(self, place: Place, method: str, arguments: Mapping[str, Any]) -> Any:
        """Answer from a part; see `Part.answer`."""
        return self._part(place).answer(method, arguments)

    def _part(self, place: Place) -> Part:
        part = self._look_up(place)
        if part is not None:
            return part
        # Questions about open parts go on meanwhile.
        with self._opening:
            part = self._look_up(place)
            if part is None:
                part = open_part(self._folder, place)
                with self._looking:
                    self._parts[place] = part
                    while len(self._parts) > KEPT:
                        self._parts.popitem(last=False)
            return part

    def _look_up(self, place: Place) -> Part | None:
        with self._looking:
            part = self._parts.get(place)
            if part is not None:
                self._parts.move_to_end(place)
            return part


class RayShards:
    """The actors of a library, and the snapshots that they have open; use `serve_shards`."""

    def __init__(
        self,
        folder: Path,
        *,
        n_shards: int,
        n_replicas: int = 1,
        cpus: float = 1.0,
        timeout_s: float = 5.0,
        open_timeout_s: float = 600.0,
    ) -> None:
        """Start the actors on the cluster that this process is connected to.

        Args:
            folder: The library, under the same path on every node.
            n_shards: Ranges that it is cut into.
            n_replicas: Actors for each of them, on different nodes where there are enough.
            cpus: Processors that each actor takes.
            timeout_s: Seconds within which all shards must have answered a question.
            open_timeout_s: Seconds within which each shard must have opened a snapshot.

        Raises:
            InputError: A number is too small.
        """
        if n_shards < 1 or n_replicas < 1 or not min(cpus, timeout_s, open_timeout_s) > 0:
            msg = (
                "shards and replicas must be at least 1, processors and times above 0, got "
                f"{n_shards}, {n_replicas}, {cpus!r}, {timeout_s!r} and {open_timeout_s!r}"
            )
            raise InputError(msg)
        import ray
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        self._ray = ray
        self._timeout_s, self._open_timeout_s = timeout_s, open_timeout_s
        self._firsts: list[str] = []
        self._cutting = threading.Lock()
        actor = ray.remote(ShardServer)
        self._groups, self.actors = [], []
        for _ in range(n_shards):
            # Replicas of one shard on different nodes, so that a node takes one of them at most.
            group = placement_group([{"CPU": cpus}] * n_replicas, strategy="SPREAD")
            self._groups.append(group)
            self.actors.append(
                [
                    actor.options(
                        num_cpus=cpus,
                        max_restarts=-1,
                        max_concurrency=_AT_ONCE,
                        scheduling_strategy=PlacementGroupSchedulingStrategy(
                            group, placement_group_bundle_index=number
                        ),
                    ).remote(str(folder))
                    for number in range(n_replicas)
                ]
            )

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
            ranges = cut_table(table, len(self.actors), self._firsts)
            places = [Place(snapshot_id, digest, rows.start, rows.stop) for rows in ranges]
            dims = self._open(places)
            self._firsts = first_ids(table, ranges)
        replicas = [
            [_asker(actor, place) for actor in some]
            for some, place in zip(self.actors, places, strict=True)
        ]
        shards = ReplicatedShards(
            ranges, dims[0], replicas, timeout_s=self._timeout_s, is_lost=self._is_lost
        )
        return ShardedIndex(shards, config)

    def close(self) -> None:
        """Stop the actors."""
        from ray.util.placement_group import remove_placement_group

        for some in self.actors:
            for actor in some:
                self._ray.kill(actor)
        for group in self._groups:
            remove_placement_group(group)

    def _is_lost(self, error: BaseException) -> bool:
        errors = self._ray.exceptions
        # What a task raised comes as a `RayTaskError`; all else is of processes and nodes.
        return isinstance(error, errors.RayError) and not isinstance(error, errors.RayTaskError)

    def _open(self, places: list[Place]) -> list[int]:
        futures = [
            [actor.open.remote(place).future() for actor in some]
            for some, place in zip(self.actors, places, strict=True)
        ]
        pending = [one for some in futures for one in some]
        deadline = time.monotonic() + self._open_timeout_s
        while pending and not all(map(self._is_settled, futures)):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            pending = list(wait(pending, timeout=left, return_when=FIRST_COMPLETED).not_done)
        # Others may follow shortly, and are not waited for where their node is gone.
        wait(pending, timeout=self._timeout_s)
        return [self._opened(number, some) for number, some in enumerate(futures)]

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
            if error is not None and not self._is_lost(error):
                raise error
            if future.done() and error is None:
                dims.append(future.result())
        if not dims:
            msg = (
                f"shard {number + 1} of {len(self.actors)} must open a new snapshot within "
                f"{self._open_timeout_s:g} s, got no answer; give the cluster more processors, or "
                "shards fewer"
            )
            raise UnavailableError(msg)
        return dims[0]


@contextmanager
def serve_shards(folder: Path | str, on: str, **options: Any) -> Iterator[Library]:
    """Open a library whose vectors are searched by actors on Ray, which end with it.

    Args:
        folder: The library, under the same path on every node.
        on: `ray:local`, or `ray:ADDRESS` of a cluster, such as `ray:auto`.
        options: Further arguments of `RayShards`.

    Raises:
        InputError: A wrong option, or no such name.
        MissingExtraError: Ray is not installed.
        SearchlabError: Ray cannot be reached.
    """
    place = Path(folder).expanduser().resolve()
    with connect(on):
        shards = RayShards(place, **options)
        try:
            yield Library(place, open_vectors=shards.open_vectors)
        finally:
            shards.close()


def _asker(actor: Any, place: Place) -> Replica:
    def ask(method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        future: Future[Any] = actor.answer.remote(place, method, arguments).future()
        return future

    return ask
