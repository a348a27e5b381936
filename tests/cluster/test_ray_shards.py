"""Shards as actors on Ray: one machine's answers, whoever dies, and never a part of them."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from searchlab.cluster import shard_server
from searchlab.cluster.connecting import connect
from searchlab.cluster.ray_shards import serve_shards
from searchlab.cluster.shard_actors import ShardActors, ShardPlan
from searchlab.cluster.shard_files import Place, manifest_digest, open_part
from searchlab.cluster.shard_server import ShardServer
from searchlab.config import Config
from searchlab.errors import InputError, MismatchError, MissingExtraError, UnavailableError
from searchlab.library.library import open_library
from searchlab.library.snapshots import current_id
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import library_world
from tests.support.disks import full_disk
from tests.support.library_world import ALL, ranked

QUERIES = (
    Query(text="red"),
    Query(text="dark blue", filter=PhotoFilter(orientation="landscape"), sort_by="newest"),
    Query(text="12", score_threshold=0.2),
    ALL,
)


@pytest.mark.slow
def test_a_server_of_a_shard_keeps_the_snapshots_that_cursors_may_name(filled, put, index):
    server, places = ShardServer(str(filled.folder)), []
    for number in range(4):
        put("00.png", 100 + number)
        index()
        name = current_id(filled.folder)
        places.append(Place(name, manifest_digest(filled.folder, name), 8, 16))
        assert server.open(places[-1]) == filled.engine.index.dim
    rows = {"rows": np.arange(8)}
    vectors = filled.engine.index.vectors[8:16]
    assert server.answer(places[-1], "index.read_rows", rows).tobytes() == vectors.tobytes()
    other = Place(places[-1].snapshot_id, "0" * 64, 8, 16)
    with pytest.raises(MismatchError, match="got another of that name"):
        server.open(other)
    # Where it is asked all the same, as one is that was started again: another replica may have it.
    with pytest.raises(UnavailableError, match="got another of that name"):
        server.answer(other, "index.read_rows", rows)


def test_questions_about_a_part_that_opens_slowly_are_refused_and_others_answered(
    filled, monkeypatch
):
    server, name = ShardServer(str(filled.folder)), current_id(filled.folder)
    digest = manifest_digest(filled.folder, name)
    quick, slow = Place(name, digest, 0, 8), Place(name, digest, 8, 16)
    rows = {"rows": np.arange(8)}
    may_open = threading.Event()

    def open_slowly(folder, place):
        assert place == quick or may_open.wait(60)
        return open_part(folder, place)

    monkeypatch.setattr(shard_server, "open_part", open_slowly)
    monkeypatch.setattr(shard_server, "_OPENING_S", 0.1)
    server.open(quick)
    with ThreadPoolExecutor() as pool:
        opening = pool.submit(server.open, slow)
        for _ in range(3):
            with pytest.raises(UnavailableError, match="it is opened for 0 s already; ask again"):
                server.answer(slow, "index.read_rows", rows)
        vectors = filled.engine.index.vectors
        answer = server.answer(quick, "index.read_rows", rows)
        assert answer.tobytes() == vectors[:8].tobytes()
        assert server.attend("a") == []
        may_open.set()
        assert opening.result(60) == filled.engine.index.dim
    answer = server.answer(slow, "index.read_rows", rows)
    assert answer.tobytes() == vectors[8:16].tobytes()


def test_a_server_of_a_shard_tells_what_is_wrong_though_it_answers(library, put, index):
    for number in range(24):
        put(f"{number:02d}.png", number)
    index(config=library_world.GRAPH)
    name = current_id(library.folder)
    server, place = ShardServer(str(library.folder)), Place(name, "", 8, 16)
    place = replace(place, manifest=manifest_digest(library.folder, name))
    with full_disk(room=1_000):
        server.open(place)
    (problem,) = server.attend("a")
    assert "No space left" in problem
    vectors = library.engine.index.vectors[8:16]
    rows = server.answer(place, "index.read_rows", {"rows": np.arange(8)})
    assert rows.tobytes() == vectors.tobytes()


def test_serving_on_shards_needs_an_address_and_ray(filled, monkeypatch):
    with (
        pytest.raises(InputError, match="must be ray:local or ray:ADDRESS, got 'local'"),
        serve_shards(filled.folder, "local", n_shards=2),
    ):
        pass
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[cluster\]'"),
        serve_shards(filled.folder, "ray:local", n_shards=2),
    ):
        pass


@pytest.mark.parametrize(
    "wrong", [{"n_shards": 0}, {"n_shards": 2, "n_replicas": 0}, {"n_shards": 2, "timeout_s": 0}]
)
def test_numbers_that_are_too_small_are_refused(wrong):
    with pytest.raises(InputError, match="shards and replicas must be at least 1, processors"):
        ShardPlan(**wrong)


def ended_after(act, patience_s):
    ended = threading.Event()
    server = ShardServer("nowhere", patience_s, ended.set)
    act(server)
    return ended


def test_a_shared_server_ends_when_the_last_process_leaves_it():
    def both_come_and_one_leaves(server):
        server.attend("a")
        server.attend("b")
        server.leave("a")

    ended = ended_after(both_come_and_one_leaves, 60)
    assert not ended.wait(0.2)

    def both_leave(server):
        both_come_and_one_leaves(server)
        server.leave("b")
        server.attend("b")

    assert ended_after(both_leave, 60).wait(5)


def test_a_shared_server_ends_when_nobody_has_attended_for_long():
    assert ended_after(lambda server: server.attend("a"), 0.2).wait(5)
    assert ended_after(lambda server: None, 0.2).wait(5)


def test_a_server_of_one_process_never_ends_by_itself():
    n_threads = threading.active_count()
    ShardServer("nowhere").leave("a")
    assert threading.active_count() == n_threads


# -- on Ray -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray(two_workers):
    return two_workers


def served(library, n_shards, n_replicas=1, **options):
    options = {"cpus": 0.1, "timeout_s": 20.0} | options
    return serve_shards(
        library.folder, "ray:local", n_shards=n_shards, n_replicas=n_replicas, **options
    )


@pytest.mark.slow
def test_a_library_on_actors_ranks_as_one_machine_does(ray, filled):
    with served(filled, 3) as there:
        for query in QUERIES:
            here, ranking = filled.engine.rank(query), there.engine.rank(query)
            assert ranking.rows.tolist() == here.rows.tolist()
            assert ranking.scores.tobytes() == here.scores.tobytes()
            assert ranking.total == here.total
        by_photo = Query(photo_id=filled.engine.table.photo_ids([9])[0])
        assert ranked(there, by_photo) == ranked(filled, by_photo)


@pytest.mark.slow
def test_a_graph_is_searched_on_every_shard(ray, library, put, index):
    for number in range(24):
        put(f"{number:02d}.png", number)
    index(config=Config(model="palette", index="hnsw", step_rows=0, depth=5, ef_search=300))
    with served(library, 2) as there:
        plan = there.engine.plan(Query(text="red"))
        assert plan.explain().startswith("graph: on each of 2 shards")
        assert len(ranked(there, Query(text="red"))) == 24
    assert len(list((library.folder / "cluster" / "indexes").iterdir())) == 2


@pytest.mark.slow
def test_a_lost_replica_costs_no_error_and_a_lost_shard_is_told_in_time(ray, filled):
    with served(filled, 2, n_replicas=2) as there:
        expected = ranked(filled, QUERIES[0])
        assert ranked(there, QUERIES[0]) == expected
        # What `serve_shards` holds; which shard it is matters to nobody.
        _, (first, second) = there._engines._open_vectors.__self__.actors.shards
        ray.kill(first.handle, no_restart=True)
        for _ in range(5):
            assert ranked(there, QUERIES[0]) == expected
        ray.kill(second.handle, no_restart=True)
        started = time.monotonic()
        with pytest.raises(UnavailableError, match="shard 2 of 2 must answer within 20 s"):
            there.search(QUERIES[0])
        assert time.monotonic() - started < 25


@pytest.mark.slow
def test_an_actor_that_is_started_again_opens_what_it_is_asked_about(ray, filled):
    with served(filled, 2, n_replicas=2) as there:
        expected = ranked(filled, QUERIES[0])
        assert ranked(there, QUERIES[0]) == expected
        for some in there._engines._open_vectors.__self__.actors.shards:
            ray.kill(some[0].handle, no_restart=False)
        for _ in range(5):
            assert ranked(there, QUERIES[0]) == expected


@pytest.mark.slow
def test_an_actor_that_opens_slowly_answers_who_attends_to_it(ray, tmp_path):
    manifest = tmp_path / "snapshots" / "slow" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    os.mkfifo(manifest)  # read until somebody has written
    with connect("ray:local"):
        actors = ShardActors(tmp_path, ShardPlan(1, cpus=0.1))
        (replica,) = actors.shards[0]
        replica.attend("a").result(60)
        slow = Place("slow", "", 0, 8)
        asked = [replica.answer(slow, "index.read_rows", {}) for _ in range(100)]
        opening = replica.open(slow)
        assert replica.attend("a").result(5) == []
        for one in asked:
            with pytest.raises(UnavailableError, match="is opened for"):
                one.result(20)
        manifest.write_text("{}")
        with pytest.raises(MismatchError, match="got another of that name"):
            opening.result(20)
        actors.close()


@pytest.mark.slow
def test_a_new_snapshot_is_opened_by_all_and_cursors_go_on_in_the_old_one(
    ray, filled, put, index, photos
):
    with served(filled, 3) as there:
        first = there.search(QUERIES[0], per_page=5)
        (photos / "07.png").unlink()
        put("99.png", 99)
        index()
        fresh = open_library(filled.folder)
        assert ranked(there, QUERIES[0]) == ranked(fresh, QUERIES[0])
        ours = there.search(cursor=first.next_cursor)
        theirs = fresh.search(cursor=first.next_cursor)
        assert [hit.photo.photo_id for hit in ours] == [hit.photo.photo_id for hit in theirs]


@pytest.mark.slow
def test_a_snapshot_that_a_shard_cannot_open_does_not_come_into_force(ray, filled, put, index):
    with served(filled, 2) as there:
        old = there.engine
        expected = ranked(there, QUERIES[0])
        put("99.png", 99)
        index()
        vectors = filled.folder / "snapshots" / current_id(filled.folder) / "vectors.npy"
        vectors.write_bytes(vectors.read_bytes()[:-40])
        with pytest.raises(Exception, match=r"vectors.npy"):
            _ = there.engine
        page = old.search(QUERIES[0], per_page=100)
        assert [hit.photo.file.rpartition("/")[2] for hit in page] == expected
