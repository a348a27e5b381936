"""Nodes killed on a cluster of several: answers of one machine, or an error in time, and recovery.

These are a few of the points that `benchmarks.cluster.bench_faults` makes and records; embedding
on nodes that die is in `test_ray_runners`.
"""

from contextlib import closing

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'searchlab[cluster]'")

from benchmarks.cluster.building_faults import BuildingFaults
from benchmarks.cluster.faulty_nodes import Nodes
from benchmarks.cluster.serving_faults import ServingFaults
from searchlab.progress import Progress
from searchlab.studies.vectors.scenes import Scenes, open_scenes

pytestmark = pytest.mark.slow

N_PHOTOS = 1_000


@pytest.fixture(scope="module")
def nodes():
    pytest.importorskip("ray", reason="ray: pip install 'searchlab[cluster]'")
    with pytest.MonkeyPatch.context() as patch:
        # Ray asks three times within two seconds, not five times in a quarter of a minute.
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_failure_threshold", "3")
        with closing(Nodes(3)) as made:
            yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("faults").resolve()


@pytest.fixture(scope="module")
def rows(folder):
    return open_scenes(folder, 2 * N_PHOTOS, 256, seed=0, progress=Progress())[0]


def test_a_node_that_dies_while_shards_are_built_and_one_with_a_full_disk(nodes, folder, rows):
    queries = Scenes(256, seed=0).queries(5)
    faults = BuildingFaults(folder, nodes, rows[:N_PHOTOS], queries, 0)
    for point in (
        faults.kill_a_node(1),
        faults.refuse_another_snapshot(1),
        faults.fill_a_disk(1),
    ):
        assert point.broken == []
        assert point.figures["answers"] >= len(queries)


def test_nodes_that_die_under_load_and_while_a_snapshot_is_swapped(nodes, folder, rows):
    with closing(ServingFaults(folder, nodes, rows, N_PHOTOS, 0)) as serving:
        for point in (serving.kill_a_replica(1), serving.kill_a_node_while_swapping(1)):
            assert point.broken == []
            assert point.figures["answers"] > 0
