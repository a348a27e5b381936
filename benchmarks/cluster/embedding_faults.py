"""A node killed while pictures are embedded on several."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.cluster.fault_points import Point
from benchmarks.cluster.faulty_nodes import CPUS, Nodes
from benchmarks.cluster.noting_model import BLUE, SPEC, read_notes
from searchlab.cluster.runners import open_runner
from searchlab.library.ingest import IndexReport, index_photos
from searchlab.library.library import create_library

N_PICTURES = 144
SHARD = 16
"""Pictures of a task."""


class EmbeddingFaults:
    """Indexes the same folder of pictures again and again."""

    def __init__(self, folder: Path, nodes: Nodes | None) -> None:
        """Draw the pictures, index them on one machine, and on all nodes while nobody dies.

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
        self._expected = self._index(on_nodes=False)
        read_notes(self._notes)
        if nodes is not None:
            began = time.monotonic()
            self._index(on_nodes=True)
            self._usual_s = time.monotonic() - began
            read_notes(self._notes)

    def kill_a_node(self, seed: int) -> Point:
        """Kill a node somewhere in the middle, and compare the library with one machine's."""
        rng, point, nodes = np.random.default_rng(seed), Point(), self._nodes
        assert nodes is not None
        nodes.wait_for_processors()
        killed: list[float] = []
        doomed = nodes.nodes[int(rng.integers(len(nodes.nodes)))]
        delay = rng.uniform(0.1, 0.9) * self._usual_s
        killing = threading.Timer(delay, lambda: killed.append(nodes.kill(doomed)))
        killing.start()
        report = self._index(on_nodes=True)
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
        if again and killed:
            point.figures["recover_s"] = round(max(again) - killed[0], 2)
        nodes.add()
        return point

    def index_once(self) -> Point:
        """Index on one machine once more, with no fault."""
        report = self._index(on_nodes=False)
        point = Point({"answers": len(read_notes(self._notes))})
        point.figures["wrong"] = int(report != self._expected)
        return point

    def _index(self, *, on_nodes: bool) -> IndexReport:
        runner = None
        if on_nodes and self._nodes is not None:
            runner = open_runner(f"ray:{self._nodes.address}", cpus=CPUS, most_pictures=SHARD)
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            library = create_library(Path(name) / "library")
            spec = f"{SPEC}:{self._notes}"
            return index_photos(library, [self._photos], model=spec, runner=runner)
