"""A node killed while shards build their indexes; a shard's wrong snapshot, and its full disk."""

from __future__ import annotations

import resource
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.cluster.fault_points import Point
from benchmarks.cluster.faulty_nodes import Nodes, wait_until
from benchmarks.opening.bench_opening import write_library
from searchlab.cluster.ray_shards import RayShards
from searchlab.cluster.shard_actors import ShardActors, ShardPlan
from searchlab.cluster.shard_files import Place, manifest_digest, open_part
from searchlab.cluster.sharded_index import ShardedIndex
from searchlab.cluster.shards import LocalShards, cut_evenly
from searchlab.errors import MismatchError, UnavailableError
from searchlab.library.library import Library, open_library
from searchlab.library.snapshots import current_id
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes import VectorIndex

K = 20
PLAN = ShardPlan(n_shards=2, cpus=1.0, timeout_s=5.0, open_timeout_s=60.0)
_TRY_S = 0.2  # between two tries, as a client that is told to come again would make
_MOST_BYTES = 1_000  # of a file on a disk that is full


class BuildingFaults:
    """Opens the same library on new actors again and again, which must build its indexes."""

    def __init__(
        self, folder: Path, nodes: Nodes, rows: Embeddings, queries: Embeddings, seed: int
    ) -> None:
        """Write the library, and build and open it on one machine, and while nobody dies."""
        self._folder, self._nodes, self._queries = folder / "built", nodes, queries
        write_library(self._folder, rows, seed)
        shutil.copytree(self._folder, folder / "alone")
        self._expected = answers_of(open_here(folder / "alone"), queries)
        with self._actors() as actors:
            began = time.monotonic()
            _ = self._library(actors).engine
            self._usual_s = time.monotonic() - began

    def kill_a_node(self, seed: int) -> Point:
        """Kill a node on which a shard is built, and open the library all the same."""
        rng, point, nodes = np.random.default_rng(seed), Point(), self._nodes
        with self._actors() as actors:
            places = nodes.where(replica.handle for some in actors.shards for replica in some)
            doomed = nodes.of(places[int(rng.integers(PLAN.n_shards))][0])
            killed: list[float] = []
            killing = threading.Timer(
                rng.uniform(0.0, 1.0) * self._usual_s, lambda: killed.append(nodes.kill(doomed))
            )
            killing.start()
            library = self._library(actors)
            errors, longest_s = self._open(library)
            killing.join()
            index = library.engine.index
            answers, more, waited_s = self._ask(index)
            recovered_at = time.monotonic()
        point.require(answers == self._expected, "answers are those of the same parts here")
        point.require(max(longest_s, waited_s) < PLAN.open_timeout_s, "errors come in time")
        names = [path.name for path in self._indexes.iterdir()]
        whole = [name for name in names if not name.startswith(".")]
        point.require(len(whole) == PLAN.n_shards, f"each index is kept once, got {names}")
        point.figures = {
            "answers": len(answers),
            "errors": errors + more,
            "wrong": sum(a != b for a, b in zip(answers, self._expected, strict=True)),
            "recover_s": round(recovered_at - killed[0], 2),
            "longest_s": round(max(longest_s, waited_s), 2),
        }
        nodes.add()
        return point

    def refuse_another_snapshot(self, _seed: int) -> Point:
        """Ask a shard for a snapshot of the same name with other content."""
        point = Point()
        with self._actors() as actors:
            wrong = replace(self._places()[0], manifest="0" * 64)
            handle = actors.shards[0][0].handle
            for method, words, kind in (
                ("open", (wrong,), MismatchError),
                ("answer", (wrong, "tell", {}), UnavailableError),
            ):
                error = getattr(handle, method).remote(*words).future().exception()
                point.require(isinstance(error, kind), f"{method} is refused, got {error!r}")
            library = self._library(actors)
            point.require(
                answers_of(library.engine.index, self._queries) == self._expected,
                "the right one is answered from all the same",
            )
        point.figures = {"answers": len(self._queries), "errors": 2, "wrong": len(point.broken)}
        return point

    def fill_a_disk(self, _seed: int) -> Point:
        """Let the node of one shard have no room for its index, and then some."""
        point = Point()
        with self._actors() as actors:
            handle = actors.shards[1][0].handle
            ((_, process),) = self._nodes.where([handle])
            limits = resource.prlimit(process, resource.RLIMIT_FSIZE)
            resource.prlimit(process, resource.RLIMIT_FSIZE, (_MOST_BYTES, limits[1]))
            answers = answers_of(self._library(actors).engine.index, self._queries)
            point.require(answers == self._expected, "it answers from memory")
            told = handle.attend.remote("bench").future().result(PLAN.timeout_s)
            point.require(any("must be kept in" in one for one in told), f"it is told, got {told}")
            names = [path.name for path in self._indexes.iterdir()]
            point.require(len(names) == 1, f"nothing of it is left there, got {names}")
            resource.prlimit(process, resource.RLIMIT_FSIZE, limits)
            began = time.monotonic()
            wrong = sum(a != b for a, b in zip(answers, self._expected, strict=True))
            self._nodes.restart(handle)
            answers, errors, longest_s = self._ask(self._library(actors).engine.index)
            took_s = time.monotonic() - began
            point.require(answers == self._expected, "it answers after it was started again")
            point.require(len(list(self._indexes.iterdir())) == PLAN.n_shards, "and is kept then")
        point.figures = {
            "answers": 2 * len(answers),
            "errors": errors,
            "wrong": wrong,
            "recover_s": round(took_s, 2),
            "longest_s": round(longest_s, 2),
        }
        return point

    @property
    def _indexes(self) -> Path:
        return self._folder / "cluster" / "indexes"

    def _places(self) -> list[Place]:
        return places_of(self._folder, PLAN.n_shards)

    @contextmanager
    def _actors(self) -> Iterator[ShardActors]:
        """Start actors for a library whose indexes nobody has built."""
        shutil.rmtree(self._folder / "cluster", ignore_errors=True)
        self._nodes.wait_for_processors()
        actors = ShardActors(self._folder, PLAN)
        try:
            handles = [replica.handle for some in actors.shards for replica in some]
            wait_until(lambda: all(self._nodes.where(handles)))
            yield actors
        finally:
            actors.close()

    def _library(self, actors: ShardActors) -> Library:
        return Library(self._folder, open_vectors=RayShards(self._folder, actors).open_vectors)

    def _open(self, library: Library) -> tuple[int, float]:
        """Open it again and again until that works; returns the errors and the longest wait."""
        errors, longest_s = 0, 0.0
        while True:
            began = time.monotonic()
            try:
                _ = library.engine
            except UnavailableError:
                errors += 1
                time.sleep(_TRY_S)
            else:
                return errors, max(longest_s, time.monotonic() - began)
            longest_s = max(longest_s, time.monotonic() - began - _TRY_S)

    def _ask(self, index: VectorIndex) -> tuple[list[bytes], int, float]:
        """Ask every query until it is answered; returns answers, errors and the longest wait."""
        answers: list[bytes] = []
        errors, longest_s = 0, 0.0
        while len(answers) < len(self._queries):
            began = time.monotonic()
            query = self._queries[len(answers)]
            try:
                answers += answers_of(index, query[np.newaxis])
            except UnavailableError:
                errors += 1
                time.sleep(_TRY_S)
            longest_s = max(longest_s, time.monotonic() - began)
        return answers, errors, longest_s


def places_of(folder: Path, n_shards: int) -> list[Place]:
    """Return the parts of the snapshot in force."""
    library = open_library(folder)
    name = current_id(folder) or ""
    digest = manifest_digest(folder, name)
    cuts = cut_evenly(len(library.engine.table), n_shards)
    return [Place(name, digest, rows.start, rows.stop) for rows in cuts]


def open_here(folder: Path) -> VectorIndex:
    """Open the same parts in this process."""
    parts = [open_part(folder, place) for place in places_of(folder, PLAN.n_shards)]
    return ShardedIndex(LocalShards(parts), open_library(folder).engine.config)


def answers_of(index: VectorIndex, queries: Embeddings) -> list[bytes]:
    """Search one query after the other; returns rows and scores of each, to the last bit."""
    found = [index.search(query[np.newaxis], K) for query in queries]
    return [one.rows.tobytes() + one.scores.tobytes() for one in found]
