"""A new snapshot comes into force on all shards at once or on none, and cursors go on meanwhile."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from searchlab.cluster.ray_shards import RayShards
from searchlab.cluster.shard_actors import ShardPlan
from searchlab.cluster.shard_files import read_cut
from searchlab.cluster.shard_server import ShardServer
from searchlab.errors import DataError, UnavailableError
from searchlab.library.library import Library, open_library
from searchlab.library.snapshots import current_id
from searchlab.search.queries import Query
from tests.support.library_world import ranked

RED = Query(text="red")


class Replica:
    """A server of a shard in this process, which can die and be started again."""

    def __init__(self, folder):
        self.folder, self.is_dead = str(folder), False
        self.start()

    def start(self):
        self.server, self.is_dead = ShardServer(self.folder), False

    def open(self, place):
        return self._call("open", place)

    def answer(self, place, method, arguments):
        return self._call("answer", place, method, arguments)

    def _call(self, method, *words):
        future = Future()
        try:
            if self.is_dead:
                raise ConnectionError
            future.set_result(getattr(self.server, method)(*words))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture(params=[1, 2], ids=["1 replica", "2 replicas"])
def shards(request, filled):
    return [[Replica(filled.folder) for _ in range(request.param)] for _ in range(3)]


@pytest.fixture
def there(filled, shards):
    actors = SimpleNamespace(
        shards=shards,
        plan=ShardPlan(n_shards=3, n_replicas=len(shards[0])),
        is_lost=lambda error: isinstance(error, ConnectionError),
    )
    return Library(filled.folder, open_vectors=RayShards(filled.folder, actors).open_vectors)


def names_of(page):
    return [hit.photo.file.rpartition("/")[2] for hit in page]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_shard_lost_between_the_opens_keeps_the_new_snapshot_out_of_force_everywhere(
    there, shards, filled, put, index, lost
):
    old, expected = there.engine, ranked(there, RED)
    first = there.search(RED, per_page=5)
    cut = read_cut(filled.folder, 3)
    (filled.folder.parent / "photos" / "07.png").unlink()
    put("99.png", 99)
    index()
    for replica in shards[lost]:
        replica.is_dead = True
    with pytest.raises(UnavailableError, match=f"shard {lost + 1} of 3 must open a new snapshot"):
        _ = there.engine
    assert read_cut(filled.folder, 3) == cut

    for replica in shards[lost]:
        replica.start()  # with nothing open
    assert names_of(old.search(RED, per_page=100)) == expected
    fresh = open_library(filled.folder)
    assert ranked(there, RED) == ranked(fresh, RED) != expected
    ours, theirs = (one.search(cursor=first.next_cursor) for one in (there, fresh))
    assert names_of(ours) == names_of(theirs)


def test_one_replica_lost_between_the_opens_does_not_hold_the_new_snapshot(
    there, shards, filled, put, index
):
    if len(shards[0]) == 1:
        pytest.skip("there is no other replica")
    old = there.engine.snapshot_id
    put("99.png", 99)
    index()
    shards[1][0].is_dead = True
    assert there.engine.snapshot_id == current_id(filled.folder) != old
    shards[1][0].start()  # which opens what it is asked about
    for _ in range(4):
        assert ranked(there, RED) == ranked(open_library(filled.folder), RED)


def test_one_replica_that_refuses_keeps_the_new_snapshot_out_of_force(there, shards, put, index):
    expected = ranked(there, RED)
    old = there.engine
    put("99.png", 99)
    index()
    shards[1][0].server.open = lambda place: (_ for _ in ()).throw(DataError("another checksum"))
    with pytest.raises(DataError, match="another checksum"):
        _ = there.engine
    assert names_of(old.search(RED, per_page=100)) == expected
