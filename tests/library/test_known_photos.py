"""What another library has computed is taken over: nothing is embedded twice, and nothing else."""

import os
import sqlite3

import pytest

from searchlab.errors import ConflictError, DataError, InputError
from searchlab.library.ingest import index_photos
from searchlab.library.known_photos import take_known
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support import library_world
from tests.support.library_world import PALETTE, ids_by_name, state_of

index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put
embedded = library_world.embedded


@pytest.fixture
def filled(put, index):
    """A folder of three pictures, indexed in `library`, which must be made first."""
    for number in range(3):
        put(f"{number}.png", number)
    index()


@pytest.fixture
def new(tmp_path):
    return create_library(tmp_path / "new")


def add(library, photos):
    return index_photos(library, [check_root(photos)], config=PALETTE)


def smalls(library):
    return sorted(path.name for path in library.thumbnails.rglob("*") if path.is_file())


def test_no_picture_is_embedded_again_and_the_snapshot_is_the_same(
    filled, library, new, photos, embedded
):
    take_known(new, library)
    assert new.snapshot() is None
    add(new, photos)
    assert sum(embedded) == 0
    assert ids_by_name(new) == ids_by_name(library)
    assert new.engine.snapshot_id == library.engine.snapshot_id
    assert smalls(new) == smalls(library) != []


def test_what_a_killed_run_left_unfinished_is_not_shared(filled, library, new):
    finished = smalls(library)
    some = next(path for path in library.thumbnails.rglob("*") if path.is_file())
    some.with_suffix(".part").write_bytes(b"half")
    take_known(new, library)
    assert smalls(new) == finished


def test_only_what_is_new_is_embedded(filled, library, new, photos, put, embedded):
    take_known(new, library)
    put("more.png", 7)
    add(new, photos)
    assert sum(embedded) == 1


def test_what_a_library_has_itself_stays(filled, library, new, photos):
    add(new, photos)
    before = state_of(new)
    with new.cache() as cache:
        cache._db.execute("UPDATE vectors SET vector = x'00'")
        cache._db.commit()
    take_known(new, library)
    with new.cache() as cache:
        assert {len(blob) for (blob,) in cache._db.execute("SELECT vector FROM vectors")} == {1}
    assert state_of(new) == before


def test_pictures_are_copied_where_no_links_can_be_made(filled, library, new, photos, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    take_known(new, library)
    assert smalls(new) == smalls(library)
    for path in new.thumbnails.rglob("*.*"):
        other = library.thumbnails / path.relative_to(new.thumbnails)
        assert path.read_bytes() == other.read_bytes()
        assert not path.samefile(other)


def test_a_folder_that_cannot_be_written_is_named(filled, library, new):
    new.thumbnails.write_bytes(b"a file")
    with pytest.raises(InputError, match=r"thumbnails.* must be a file that can be written"):
        take_known(new, library)


def test_a_damaged_cache_gives_nothing_and_says_so(filled, library, new, photos, embedded):
    (library.folder / "cache.db").write_bytes(b"no database" * 500)
    with pytest.raises(DataError, match=r"cache\.db must be a cache of this version"):
        take_known(new, library)
    add(new, photos)
    assert sum(embedded) == 3


def test_vectors_that_are_cut_in_the_other_cache_leave_nothing_half(filled, library, new):
    path = library.folder / "cache.db"
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE vectors")
    database.close()
    with pytest.raises(DataError, match=r"cache\.db must be a cache of this version"):
        take_known(new, library)
    with new.cache() as cache:
        assert cache._db.execute("SELECT count(*) FROM contents").fetchone() == (0,)


def test_who_is_written_to_is_not_given_anything(filled, library, new):
    with new.writing(), pytest.raises(ConflictError, match="only one process"):
        take_known(new, library)
    assert smalls(new) == []
