"""What a cluster costs its users when nodes die: errors, wrong answers, and time to recover.

    python -m benchmarks.cluster.bench_faults  # needs the extra `cluster`; half an hour
    python -m benchmarks.cluster.bench_faults --smoke --out "$(mktemp -d)"

Writes results/faults/<dataset>/nodes.json. On a Ray cluster of several nodes on this machine
(`ray.cluster_utils.Cluster`) a node is killed, all its processes at once, at --points points:

- `embedding`: while `index_photos` embeds pictures on all nodes. The library must be the one that
  one machine makes, and no more is embedded twice than the task that was under way there.
- `building`: while shards without replicas build the indexes of their parts. Opening may fail in
  time, and then works; answers are those of the same parts in one process, to the last bit.
- `querying`: while clients ask a server over HTTP whose two shards have two replicas each.
- `swapping`: the same while the server takes a new snapshot: each answer is one machine's from the
  snapshot that it names, none goes back to the old one, and cursors live on.

When a node is killed is drawn from the seed of the point. Ray takes a quarter of a minute to see
that a node is gone, which is most of the times here. Further faults: `replica`, the process of
one replica killed under load; `slow replica` and `silent shard`, one or all replicas of a shard
stopped for a while; `wrong snapshot`, which a shard must refuse; `full disk` of the node of one
shard; `head`, killed under load and started again at its address, before and after Ray's processes
give it up, for which they are given 20 s instead of 60.

Of each fault there are the `answers` and how many of them are `wrong`, `errors` (503, or a
connection that broke where the head dies), `longest_s` that anybody waited, `recover_s` until all
replicas answer as before, and what promises were `broken`, in words. `shard_lost` counts points
where all replicas of a shard lay on the killed node; elsewhere no error is allowed. Ray may bring
replicas back on one node; before every second point those are started again until they lie apart.

A point is on record as soon as it is known, and a run that was interrupted goes on where it was.
--smoke makes no fault, and says nothing of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.cluster.building_faults import BuildingFaults
from benchmarks.cluster.embedding_faults import EmbeddingFaults
from benchmarks.cluster.fault_points import Point, Record
from benchmarks.cluster.faulty_nodes import Nodes
from benchmarks.cluster.head_faults import restart_the_head
from benchmarks.cluster.serving_faults import ServingFaults
from benchmarks.common.recording import bench_parser
from searchlab.models import load_model
from searchlab.progress import Progress
from searchlab.studies.vectors.scenes import Scenes, open_scenes

N_NODES = 3
N_PHOTOS = 6_000
N_QUERIES = 20
SHARES = {"embedding": 0.28, "building": 0.2, "querying": 0.26, "swapping": 0.26}
"""How the points are divided."""
ONCE = {"replica": 3, "head": 2}
"""How often other faults are made, where that is not once."""


def run(options: argparse.Namespace, points: Record, folder: Path) -> None:
    """Make all faults that are not on record."""
    counts = {kind: round(share * options.points) for kind, share in SHARES.items()}
    rows, _ = open_scenes(
        folder, 2 * N_PHOTOS, load_model("mini").dim, seed=options.seed, progress=Progress()
    )
    queries = Scenes(rows.shape[1], seed=options.seed).queries(N_QUERIES)

    def measure(kind: str, make: Callable[[int], Point]) -> None:
        points.measure(kind, counts.get(kind, ONCE.get(kind, 1)), make)

    with closing(Nodes(N_NODES)) as nodes:
        measure("embedding", EmbeddingFaults(folder, nodes).kill_a_node)
        building = BuildingFaults(folder, nodes, rows[:N_PHOTOS], queries, options.seed)
        measure("building", building.kill_a_node)
        measure("wrong snapshot", building.refuse_another_snapshot)
        measure("full disk", building.fill_a_disk)
        with closing(ServingFaults(folder, nodes, rows, N_PHOTOS, options.seed)) as serving:
            measure("replica", serving.kill_a_replica)
            measure("slow replica", serving.stop_a_replica)
            measure("silent shard", serving.stop_a_shard)
            measure("querying", serving.kill_a_node)
            measure("swapping", serving.kill_a_node_while_swapping)
    measure("head", lambda seed: restart_the_head(folder, seed))


def main() -> None:
    """Measure and record."""
    parser = bench_parser(__doc__, dataset="scenes-6k", datasets=("scenes-6k",))
    parser.add_argument("--points", type=int, default=50, help="nodes that are killed")
    options = parser.parse_args()
    parameters = {"nodes": N_NODES, "points": options.points, "n_photos": N_PHOTOS}
    points = Record(options, "faults", "nodes", parameters)
    with tempfile.TemporaryDirectory(prefix="searchlab-faults-") as name:
        folder = Path(name).resolve()
        if options.smoke:
            points.measure("none", 1, lambda _: EmbeddingFaults(folder, None).index_once())
            return
        try:
            run(options, points, folder)
        except KeyboardInterrupt:
            sys.exit("stopped: the points that are done are on record")
    for figure, value in points.figures().items():
        sys.stdout.write(f"{figure:<40}{value:>12,.2f}\n")
    sys.exit(1 if points.broken else 0)


if __name__ == "__main__":
    main()
