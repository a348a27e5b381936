"""Shards of a served library: the actors that this worker shares with the others of its server."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.api.ops.metrics import Metrics
from searchlab.api.settings import Settings
from searchlab.library.snapshots import OpenVectors

if TYPE_CHECKING:
    from searchlab.cluster.ray_shards import RayShards
    from searchlab.cluster.shard_actors import Attendance


class ServedShards:
    """What a worker knows of the shards that it searches."""

    def __init__(self, shards: RayShards, attendance: Attendance) -> None:
        self._shards, self._attendance = shards, attendance
        self.open_vectors: OpenVectors = shards.open_vectors

    def report_to(self, metrics: Metrics) -> None:
        """Tell which shards answer, and how long they take, from now on."""
        self._shards.observe = metrics.observe_shard
        self._attendance.report = metrics.describe_shards

    def problems(self) -> Iterator[str]:
        """Say which shards do not answer."""
        n_shards = self._shards.actors.plan.n_shards
        for number in self._attendance.missing:
            yield f"shard {number} of {n_shards} does not answer"


def open_shards(settings: Settings, stack: AsyncExitStack) -> ServedShards:
    """Join the other workers of this server on a cluster, until the stack is closed.

    Raises:
        InputError: `settings.on` is no such name.
        MissingExtraError: Ray is not installed.
        SearchlabError: It cannot be reached.
    """
    from searchlab.cluster.ray_shards import share_shards
    from searchlab.cluster.shard_actors import ShardPlan

    plan = ShardPlan(
        n_shards=settings.shards,
        n_replicas=settings.replicas,
        cpus=settings.shard_cpus,
        timeout_s=settings.shard_timeout_s,
        open_timeout_s=settings.shard_open_timeout_s,
    )
    name = f"{socket.gethostname()}-{Path(settings.run_folder).name}"
    shards, attendance = stack.enter_context(
        share_shards(settings.data, settings.on, plan, name=name)
    )
    shards.actors.on_replaced = _end_this_worker
    return ServedShards(shards, attendance)


def _end_this_worker() -> None:
    # Its supervisor starts another one, which joins the cluster that is there now.
    os.kill(os.getpid(), signal.SIGTERM)
