"""Tasks: a function called for each of many items, in this process or on Ray.

Ray schedules the calls and starts those again whose worker or node died. What a call makes is
written by the call itself, whole and under a name of its own, so that one that runs twice writes
the same; nothing but "done" or an error comes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from searchlab.cluster.connecting import connect
from searchlab.errors import InputError, SearchlabError

Item = TypeVar("Item")

_WAITING: Final = 2
"""Tasks for each one that runs; few, so that neither driver nor cluster fills with what waits."""
_CANCELLING_S: Final = 5.0
"""Seconds in which a cancelled task may delete its temporary files."""
_RESTARTS: Final = 5
"""How often Ray starts a task again whose worker or node died; an item may be what kills it."""


@dataclass(frozen=True)
class LocalTasks:
    """Runs tasks in this process, one after the other."""

    def run(
        self, function: Callable[..., object], waiting: deque[Item], *shared: object
    ) -> Generator[tuple[Item, SearchlabError | None], None, None]:
        """Call a function for each item; see `RayTasks.run`."""
        while waiting:
            item = waiting.popleft()
            try:
                function(item, *shared)
            except SearchlabError as error:
                yield item, error
            except Exception as error:  # whatever it is, the other tasks go on, as on Ray
                yield item, _error_of(error, "end")
            else:
                yield item, None


@dataclass(frozen=True)
class RayTasks:
    """Runs tasks on Ray, as many at once as fit.

    Attributes:
        address: The address of the cluster, or `local`.
        cpus: Processors that a task takes.
        gpus: GPUs that a task takes; may be a fraction.
        purpose: What a task must do, in the words of an error.
    """

    address: str
    cpus: float = 1.0
    gpus: float = 0.0
    purpose: str = "end"

    def run(
        self, function: Callable[..., object], waiting: deque[Item], *shared: object
    ) -> Generator[tuple[Item, SearchlabError | None], None, None]:
        """Call a function for each item, with what all calls share.

        Args:
            function: `function(item, *shared)`; its module must be there on every node.
            waiting: The items; it is emptied, and more may be added while tasks run.
            shared: Sent to each node once.

        Yields:
            Each item as soon as its task ended, and the error if it failed; the others go on.
            Tasks under way are cancelled when the generator is closed.

        Raises:
            SearchlabError: The cluster cannot be reached.
            InputError: This machine lacks what a task takes, so it would wait for ever.
        """
        with connect(f"ray:{self.address}"):
            import ray

            if self.address == "local":  # others may start a node that has it
                self._check_fit()
            task = ray.remote(function).options(
                num_cpus=self.cpus, num_gpus=self.gpus, max_retries=_RESTARTS
            )
            sent = [ray.put(value) for value in shared]
            running: dict[Any, Item] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < self._most_running():
                        item = waiting.popleft()
                        running[task.remote(item, *sent)] = item
                    (ready, *_), _ = ray.wait(list(running), num_returns=1)
                    item = running.pop(ready)
                    yield item, self._error_in(ready)
            finally:
                _cancel(list(running))

    def _check_fit(self) -> None:
        import ray

        has = ray.cluster_resources()
        cpus, gpus = has.get("CPU", 0), has.get("GPU", 0)
        if cpus < self.cpus or gpus < self.gpus:
            msg = (
                f"a task must fit on this machine, got one of {self.cpus:g} CPUs and "
                f"{self.gpus:g} GPUs where it has {cpus:g} and {gpus:g}; ask for less"
            )
            raise InputError(msg)

    def _most_running(self) -> int:
        import ray

        # Asked again and again: nodes come and go.
        there = ray.cluster_resources()
        fits = [there.get("CPU", 0) / self.cpus] if self.cpus else []
        fits += [there.get("GPU", 0) / self.gpus] if self.gpus else []
        return max(1, _WAITING * int(min(fits, default=1)))

    def _error_in(self, reference: Any) -> SearchlabError | None:
        import ray

        try:
            ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            return _error_of(error.cause, self.purpose)
        except ray.exceptions.RayError as error:
            return SearchlabError(f"a task must end, got: {error}")
        return None


def _cancel(running: list[Any]) -> None:
    """Cancel tasks; those that do not end by themselves, and clean up, are killed."""
    import ray

    for reference in running:
        ray.cancel(reference)
    if running:
        _, left = ray.wait(running, num_returns=len(running), timeout=_CANCELLING_S)
        for reference in left:
            ray.cancel(reference, force=True)


def _error_of(cause: BaseException, purpose: str) -> SearchlabError:
    if isinstance(cause, SearchlabError):
        return cause
    error = SearchlabError(f"a task must {purpose}, got: {cause!r}")
    error.__cause__ = cause
    return error
