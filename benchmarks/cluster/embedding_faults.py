"""A node killed while pictures are embedded on several."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.cluster.fault_points import Point
from benchmarks.cluster.faulty_nodes import CPUS, Nodes
from benchmarks.cluster.noting_model import BLUE, SPEC, read_notes
from searchlab.cluster.runners import open_runner
from searchlab.library.ingest import IndexReport, index_photos
from searchlab.library.library import create_library
from searchlab.progress import Progress, Step

N_PICTURES = 144
SHARD = 16
"""Pictures of a task."""
_LATER_S = 1.0  # at most, after so many pictures that a node is killed


class EmbeddingFaults:
    """Indexes the same folder of pictures again and again."""

    def __init__(self, folder: Path, nodes: Nodes | None) -> None:
        """Draw the pictures, and index them on one machine.

        Args:
            folder: Where all nodes may write.
            nodes: The cluster; if left out, there are no faults to be made.
        """
        self._folder, self._nodes = folder, nodes
        self._photos, self._notes = folder / "photos", folder / "notes"
        self._photos.mkdir()
        self._notes.mkdir()
        for number in range(N_PICTURES):
            pixels = np.full((20, 30, 3), (number, 255 - number, BLUE), dtype=np.uint8)
            Image.fromarray(pixels).save(self._photos / f"{number:03d}.png")
        self._expected = self._index(None)
        read_notes(self._notes)

    def kill_a_node(self, seed: int) -> Point:
        """Kill a node somewhere in the middle, and compare the library with one machine's."""
        rng, point, nodes = np.random.default_rng(seed), Point(), self._nodes
        nodes.wait_for_processors()
        killed: list[float] = []
        doomed = nodes.nodes[int(rng.integers(len(nodes.nodes)))]
        killing = threading.Timer(
            rng.uniform(0.0, _LATER_S), lambda: killed.append(nodes.kill(doomed))
        )
        n_before = SHARD * int(rng.integers(N_PICTURES // SHARD - len(nodes.nodes)))
        report = self._index(f"ray:{nodes.address}", _Started(killing, n_before))
        ended_at = time.monotonic()
        killing.join()
        notes = read_notes(self._notes)
        times = Counter(len(at) for at in notes.values())
        again = [max(at) for at in notes.values() if len(at) > 1]
        point.require(report == self._expected, "the library is the one that one machine makes")
        point.require(len(notes) == N_PICTURES, "every picture is embedded")
        point.require(
            set(times) <= {1, 2} and times[2] <= SHARD, "a task under way is done twice at most"
        )
        point.figures = {"answers": len(notes), "embedded_twice": times[2], "wrong": 0, "errors": 0}
        point.figures["wrong"] = int(report != self._expected)
        point.require(killed[0] < ended_at, "the node is killed before the end")
        if again:
            point.figures["recover_s"] = round(max(again) - killed[0], 2)
        nodes.add()
        return point

    def index_once(self) -> Point:
        """Index on one machine once more, with no fault."""
        report = self._index(None)
        point = Point({"answers": len(read_notes(self._notes))})
        point.figures["wrong"] = int(report != self._expected)
        return point

    def _index(self, on: str | None, progress: Progress | None = None) -> IndexReport:
        runner = open_runner(on, cpus=CPUS, most_pictures=SHARD) if on else None
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            library = create_library(Path(name) / "library")
            spec = f"{SPEC}:{self._notes}"
            return index_photos(
                library, [self._photos], model=spec, runner=runner, progress=progress
            )


class _Started(Progress):
    """Starts a timer once so many pictures are done."""

    def __init__(self, timer: threading.Timer, n_pictures: int) -> None:
        self._timer, self._left = timer, n_pictures

    @contextmanager
    def step(self, name: str, total: int | None = None, *, unit: str = "") -> Iterator[Step]:
        with super().step(name, total, unit=unit) as step:
            if name != "embedding photos":
                yield step
                return
            self._count(0)
            yield replace(step, advance=self._count)

    def _count(self, n_pictures: int) -> None:
        self._left -= n_pictures
        if self._left <= 0 and not self._timer.ident:
            self._timer.start()
