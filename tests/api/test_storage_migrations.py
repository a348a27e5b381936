"""Migrations: from nothing and from older versions, by several at once, and never by halves."""

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from searchlab.api.accounts.collections import Collections
from searchlab.api.accounts.database import (
    open_database,
    sqlite_url,
)
from searchlab.api.accounts.migrations import migrate, read_steps
from searchlab.api.accounts.tables import METADATA, VERSION, accounts, replays
from searchlab.errors import DataError
from tests.support.databases import account_names, add_account, start

# -- migrations -------------------------------------------------------------------------------


def test_migrations_make_the_tables_of_the_schema(database):
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_the_steps_follow_one_another_and_have_one_end():
    steps = [step.revision for step in read_steps().walk_revisions()]
    assert steps == sorted(steps, reverse=True)
    assert read_steps().get_heads() == [steps[0]] == [VERSION]


def test_collections_of_an_older_version_keep_their_covers(url):
    database = open_database(url)
    migrate(database, to="0002")
    with database.writing() as connection:
        add_account(connection, "acme")
        connection.exec_driver_sql(
            "INSERT INTO collections (account_id, name, is_public, created_at, updated_at) "
            "VALUES (1, 'dunes', false, '2024-02-29 12:00:00', '2024-02-29 12:00:00')"
        )
        connection.exec_driver_sql(
            "INSERT INTO collection_photos "
            "(collection_id, photo_id, photo_source, photo_photographer, added_at) "
            "VALUES (1, 'p1', 'nasa', 'Ann', '2024-02-29 12:00:00')"
        )
    migrate(database)
    assert Collections(database).get(1, 1)["cover_photo_id"] == "p1"
    database.close()


def test_the_version_is_known_and_none_before_there_is_one(url):
    database = open_database(url)
    assert database.version() is None
    migrate(database)
    assert database.version() == VERSION
    database.close()


def test_asking_for_the_version_makes_no_file(tmp_path):
    assert open_database(sqlite_url(tmp_path)).version() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_serving_loads_no_migrations_where_all_is_done_and_nothing_heavy(database):
    code = """
import sys
from searchlab.api.accounts import collections, database, keyring, meter, replays, usage
from searchlab.api.accounts.migrations import migrate
migrate(database.open_database(sys.argv[1]))
names = {name.split(".")[0] for name in sys.modules}
heavy = {"alembic", "torch", "ranx", "matplotlib", "sklearn", "numba", "pandas", "numpy"}
print(sorted(names & heavy))
"""
    url = database.engine.url.render_as_string(hide_password=False)
    assert start(code, url).communicate()[0] == "[]\n"


def test_migrating_again_keeps_what_is_there(database):
    with database.writing() as connection:
        add_account(connection, "acme")
    migrate(database)
    assert account_names(database) == ["acme"]


MIGRATE = """
import sys
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.migrations import migrate
sys.stdin.readline()
database = open_database(sys.argv[1])
migrate(database)
print("done")
"""


@pytest.mark.slow
def test_four_processes_may_migrate_at_once(url):
    workers = [start(MIGRATE, url) for _ in range(4)]
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert [worker.communicate()[0] for worker in workers] == ["done\n"] * 4
    database = open_database(url)
    assert account_names(database) == []
    database.close()


def test_a_step_that_fails_leaves_nothing_behind(url, monkeypatch):
    def fail(*_arguments, **_options):
        raise KeyError

    database = open_database(url)
    with monkeypatch.context() as patch:
        patch.setattr("alembic.op.create_index", fail)
        with pytest.raises(KeyError):
            migrate(database)
    with database.reading() as connection:
        assert sa.inspect(connection).get_table_names() == []
    migrate(database)
    assert account_names(database) == []
    database.close()


def test_a_database_of_a_newer_version_is_left_alone(url):
    database = open_database(url)
    migrate(database)
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        DataError, match=f"must be of version {VERSION} or older, got '9999'; a newer"
    ):
        migrate(database)
    database.close()


def test_ids_are_never_given_twice(database):
    def add_and_remove(name):
        with database.writing() as connection:
            add_account(connection, name)
            account_id = connection.scalar(sa.select(accounts.c.id))
            connection.execute(accounts.delete())
        return account_id

    assert [add_and_remove("a"), add_and_remove("b")] == [1, 2]


def test_the_tables_have_no_column_for_a_key_in_the_clear():
    assert "secret" not in METADATA.tables["api_keys"].c
    assert isinstance(replays.c.scope.type, sa.LargeBinary)
