"""Nodes and replicas killed while a server answers from shards, and while it takes a new snapshot.

A server whose shards have two replicas each, of which all clients together ask without pause. What
it says must be what one machine says; where a shard is gone it may say 503, in time.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.cluster.asking import QUERIES, Answer, Client, OneMachine, asking, went_back
from benchmarks.cluster.fault_points import Point
from benchmarks.cluster.faulty_nodes import Nodes, wait_until
from benchmarks.common.load.searchlab_server import UNLIMITED, Server, new_key
from benchmarks.opening.bench_opening import write_library
from searchlab.library.snapshots import current_id
from searchlab.models.protocol import Embeddings

N_SHARDS, N_REPLICAS = 2, 2
TIMEOUT_S = 5.0
"""Within which all shards must answer."""
_SLACK_S = 2.0  # that an error may be late where two processors do all the work
_BEFORE_S, _AFTER_S = 1.0, 1.0  # in which clients ask before a fault, and after all is as before
_STOPPED_S = 8.0
_TRIES = 6
_GROWTH = 100  # photos that a new snapshot adds


class ServingFaults:
    """A server on a cluster, which is the same through all faults."""

    def __init__(
        self, folder: Path, nodes: Nodes, rows: Embeddings, n_first: int, seed: int
    ) -> None:
        """Write a library of the first rows and start to serve it.

        Args:
            folder: Where all nodes may read and write.
            nodes: The cluster.
            rows: Vectors of the library, and of photos that come later.
            n_first: Photos that it has at first.
            seed: Of what photos are like.
        """
        self._folder, self._nodes, self._rows, self._n = folder / "served", nodes, rows, n_first
        self._seed = seed
        self._write()
        self.one_machine = OneMachine(self._folder)
        self.one_machine.learn()
        self._key = new_key(self._folder)
        on = ("--on", f"ray:{nodes.address}", "--shards", f"{N_SHARDS}", "--shard-cpus", "1")
        on += ("--replicas", f"{N_REPLICAS}", "--shard-timeout", f"{TIMEOUT_S}")
        log = folder / "server.log"
        self._server = Server(self._folder, log, workers=1, options=(*UNLIMITED, *on))
        nodes.wait_for_processors()
        self._server.start()
        self._client = Client(self._server.base_url, self._key)
        self._settle()
        new = self._write_next()
        self._usual_swap_s = wait_until(lambda: self._client.search(QUERIES[0]).snapshot == new)
        self.one_machine.learn()

    def close(self) -> None:
        """End the server."""
        self._client.close()
        self._server.stop()

    # -- faults -------------------------------------------------------------------------------

    def kill_a_node(self, seed: int) -> Point:
        """Kill a node that has replicas while clients ask."""
        rng = self._prepare(seed)
        with asking(self._server.base_url, self._key) as answers:
            time.sleep(_BEFORE_S + rng.uniform(0, 1))
            doomed, may_fail = self._choose(rng)
            killed_at = self._nodes.kill(doomed)
            self._settle()
            recover_s = time.monotonic() - killed_at
            time.sleep(_AFTER_S)
        point = self._judge(answers, killed_at, may_fail=may_fail)
        point.figures["recover_s"] = round(recover_s, 2)
        self._nodes.add()
        return point

    def kill_a_node_while_swapping(self, seed: int) -> Point:
        """Kill a node after a new snapshot was written, before it is in force or just then."""
        rng = self._prepare(seed)
        old = current_id(self._folder) or ""
        cursors = [self._client.search(asked) for asked in QUERIES]
        with asking(self._server.base_url, self._key) as answers:
            new = self._write_next()
            time.sleep(rng.uniform(0.0, 1.0) * self._usual_swap_s)
            doomed, may_fail = self._choose(rng)
            killed_at = self._nodes.kill(doomed)
            pages = [self._follow(first) for first in cursors]
            wait_until(lambda: self._client.search(QUERIES[0]).snapshot == new)
            self._settle()
            recover_s = time.monotonic() - killed_at
            time.sleep(_AFTER_S)
            pages += [self._follow(first) for first in cursors]
        self.one_machine.learn()
        point = self._judge(answers, killed_at, may_fail=may_fail)
        point.require(not went_back(answers, old), "no answer goes back to the old snapshot")
        point.require(all(page == right for page, right in pages), "cursors live on")
        point.figures |= {
            "recover_s": round(recover_s, 2),
            "from_the_old": sum(one.snapshot == old for one in answers),
            "cursors": len(pages),
        }
        self._nodes.add()
        return point

    def kill_a_replica(self, seed: int) -> Point:
        """Kill the process of one replica while clients ask; nobody may notice."""
        rng = np.random.default_rng(seed)
        with asking(self._server.base_url, self._key) as answers:
            time.sleep(_BEFORE_S)
            places = [place for place in self._places() if place is not None]
            killed_at = time.monotonic()
            os.kill(places[int(rng.integers(len(places)))][1], signal.SIGKILL)
            self._settle()
            recover_s = time.monotonic() - killed_at
            time.sleep(_AFTER_S)
        point = self._judge(answers, killed_at, may_fail=False)
        point.figures["recover_s"] = round(recover_s, 2)
        return point

    def stop_a_replica(self, _seed: int) -> Point:
        """Keep one replica from answering: a slow shard, which nobody may notice."""
        return self._stop(1, may_fail=False)

    def stop_a_shard(self, _seed: int) -> Point:
        """Keep all replicas of a shard from answering: a 503 in time, and never a short page."""
        return self._stop(N_REPLICAS, may_fail=True)

    # -- what they have in common -------------------------------------------------------------

    def _stop(self, count: int, *, may_fail: bool) -> Point:
        doomed = [psutil.Process(place[1]) for place in self._places()[:count] if place]
        with asking(self._server.base_url, self._key) as answers:
            time.sleep(_BEFORE_S)
            stopped_at = time.monotonic()
            for process in doomed:
                process.suspend()
            time.sleep(_STOPPED_S)
            for process in doomed:
                process.resume()
            resumed_at = time.monotonic()
            wait_until(lambda: self._client.search(QUERIES[0]).status == 200)
            recover_s = time.monotonic() - resumed_at
            self._settle()
            time.sleep(_AFTER_S)
        point = self._judge(answers, stopped_at, may_fail=may_fail)
        if may_fail:
            point.require(point.figures["errors"], "a shard that is gone is told")
        point.figures["recover_s"] = round(recover_s, 2)
        return point

    def _judge(self, answers: list[Answer], since: float, *, may_fail: bool) -> Point:
        """Compare all answers with one machine's, and errors with what they may be."""
        point = Point()
        good = [one for one in answers if one.status == 200]
        bad = [one for one in answers if one.status != 200]
        wrong = sum(not self.one_machine.is_right(one) for one in good)
        longest_s = max(one.took_s for one in answers)
        point.require(not wrong, f"answers are one machine's, got {wrong} others")
        statuses = Counter(one.status for one in bad)
        point.require(set(statuses) <= {503}, f"an error is a 503, got {dict(statuses)}")
        point.require(
            may_fail or not bad, f"two replicas on two nodes cost no error, got {len(bad)}"
        )
        point.require(longest_s < TIMEOUT_S + _SLACK_S, f"all come in time, got {longest_s:.1f} s")
        point.require(answers[-1].status == 200, "all is answered again")
        point.figures = {
            "answers": len(good),
            "errors": len(bad),
            "wrong": wrong,
            "longest_s": round(longest_s, 2),
            "shard_lost": int(may_fail),
        }
        if bad:
            point.figures["last_error_s"] = round(max(one.ended for one in bad) - since, 2)
        return point

    def _choose(self, rng: np.random.Generator) -> tuple[Any, bool]:
        """Choose a node with replicas; says whether it has all replicas of a shard."""
        places = self._places()
        lived_in = sorted({place[0] for place in places if place is not None})
        doomed = lived_in[int(rng.integers(len(lived_in)))]
        shards = np.array([p is not None and p[0] != doomed for p in places])
        safe = shards.reshape(N_SHARDS, N_REPLICAS).any(axis=1).all()
        return self._nodes.of(doomed), not safe

    def _prepare(self, seed: int) -> np.random.Generator:
        """Before every second point, start replicas again that Ray has put on one node."""
        for _ in range(_TRIES if seed % 2 == 0 else 0):
            nodes = np.array([place and place[0] for place in self._places()])
            together = [len(set(some)) < N_REPLICAS for some in nodes.reshape(N_SHARDS, N_REPLICAS)]
            if not any(together):
                break
            self._nodes.restart(self._replicas()[N_REPLICAS * together.index(True)])
        self._settle()
        return np.random.default_rng(seed)

    def _places(self) -> list[tuple[str, int] | None]:
        """Return node and process of every replica, the first shard's first."""
        return self._nodes.where(self._replicas())

    def _replicas(self) -> list[Any]:
        """Return the actors, the first shard's first."""
        import ray
        from ray.util import list_named_actors

        named = list_named_actors(all_namespaces=True)
        names = sorted(one["name"] for one in named if one["namespace"] == "searchlab")
        return [ray.get_actor(name, namespace="searchlab") for name in names]

    def _settle(self) -> None:
        """Wait until every replica answers, on Ray and to the server."""

        def all_answer() -> bool:
            places = self._places()
            return len(places) == N_SHARDS * N_REPLICAS and None not in places

        wait_until(all_answer)
        wait_until(lambda: self._client.replicas() == [N_REPLICAS] * N_SHARDS)

    def _follow(self, first: Answer) -> tuple[object, object]:
        """Ask for the second page until it is answered; returns it and one machine's."""
        page = self._client.search({"cursor": first.cursor})
        while page.status == 503:
            time.sleep(_SLACK_S / 10)
            page = self._client.search({"cursor": first.cursor})
        return page.photos, self.one_machine.page(first.snapshot, first.asked["q"], 1)

    def _write_next(self) -> str:
        self._n += _GROWTH
        self._write()
        return current_id(self._folder) or ""

    def _write(self) -> None:
        write_library(self._folder, self._rows[: self._n], self._seed)
