"""Nodes of a Ray cluster on this machine, each of which can be cut off as by a power cut."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import psutil

CPUS = 2
"""Processors that a node says it has: what runs there at once, however many there are."""
_MEMORY = 80 * 2**20  # of a node for objects, of which searchlab keeps next to none there
_LOOK_S = 0.05  # between two looks at what other processes do in their own time
_ASK_S = 1.0
_LIMIT_S = 300.0


class Nodes:
    """A head, on which nothing is run, and some nodes.

    Attributes:
        address: HOST:PORT of the head.
        nodes: Those that are alive.
    """

    def __init__(self, count: int) -> None:
        """Start them, and connect this process."""
        import ray
        from ray.cluster_utils import Cluster

        # Processes of a machine that has much else to do take long to start.
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "180"}
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _MEMORY}
        self._ray = ray
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address
        self.nodes: list[Any] = []
        for _ in range(count):
            self.add()
        ray.init(address=self.address, log_to_driver=False, logging_level="error")

    def add(self) -> None:
        """Start another node, in place of one that was lost."""
        self.nodes.append(self._cluster.add_node(num_cpus=CPUS, object_store_memory=_MEMORY))

    def kill(self, node: Any) -> float:
        """End all processes of a node at once; returns when, by `time.monotonic`."""
        self.nodes.remove(node)
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        doomed = [raylet, *raylet.children(recursive=True)]
        killed_at = time.monotonic()
        for process in doomed:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._cluster.remove_node(node, allow_graceful=False)
        return killed_at

    def of(self, node_id: str) -> Any:
        """Return a node by its id."""
        return next(node for node in self.nodes if node.node_id == node_id)

    def where(self, actors: Iterable[Any]) -> list[tuple[str, int] | None]:
        """Ask actors for the id of their node and process; None for one that does not answer."""
        asked = [actor.__ray_call__.remote(_say_where) for actor in actors]
        done, _ = self._ray.wait(asked, num_returns=len(asked), timeout=_ASK_S)
        return [self._read(one) if one in done else None for one in asked]

    def _read(self, reference: Any) -> tuple[str, int] | None:
        try:
            place: tuple[str, int] = self._ray.get(reference)
        except self._ray.exceptions.RayError:
            return None
        return place

    def restart(self, actor: Any) -> None:
        """Kill an actor, which Ray starts again on any node, and wait until it answers."""
        (before,) = self.where([actor])
        self._ray.kill(actor, no_restart=False)
        wait_until(lambda: self.where([actor])[0] not in (None, before))

    def wait_for_processors(self) -> None:
        """Wait until all nodes are there and nothing runs on them."""
        wanted = CPUS * len(self.nodes)
        wait_until(lambda: self._ray.available_resources().get("CPU", 0) == wanted)

    def close(self) -> None:
        """Stop all of them."""
        self._ray.shutdown()
        self._cluster.shutdown()


def wait_until(condition: Callable[[], object], limit_s: float = _LIMIT_S) -> float:
    """Wait for something; returns the seconds that took.

    Raises:
        TimeoutError: It did not come.
    """
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > limit_s:
            msg = f"something must happen within {limit_s:g} s, got nothing"
            raise TimeoutError(msg)
        time.sleep(_LOOK_S)
    return time.monotonic() - started


def _say_where(_actor: object) -> tuple[str, int]:
    import ray

    return ray.get_runtime_context().get_node_id(), os.getpid()
