"""Parts of shards: whole batches, taken in once, and as if they had never been where damaged."""

import hashlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'searchlab[cluster]'")

from searchlab.cluster import parts
from searchlab.cluster.parts import (
    PLAN,
    Shard,
    cut_shards,
    drop_part,
    is_done,
    read_plan,
    take_part,
    write_part,
    write_plan,
)
from searchlab.errors import DataError, SearchlabError
from searchlab.library.cache import ContentCache
from searchlab.library.decoding import thumbnail_path
from searchlab.library.embed import embed_pictures
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress
from tests.support.embedding import MeanColour, picture

LIMITS = {"at_once": 4, "most_pictures": 8, "most_bytes": 1_000}


@pytest.fixture
def files(tmp_path):
    """Five pictures and a file that is none, by digest."""
    contents = [picture((40 * i, 9, 9)) for i in range(5)] + [b"\x89PNG\r\n\x1a\n broken"]
    found = {}
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.png"
        path.write_bytes(content)
        found[hashlib.sha256(content).hexdigest()] = path
    return found


@pytest.fixture
def shard(files):
    model = MeanColour()
    names = {digest: str(path) for digest, path in files.items()}
    return Shard(names, ((model.name, model.model_id, model.dim),))


@pytest.fixture
def written(store, shard, files, tmp_path):
    folder = tmp_path / "worker"
    folder.mkdir()
    with ContentCache(folder / "cache.db") as cache:
        problems = embed_pictures(files, [MeanColour()], cache, folder / "small", Progress())
    write_part(store, shard, folder, folder / "small", problems)
    return problems


@pytest.fixture
def cache(tmp_path):
    with ContentCache(tmp_path / "library.db") as opened:
        yield opened


def test_a_part_brings_what_was_computed(store, shard, files, written, cache, tmp_path):
    assert is_done(store, shard)
    assert take_part(store, shard, cache, tmp_path / "small") == written
    assert len(written) == 1
    with ContentCache(tmp_path / "worker" / "cache.db") as there:
        assert cache.facts(list(files)) == there.facts(list(files))
        good = [d for d, facts in cache.facts(list(files)).items() if not facts.problem]
        model_id = MeanColour().model_id
        assert len(good) == 5
        np.testing.assert_array_equal(
            cache.vectors(model_id, good, 3), there.vectors(model_id, good, 3)
        )
    for digest in good:
        one = thumbnail_path(tmp_path / "small", digest).read_bytes()
        assert one == thumbnail_path(tmp_path / "worker" / "small", digest).read_bytes()


def test_a_dropped_part_is_not_done(store, shard, written, cache, tmp_path):
    drop_part(store, shard)
    assert not is_done(store, shard)
    assert take_part(store, shard, cache, tmp_path / "small") is None
    drop_part(store, shard)


@pytest.mark.parametrize("suffix", ["db", "json"])
@pytest.mark.parametrize("damage", ["lost", "cut", "flipped"])
def test_a_damaged_part_is_as_if_it_had_never_been(
    store, shard, files, written, cache, tmp_path, suffix, damage
):
    name = f"parts/{shard.name}.{suffix}"
    content = store.read(name)
    if damage == "lost":
        store.delete(name)
    else:
        flipped = bytes([content[0] ^ 1]) + content[1:]
        store.write(name, {"cut": content[:-1], "flipped": flipped}[damage])
    assert take_part(store, shard, cache, tmp_path / "small") is None
    assert cache.facts(list(files)) == {}


def test_a_part_that_leaves_out_a_picture_without_a_word_is_as_if_it_had_never_been(
    store, shard, cache, tmp_path
):
    folder = tmp_path / "worker"
    folder.mkdir()
    with ContentCache(folder / "cache.db"):
        pass  # as one of another version, whose facts nobody here can read
    write_part(store, shard, folder, folder, [])
    assert take_part(store, shard, cache, tmp_path / "small") is None


def test_the_code_that_makes_parts_is_known_by_its_files(monkeypatch, tmp_path):
    assert parts.code_here() == parts.code_here.__wrapped__()
    package = tmp_path / "searchlab"
    (package / "cluster").mkdir(parents=True)
    (package / "photos").mkdir()
    monkeypatch.setattr(parts, "__file__", str(package / "cluster" / "parts.py"))
    codes = [parts.code_here.__wrapped__()]
    for path, text in (("photos/a.py", "1"), ("photos/a.py", "2"), ("cluster/b.py", "3")):
        (package / path).write_text(text)
        codes.append(parts.code_here.__wrapped__())
    assert len(set(codes)) == 3
    assert codes[2] == codes[3]


def test_a_library_that_cannot_be_written_is_told_and_the_part_stays(
    store, shard, written, cache, tmp_path
):
    cache._db.execute("DROP TABLE vectors")
    with pytest.raises(sqlite3.OperationalError, match="no such table: vectors"):
        take_part(store, shard, cache, tmp_path / "small")
    assert is_done(store, shard)
    with ContentCache(tmp_path / "mended.db") as mended:
        assert take_part(store, shard, mended, tmp_path / "small") == written


def test_a_full_disk_of_the_library_is_told_and_the_part_stays(
    store, shard, written, cache, tmp_path
):
    filling = [(f"{number:064x}", "x" * 3_500) for number in range(3)]
    with cache._db:
        cache._db.executemany("INSERT INTO contents VALUES (?, ?)", filling)
    ((pages,),) = cache._db.execute("PRAGMA page_count").fetchall()
    cache._db.execute(f"PRAGMA max_page_count={pages}")
    with (
        pytest.raises(SearchlabError, match=r"library.db must be a file that can be written"),
        cache,
    ):
        take_part(store, shard, cache, tmp_path / "small")
    assert is_done(store, shard)


def test_a_picture_that_is_lost_before_its_task_is_told(store, shard, files, cache, tmp_path):
    gone = shard.files[next(iter(files))]
    Path(gone).unlink()
    assert len(cut_shards({key: [MeanColour()] for key in files}, files, **LIMITS)) == 1
    small = tmp_path / "small"
    with ContentCache(tmp_path / "cache.db") as there:
        problems = embed_pictures(files, [MeanColour()], there, small, Progress())
    write_part(store, shard, tmp_path, small, problems)
    assert Skipped(gone, "unreadable") in take_part(store, shard, cache, small)


def test_a_shard_is_named_by_what_is_asked_for(shard):
    moved = Shard({digest: f"/elsewhere/{digest}" for digest in shard.files}, shard.models)
    assert moved.name == shard.name
    assert Shard(shard.files, (("mean", "mean-2", 3),)).name != shard.name
    assert Shard(dict(list(shard.files.items())[1:]), shard.models).name != shard.name


def test_a_plan_is_read_as_it_was_written(store, shard):
    assert read_plan(store) == []
    write_plan(store, [shard])
    assert read_plan(store) == [shard]
    store.write(PLAN, b'{"format": 1, "shards": [{}]}')
    with pytest.raises(DataError, match=r"PLAN\.json must be a plan as it was written"):
        read_plan(store)


def cut(n_files, tmp_path, sizes=None, **limits):
    model = MeanColour()
    paths = {}
    for number in range(n_files):
        path = tmp_path / f"{number:03d}"
        path.write_bytes(bytes((sizes or {}).get(number, 1)))
        paths[f"{number:064x}"] = path
    limits = LIMITS | limits
    shards = cut_shards({digest: [model] for digest in paths}, paths, **limits)
    assert [digest for shard in shards for digest in shard.files] == list(paths)
    return [len(shard.files) for shard in shards]


def test_shards_are_whole_batches(tmp_path):
    assert cut(22, tmp_path) == [8, 8, 6]
    assert cut(22, tmp_path, most_pictures=11) == [8, 8, 6]
    assert cut(9, tmp_path, most_pictures=1) == [4, 4, 1]


def test_a_shard_of_large_files_is_cut_short(tmp_path):
    assert cut(20, tmp_path, sizes={1: 5000, 9: 5000}) == [4, 8, 8]


def test_pictures_that_need_other_models_stand_in_other_shards(tmp_path):
    one, two = MeanColour("one"), MeanColour("two")
    todo = {"a": [one], "b": [one, two], "c": [], "d": [one]}
    paths = dict.fromkeys(todo, tmp_path / "gone")
    shards = cut_shards(todo, paths, at_once=4, most_pictures=8, most_bytes=9)
    assert [list(shard.files) for shard in shards] == [["a", "d"], ["b"], ["c"]]
    assert [[name for name, _, _ in shard.models] for shard in shards] == [
        ["one"],
        ["one", "two"],
        [],
    ]


def test_problems_keep_their_words(store, shard, tmp_path, cache):
    folder = tmp_path / "worker"
    folder.mkdir()
    with ContentCache(folder / "cache.db"):
        pass
    refused = [Skipped("/a/ü.png", "changed while it was indexed")]
    write_part(store, Shard({}, ()), folder, folder, refused)
    assert take_part(store, Shard({}, ()), cache, tmp_path) == refused
