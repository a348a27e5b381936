"""A library read through: the state in force, databases, and disks that cannot be written."""

import sqlite3
from contextlib import closing

import pytest

from searchlab.errors import DataError, NotFoundError
from searchlab.library.checking import check_library
from searchlab.library.databases import check_database, copy_database
from tests.support import library_world

index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


def test_the_state_in_force_and_every_database_is_read(put, index, library):
    put("a.png", 1)
    index()
    with closing(sqlite3.connect(library.folder / "api.db")) as database:
        database.execute("CREATE TABLE keys (name TEXT)")
    assert list(check_library(library)) == [*library.check(), "api.db", "cache.db"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("cache.db", "index again"), ("api.db", "restore"), ("other.db", "of a backup")],
)
def test_a_damaged_database_is_told_with_what_to_do(put, index, library, name, remedy):
    put("a.png", 1)
    index()
    path = library.folder / name
    path.write_bytes(b"SQLite format 3\0" + bytes(5_000))
    with pytest.raises(DataError, match=f"{name} must be a sound database.*{remedy}"):
        list(check_library(library))


def test_rows_that_an_index_has_not_are_damage(tmp_path):
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE words (word TEXT); INSERT INTO words VALUES ('castle');"
            "CREATE INDEX by_word ON words (word); CREATE TABLE others (word TEXT);"
        )
        check_database(path, remedy="mend it")
        # The index says what stands in another table, in which nothing is.
        database.executescript(
            "PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master "
            "WHERE name = 'others') WHERE name = 'words';"
        )
    with pytest.raises(
        DataError, match=r"must be a sound database, got: 2nd reference to page .*; mend it"
    ):
        check_database(path, remedy="mend it")


def test_an_empty_library_has_nothing_to_check(library):
    with pytest.raises(NotFoundError, match="searchlab index"):
        list(check_library(library))


def test_a_database_on_a_disk_that_cannot_be_written_is_copied_and_leaves_no_trace(
    tmp_path, monkeypatch
):
    source = tmp_path / "sealed" / "some.db"
    source.parent.mkdir()
    with closing(sqlite3.connect(source)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE words (word TEXT)")
        database.execute("INSERT INTO words VALUES ('castle')")
        database.commit()
    assert [path.name for path in source.parent.iterdir()] == ["some.db"]
    # Whoever runs as root may write anywhere, so that the disk is only said to refuse.
    monkeypatch.setattr(
        "searchlab.library.databases.os.access", lambda place, _mode: place != source.parent
    )
    opened = []
    connect = sqlite3.connect

    def spy(name, **options):
        opened.append(str(name))
        return connect(name, **options)

    monkeypatch.setattr("searchlab.library.databases.sqlite3.connect", spy)
    copy_database(source, tmp_path / "copy.db")
    check_database(source, remedy="mend it")
    assert [name for name in opened if "sealed" in name] == [f"file:{source}?immutable=1"] * 2
    with closing(connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT word FROM words").fetchall() == [("castle",)]
    # With a journal beside it, the file alone does not say what is in it.
    source.with_name("some.db-wal").write_bytes(b"")
    check_database(source, remedy="mend it")
    assert opened[-1] == str(source)
