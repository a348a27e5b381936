"""SQLite's file, deleted or replaced while it is open: nothing is acknowledged into the void."""

import shutil
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.collections import Collections
from searchlab.api.accounts.database import UnreachableDatabaseError, open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.tables import accounts, collections
from searchlab.errors import DataError
from tests.support.databases import fresh_database


@pytest.fixture
def database(tmp_path):
    with fresh_database("sqlite", tmp_path) as database:
        create(database, "first")
        yield database


def create(database, name, *, before_the_commit=lambda: None):
    with database.writing() as connection:
        values = {"id": 1, "name": "acme", "plan": "free", "created_at": utc_now()}
        connection.execute(database.insert(accounts).values(values).on_conflict_do_nothing())
        created = Collections(database).create(connection, 1, name=name)
        before_the_commit()
    return created


def names(database):
    with database.reading() as connection:
        return list(connection.scalars(sa.select(collections.c.name).order_by(collections.c.id)))


@contextmanager
def aside(folder, place):
    """Take a whole database away, side files and all."""
    (folder / place).mkdir()
    for path in folder.glob("api.db*"):
        path.rename(folder / place / path.name)
    yield folder / place


def test_nothing_is_written_into_a_deleted_file_and_none_is_made(database, tmp_path, caplog):
    file = tmp_path / "api.db"
    file.unlink()
    for _ in range(3):
        with pytest.raises(UnreachableDatabaseError, match="got none in its place; put it back"):
            create(database, "lost")
    with pytest.raises(UnreachableDatabaseError, match="searchlab restore"):
        database.look_up(lambda connection: connection.scalar(sa.select(1)))
    assert not file.exists()
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_file_that_comes_back_is_ready_again_and_has_all_that_was_acknowledged(
    database, tmp_path, caplog
):
    create(database, "second")
    (tmp_path / "api.db").rename(tmp_path / "moved.db")
    with pytest.raises(UnreachableDatabaseError):
        create(database, "lost")
    (tmp_path / "moved.db").rename(tmp_path / "api.db")
    create(database, "third")
    assert names(database) == ["first", "second", "third"]
    assert "ready again" in caplog.text


@pytest.mark.parametrize("side", ["-wal", "-shm"])
def test_nothing_is_acknowledged_into_a_deleted_journal_and_a_stop_saves_what_it_holds(
    database, tmp_path, caplog, side
):
    create(database, "second")
    (tmp_path / f"api.db{side}").unlink()
    for _ in range(3):
        with pytest.raises(UnreachableDatabaseError, match=f"the {side} file .* got none"):
            create(database, "lost")
    with pytest.raises(UnreachableDatabaseError, match=f"the {side} file"):
        database.prove_write()
    assert not (tmp_path / f"api.db{side}").exists()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    database.close()
    with fresh_reader(tmp_path) as again:
        assert names(again)[:2] == ["first", "second"]


def test_a_journal_that_comes_back_is_ready_again(database, tmp_path, caplog):
    (tmp_path / "api.db-wal").rename(tmp_path / "moved")
    with pytest.raises(UnreachableDatabaseError):
        create(database, "unsure")
    (tmp_path / "moved").rename(tmp_path / "api.db-wal")
    create(database, "second")
    assert names(database) == ["first", "unsure", "second"]
    assert "ready again" in caplog.text


def test_a_file_that_is_lost_before_the_commit_acknowledges_nothing(database, tmp_path):
    with pytest.raises(UnreachableDatabaseError, match="got none in its place"):
        create(database, "lost", before_the_commit=(tmp_path / "api.db").unlink)


def test_a_file_that_is_replaced_before_the_commit_acknowledges_nothing(database, tmp_path):
    (tmp_path / "other").mkdir()
    with fresh_database("sqlite", tmp_path / "other") as other:
        create(other, "other")

    def replace():
        with aside(tmp_path, "before"):
            shutil.move(tmp_path / "other" / "api.db", tmp_path / "api.db")

    with pytest.raises(UnreachableDatabaseError, match="got another in its place; try again"):
        create(database, "lost", before_the_commit=replace)
    assert names(database) == ["other"]


def count_alone(database, *, before_the_commit=lambda: None):
    with database.writing_alone() as own:
        own.execute("UPDATE accounts SET plan = 'scale'")
        before_the_commit()


def plans(database):
    with database.reading() as connection:
        return list(connection.scalars(sa.select(accounts.c.plan)))


def test_neither_does_a_count_acknowledge_what_is_lost(database, tmp_path):
    count_alone(database)
    assert plans(database) == ["scale"]
    with pytest.raises(UnreachableDatabaseError, match="got none in its place"):
        count_alone(database, before_the_commit=(tmp_path / "api.db").unlink)
    with pytest.raises(UnreachableDatabaseError, match="got none in its place"):
        count_alone(database)
    assert not (tmp_path / "api.db").exists()


def test_a_count_that_fails_changes_nothing_and_lets_others_write(database):
    def fail():
        raise KeyError

    with pytest.raises(KeyError):
        count_alone(database, before_the_commit=fail)
    assert plans(database) == ["free"]
    create(database, "second")
    assert names(database) == ["first", "second"]


def test_connections_that_were_all_closed_take_their_journal_with_them(database, tmp_path):
    database.close()
    assert not (tmp_path / "api.db-wal").exists()
    create(database, "second")
    assert names(database) == ["first", "second"]


def test_a_file_beside_the_journal_of_another_is_refused(database, tmp_path):
    (tmp_path / "other").mkdir()
    with fresh_database("sqlite", tmp_path / "other") as other:
        create(other, "other")
    shutil.move(tmp_path / "other" / "api.db", tmp_path / "api.db")
    with pytest.raises(UnreachableDatabaseError, match="beside the -wal file of the first"):
        create(database, "lost")


def test_a_database_that_was_replaced_whole_is_opened_anew(database, tmp_path, caplog):
    (tmp_path / "other").mkdir()
    with fresh_database("sqlite", tmp_path / "other") as other:
        create(other, "other")
    with aside(tmp_path, "before"):
        shutil.move(tmp_path / "other" / "api.db", tmp_path / "api.db")
        assert create(database, "new")["name"] == "new"
        assert names(database) == ["other", "new"]
    assert "replaced and is opened anew" in caplog.text
    with fresh_reader(tmp_path / "before") as before:
        assert names(before) == ["first"]


def test_a_replacement_without_our_tables_is_refused(database, tmp_path):
    with aside(tmp_path, "before"):
        (tmp_path / "api.db").touch()
        with pytest.raises(DataError, match="must have the tables of version"):
            create(database, "lost")


def test_a_worker_that_starts_later_makes_no_new_file(tmp_path):
    notes = tmp_path / "notes"
    first = open_database(sqlite_url(tmp_path), notes=notes)
    migrate(first)
    create(first, "first")
    (tmp_path / "api.db").unlink()
    later = open_database(sqlite_url(tmp_path), notes=notes)
    with pytest.raises(UnreachableDatabaseError, match="got none in its place"):
        migrate(later)
    assert not (tmp_path / "api.db").exists()
    first.close()


@contextmanager
def fresh_reader(folder):
    database = open_database(sqlite_url(folder))
    try:
        yield database
    finally:
        database.close()
