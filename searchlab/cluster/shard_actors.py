"""The actors of a library's shards: how many, where, and which processes share them.

Ray starts them, spreads them over nodes, and starts those again whose process or node died; an
actor that is new opens what it is asked about.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from searchlab.cluster.shard_files import Place
from searchlab.cluster.shard_server import ShardServer
from searchlab.errors import InputError

_AT_ONCE: Final = 8  # questions that a replica answers at once
# Calls that must not wait for questions: attending to a replica, opening a part.
_GROUPS: Final = {"attending": 2, "opening": 2}
_NAMESPACE: Final = "searchlab"
_ATTEND_S: Final = 5.0
_PATIENCE_S: Final = 60.0
_OF_ANOTHER: Final = "WrongClusterID"  # as Ray puts it
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShardPlan:
    """Into how many shards a library is cut, and what is expected of them.

    Attributes:
        n_shards: Ranges that it is cut into.
        n_replicas: Actors for each of them, on different nodes where there are enough.
        cpus: Processors that each actor takes.
        timeout_s: Seconds within which all shards must have answered a question.
        open_timeout_s: Seconds within which each shard must have opened a snapshot.

    Raises:
        InputError: A number is too small.
    """

    n_shards: int
    n_replicas: int = 1
    cpus: float = 1.0
    timeout_s: float = 5.0
    open_timeout_s: float = 600.0

    def __post_init__(self) -> None:
        numbers = (self.cpus, self.timeout_s, self.open_timeout_s)
        if self.n_shards < 1 or self.n_replicas < 1 or not min(numbers) > 0:
            msg = (
                "shards and replicas must be at least 1, processors and times above 0, got "
                f"{self.n_shards}, {self.n_replicas}, {self.cpus!r}, {self.timeout_s!r} and "
                f"{self.open_timeout_s!r}"
            )
            raise InputError(msg)


class ShardActor:
    """One replica of a shard, found again after it was lost for good."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self.handle = find()
        self._finding = threading.Lock()

    def open(self, place: Place) -> Future[int]:
        """Ask it to open a part; see `ShardServer.open`."""
        return self._ask(self.handle.open.options(concurrency_group="opening"), place)

    def answer(self, place: Place, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        """Ask it about a part; see `ShardServer.answer`."""
        return self._ask(self.handle.answer, place, method, arguments)

    def attend(self, who: str) -> Future[list[str]]:
        """Tell it that it is needed; see `ShardServer.attend`."""
        return self._ask(self.handle.attend.options(concurrency_group="attending"), who)

    def leave(self, who: str) -> Future[None]:
        """Tell it that it is needed no more; see `ShardServer.leave`."""
        return self._ask(self.handle.leave.options(concurrency_group="attending"), who)

    @staticmethod
    def _ask(method: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = method.remote(*arguments).future()
        return future

    def renew(self) -> None:
        """Find or start it anew, later; one that Ray is starting again stays the same.

        Whoever attends to the others must not wait: where the head of the cluster is gone, Ray
        waits for it until it ends the process.
        """
        if self._finding.acquire(blocking=False):
            threading.Thread(target=self._renew, name="shard", daemon=True).start()

    def settle(self, timeout_s: float) -> None:
        """Renew it no more, so that nobody starts one after it was left.

        Args:
            timeout_s: Seconds to wait for a renewal that is under way.
        """
        self._finding.acquire(timeout=timeout_s)  # for good

    def _renew(self) -> None:
        try:
            self.handle = self._find()
        except Exception:  # any: it is tried again by who attends, for as long as it is lost
            _LOG.exception("shards: a replica could not be found; it is tried again")
        finally:
            self._finding.release()


class ShardActors:
    """All replicas of all shards, on the cluster that this process is connected to.

    Attributes:
        on_replaced: Called, in any thread, when another cluster answers at the address of this one,
            as when its head was started again. Ray lets no process change over: it must end.
    """

    def __init__(self, folder: Path, plan: ShardPlan, *, name: str = "") -> None:
        """Start them, or find those that another process of the same server has started.

        Args:
            folder: The library, under the same path on every node.
            plan: How many.
            name: Name of the server whose processes share them. They are then nobody's own, and
                must be attended to. If empty they end with this process.
        """
        import ray

        self._ray, self.plan = ray, plan
        self.on_replaced: Callable[[], None] = lambda: None
        actor = ray.remote(concurrency_groups=_GROUPS)(ShardServer)

        def start(shard: int, number: int) -> Any:
            shared = {
                "name": f"{name}-{shard}-{number}",
                "namespace": _NAMESPACE,
                "lifetime": "detached",
                "get_if_exists": True,
            }
            return actor.options(
                num_cpus=plan.cpus,
                max_restarts=-1,
                max_concurrency=_AT_ONCE,
                # One after the other, so that replicas of a shard come to different nodes.
                scheduling_strategy="SPREAD",
                **(shared if name else {}),
            ).remote(str(folder), _PATIENCE_S if name else None)

        def find(shard: int, number: int) -> Any:
            try:
                return start(shard, number)
            except ray.exceptions.AuthenticationError as error:
                if _OF_ANOTHER in str(error):
                    self.on_replaced()
                raise

        self.shards = [
            [ShardActor(partial(find, shard, number)) for number in range(plan.n_replicas)]
            for shard in range(plan.n_shards)
        ]

    def is_lost(self, error: BaseException) -> bool:
        """Whether an error says that a process or node is gone, not that a question is wrong."""
        errors = self._ray.exceptions
        # What a task raised comes as a `RayTaskError`; all else is of processes and nodes.
        return isinstance(error, errors.RayError) and not isinstance(error, errors.RayTaskError)

    def close(self) -> None:
        """Stop the actors."""
        for some in self.shards:
            for replica in some:
                self._ray.kill(replica.handle)


class Attendance:
    """Tells shared actors that they are needed, and knows which of them answer.

    Attributes:
        n_answering: Replicas of each shard that answered last.
        report: Called with `n_answering` after each round, in a thread of its own.
    """

    def __init__(self, actors: ShardActors, *, every_s: float = _ATTEND_S) -> None:
        """Begin to attend, in a thread of its own.

        Args:
            actors: Started with a name.
            every_s: Seconds between two rounds, and the most that an answer may take.
        """
        self._actors, self._every_s = actors, every_s
        self._who = uuid.uuid4().hex
        self._stop = threading.Event()
        self._told: set[tuple[int, str]] = set()
        # Replicas that were not asked yet count as answering.
        self.n_answering = [actors.plan.n_replicas] * actors.plan.n_shards
        self.report: Callable[[Sequence[int]], None] = lambda n_answering: None
        self._thread = threading.Thread(target=self._attend, name="shards", daemon=True)
        self._thread.start()

    @property
    def missing(self) -> list[int]:
        """Numbers of the shards, from 1, of which no replica answers."""
        return [number for number, n in enumerate(self.n_answering, start=1) if not n]

    def close(self) -> None:
        """Leave the actors, which end with the last who leaves."""
        self._stop.set()
        self._thread.join()
        replicas = [replica for some in self._actors.shards for replica in some]
        until = time.monotonic() + self._every_s
        for replica in replicas:
            replica.settle(max(0.0, until - time.monotonic()))
        leaving = [replica.leave(self._who) for replica in replicas]
        wait(leaving, timeout=self._every_s)

    def _attend(self) -> None:
        while True:
            try:
                self.n_answering = self._ask_all()
                self.report(self.n_answering)
            except (
                Exception
            ):  # any: otherwise nobody would attend, nor tell that they do not answer
                _LOG.exception("shards: the cluster could not be asked; it is tried again")
                self.n_answering = [0] * self._actors.plan.n_shards
            if self._stop.wait(self._every_s):
                return

    def _ask_all(self) -> list[int]:
        asked = [
            [(replica, replica.attend(self._who)) for replica in some]
            for some in self._actors.shards
        ]
        wait([future for some in asked for _, future in some], timeout=self._every_s)
        return [
            sum(self._has_answered(number, replica, future) for replica, future in some)
            for number, some in enumerate(asked, start=1)
        ]

    def _has_answered(self, number: int, replica: ShardActor, future: Future[list[str]]) -> bool:
        if not future.done():
            return False
        error = future.exception()
        if error is not None:
            if self._actors.is_lost(error):
                replica.renew()
            return False
        for problem in future.result():
            if (number, problem) not in self._told:
                self._told.add((number, problem))
                _LOG.warning("shard %d: %s", number, problem)
        return True
