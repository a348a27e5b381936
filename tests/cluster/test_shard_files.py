"""A part of a snapshot on a shard: the right one or none, its index built once."""

import errno
import logging
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from searchlab.cluster import ray_shards, shard_files, shard_server
from searchlab.cluster.shard_files import (
    Place,
    cut_table,
    first_ids,
    manifest_digest,
    open_part,
    read_cut,
    write_cut,
)
from searchlab.cluster.shard_server import ShardServer
from searchlab.config import Config
from searchlab.errors import DataError, MismatchError
from searchlab.library.snapshots import current_id
from searchlab.search.indexes import build_index
from searchlab.search.indexes.foreign.pgvector import PgvectorIndex
from tests.support.disks import full_disk
from tests.support.tables_in_memory import TablesInMemory


@pytest.fixture
def place(library, put, index):
    """The middle of a library whose index is a graph."""
    for number in range(30):
        put(f"{number:02d}.png", number)
    index(config=Config(model="palette", index="hnsw"))
    name = current_id(library.folder)
    return Place(name, manifest_digest(library.folder, name), 10, 20)


def test_a_part_has_the_vectors_of_its_rows(library, place):
    part = open_part(library.folder, place)
    vectors = library.engine.index.vectors
    assert part.index.vectors.tobytes() == vectors[10:20].tobytes()
    near = part.index.search(vectors[[13]], 10)
    assert sorted(near.rows[0].tolist()) == list(range(10))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"manifest": "0" * 64}, "must be the one that is served, got another of that name"),
        ({"snapshot_id": "000009-00000000"}, "on every node, got none; bring it there"),
        ({"stop": 31}, "a shard must be of 30 photos, got"),
    ],
)
def test_another_snapshot_is_refused(library, place, wrong, message):
    with pytest.raises(MismatchError, match=message):
        open_part(library.folder, replace(place, **wrong))
    with pytest.raises(MismatchError, match="got none"):
        manifest_digest(library.folder, "000009-00000000")


def test_a_manifest_that_cannot_be_read_is_not_told_as_one_that_is_missing(library, place):
    path = library.folder / "snapshots" / place.snapshot_id / "manifest.json"
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=r"manifest.json must be as it was written, got: Is a dir"):
        open_part(library.folder, place)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"NUMPY", b"NUMPI"), (b"{'descr", b"('descr"), (b"<f4", b"<i4"), (b"(30, ", b"(90, ")],
)
def test_vectors_under_another_head_are_refused(library, place, old, new):
    path = library.folder / "snapshots" / place.snapshot_id / "vectors.npy"
    content = path.read_bytes()
    assert old in content[:128]
    path.write_bytes(content.replace(old, new, 1))
    with pytest.raises(DataError, match=r"vectors.npy must be as it was written, got: "):
        open_part(library.folder, place)


def test_an_index_that_there_is_no_room_for_is_told_and_answers_from_memory(library, place):
    indexes = library.folder / "cluster" / "indexes"
    with full_disk(room=1_000):
        part = open_part(library.folder, place)
    assert "must be kept in" in part.problem
    assert "No space left" in part.problem
    assert list(indexes.iterdir()) == []
    query = library.engine.index.vectors[[13]]
    assert sorted(part.index.search(query, 10).rows[0].tolist()) == list(range(10))
    again = open_part(library.folder, place)
    assert (again.problem, len(list(indexes.iterdir()))) == ("", 1)
    assert again.index.search(query, 5).rows.tolist() == part.index.search(query, 5).rows.tolist()


def test_old_indexes_that_cannot_be_deleted_are_told(library, place, monkeypatch):
    assert open_part(library.folder, place).problem == ""
    (old,) = (library.folder / "cluster" / "indexes").iterdir()
    os.utime(old, (time.time() - shard_files._KEPT_S - 60,) * 2)

    def refuse(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    part = open_part(library.folder, replace(place, start=0, stop=10))
    assert "Input/output error" in part.problem


def test_an_index_is_built_once_and_again_where_it_was_damaged(library, place, monkeypatch):
    built = []

    def build(vectors, *how):
        built.append(len(vectors))
        return build_index(vectors, *how)

    monkeypatch.setattr(shard_files, "build_index", build)
    query = library.engine.index.vectors[[3]]
    answers = {open_part(library.folder, place).index.search(query, 5).rows.tobytes()}
    answers.add(open_part(library.folder, place).index.search(query, 5).rows.tobytes())
    assert built == [10]
    open_part(library.folder, replace(place, start=20, stop=30))
    assert built == [10, 10]
    files = list((library.folder / "cluster" / "indexes").glob("*/*"))
    for file in files:
        file.write_bytes(file.read_bytes()[:20])
    answers.add(open_part(library.folder, place).index.search(query, 5).rows.tobytes())
    assert (built, len(answers)) == ([10, 10, 10], 1)
    assert not list((library.folder / "cluster" / "indexes").glob(".*"))


@pytest.fixture
def open_at_once(library, monkeypatch):
    """Opens a part on two replicas, of which the other one is done while the first builds."""

    def _open(place):
        parts = []

        def build(*what):
            index = build_index(*what)
            monkeypatch.setattr(shard_files, "build_index", build_index)
            parts.append(open_part(library.folder, place))
            return index

        monkeypatch.setattr(shard_files, "build_index", build)
        return [open_part(library.folder, place), *parts]

    return _open


def test_replicas_that_build_at_once_share_the_table_that_stays(
    library, put, index, open_at_once, monkeypatch
):
    engine = TablesInMemory("pgvector")
    monkeypatch.setattr(PgvectorIndex, "connect", lambda _: engine)
    for number in range(20):
        put(f"{number:02d}.png", number)
    index(config=Config(model="palette", index="pgvector:postgresql://host/photos"))
    name = current_id(library.folder)
    place = Place(name, manifest_digest(library.folder, name), 0, 10)
    one, other = open_at_once(place)
    # Whoever saves drops the tables that no folder names.
    open_part(library.folder, replace(place, start=10, stop=20))
    assert one.index.table == other.index.table
    assert one.index.table.name in engine.list_tables()
    assert (one.problem, other.problem) == ("", "")


def test_a_damaged_index_that_another_replica_has_mended_is_not_replaced(
    library, place, open_at_once, monkeypatch
):
    open_part(library.folder, place)
    (kept,) = (library.folder / "cluster" / "indexes").iterdir()
    for file in kept.iterdir():
        file.write_bytes(file.read_bytes()[:20])
    renamed = []
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda *names: renamed.append(names) or rename(*names))
    one, other = open_at_once(place)
    assert [source for source, _ in renamed].count(kept) == 1  # the damaged one
    assert list(kept.parent.iterdir()) == [kept]
    query = library.engine.index.vectors[[13]]
    assert one.index.search(query, 5).rows.tolist() == other.index.search(query, 5).rows.tolist()


def test_an_index_that_nobody_opened_for_a_week_goes_when_another_is_built(library, place):
    folder = library.folder / "cluster" / "indexes"
    week = shard_files._KEPT_S

    def age(path, seconds):
        os.utime(path, (time.time() - seconds,) * 2)

    open_part(library.folder, place)
    (first,) = folder.iterdir()
    (folder / ".left.part").mkdir()
    age(folder / ".left.part", week + 60)
    age(first, week - 60)
    open_part(library.folder, replace(place, start=0, stop=10))
    assert first in (kept := set(folder.iterdir()))
    assert len(kept) == 2
    age(first, week + 60)
    part = open_part(library.folder, place)  # which is a use of it
    open_part(library.folder, replace(place, start=20, stop=30))
    assert kept < set(folder.iterdir())
    age(first, week + 60)
    open_part(library.folder, replace(place, start=5, stop=15))
    assert first not in set(folder.iterdir())
    assert len(list(folder.iterdir())) == 3
    query = library.engine.index.vectors[[13]]
    assert sorted(part.index.search(query, 10).rows[0].tolist()) == list(range(10))


def test_an_index_that_a_server_has_open_is_in_use_however_long(library, place, monkeypatch):
    server = ShardServer(str(library.folder))
    server.open(place)
    (kept,) = (library.folder / "cluster" / "indexes").iterdir()

    def attend_after_a_week():
        os.utime(kept, (time.time() - shard_files._KEPT_S - 60,) * 2)
        monkeypatch.setattr(server, "_noted", time.monotonic() - 3601)
        return server.attend("a")

    assert attend_after_a_week() == []
    open_part(library.folder, replace(place, start=0, stop=10))
    assert kept.exists()
    assert server.attend("a") == []

    def refuse(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(shard_server, "note_use", refuse)
    assert "must be noted, got: [Errno 5]" in attend_after_a_week()[0]


def test_what_tells_whose_tables_these_are_is_no_old_index(library, place):
    folder = library.folder / "cluster" / "indexes"
    assert open_part(library.folder, place).problem == ""
    owner = folder / "engine-owner.json"
    owner.write_text("{}")
    os.utime(owner, (time.time() - shard_files._KEPT_S - 60,) * 2)
    assert open_part(library.folder, replace(place, start=0, stop=10)).problem == ""
    assert owner.exists()
    assert not list(folder.glob(".*"))


# -- where shards begin ---------------------------------------------------------------------------


def table_of(make_table, numbers):
    return make_table(
        *({"photo_id": f"00000000-0000-4000-8000-{number:012d}"} for number in numbers)
    )


def test_shards_whose_photos_stayed_are_cut_as_before(make_table):
    before = table_of(make_table, range(0, 400, 10))
    ranges = cut_table(before, 4)
    firsts = first_ids(before, ranges)
    assert [len(rows) for rows in ranges] == [10, 10, 10, 10]
    # Two photos more in the second shard, one less in the last, where the first of it has left.
    after = table_of(make_table, sorted({*range(0, 400, 10), 115, 155} - {300}))
    ranges = cut_table(after, 4, firsts)
    assert [len(rows) for rows in ranges] == [10, 12, 10, 9]
    assert [rows.start for rows in ranges] == [0, 10, 22, 32]
    assert ranges[-1].stop == len(after)


def test_shards_are_cut_anew_where_one_has_grown_too_large_or_their_number_is_another(make_table):
    before = table_of(make_table, range(0, 400, 10))
    firsts = first_ids(before, cut_table(before, 4))
    grown = table_of(make_table, sorted({*range(0, 400, 10), *range(301, 400)}))
    assert {len(rows) for rows in cut_table(grown, 4, firsts)} == {32, 33}
    assert [len(rows) for rows in cut_table(before, 2, firsts)] == [20, 20]


def test_fewer_photos_than_shards_leave_some_empty(make_table):
    few = table_of(make_table, [7, 9])
    ranges = cut_table(few, 4)
    assert [len(rows) for rows in ranges] == [0, 1, 0, 1]
    assert cut_table(few, 4, first_ids(few, ranges)) == ranges
    more = table_of(make_table, [3, 7, 8, 9])
    assert sum(len(rows) for rows in cut_table(more, 4, first_ids(few, ranges))) == 4
    none = table_of(make_table, [])
    assert [len(rows) for rows in cut_table(none, 2)] == [0, 0]
    assert np.all([first == "~" for first in first_ids(none, cut_table(none, 2))])


def test_where_a_library_was_cut_is_kept_for_each_number_of_shards(tmp_path):
    assert read_cut(tmp_path, 3) == []
    write_cut(tmp_path, ["a", "d", "k"])
    write_cut(tmp_path, ["a", "e"])
    assert (read_cut(tmp_path, 3), read_cut(tmp_path, 2)) == (["a", "d", "k"], ["a", "e"])
    assert read_cut(tmp_path, 4) == []


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1, 2]", '["d", "a"]', "null"])
def test_a_damaged_cut_is_none_and_told(tmp_path, content, caplog):
    write_cut(tmp_path, ["a", "d"])
    (tmp_path / "cluster" / "cut-2.json").write_text(content)
    with caplog.at_level(logging.WARNING):
        assert read_cut(tmp_path, 2) == []
    assert "cut-2.json must tell where the library is cut, got: " in caplog.text


def test_a_cut_that_cannot_be_kept_is_told_and_stops_nobody(tmp_path, caplog):
    (tmp_path / "cluster").mkdir()
    with caplog.at_level(logging.WARNING):
        with full_disk():
            write_cut(tmp_path, ["a", "d"])
        assert read_cut(tmp_path, 2) == []
        assert "cut-2.json must be written, got: [Errno " in caplog.text
        caplog.clear()
        write_cut(tmp_path, ["a", "d"])
    assert (read_cut(tmp_path, 2), caplog.text) == (["a", "d"], "")


def test_an_older_snapshot_that_a_cursor_opens_moves_no_cut(make_table, tmp_path, monkeypatch):
    plan = SimpleNamespace(n_shards=2, timeout_s=1.0)
    replica = SimpleNamespace(answer=None)
    actors = SimpleNamespace(plan=plan, shards=[[replica], [replica]], is_lost=lambda *_: False)
    monkeypatch.setattr(ray_shards, "manifest_digest", lambda *_: "digest")
    monkeypatch.setattr(ray_shards, "partial", lambda *_: None)
    monkeypatch.setattr(ray_shards.RayShards, "_open", lambda _, places: [4 for _ in places])
    older, current = (table_of(make_table, [10, 20, n, 40]) for n in (30, 31))
    shards = ray_shards.RayShards(tmp_path, actors)
    (tmp_path / "CURRENT").write_text("000002-00000002\n")
    shards.open_vectors(tmp_path, "000002-00000002", Config(), current)
    firsts = read_cut(tmp_path, 2)
    shards.open_vectors(tmp_path, "000001-00000001", Config(), older)
    assert read_cut(tmp_path, 2) == firsts == shards._firsts
