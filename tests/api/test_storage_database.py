"""Databases: URLs, transactions, errors in our words, migrations."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from searchlab.api.accounts import database as module
from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import (
    BusyError,
    UnreachableDatabaseError,
    UnstorableError,
    open_database,
    sqlite_url,
)
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.tables import accounts
from searchlab.api.accounts.values import UtcMoment
from searchlab.errors import DataError, InputError, NotFoundError
from tests.support.databases import (
    HOSTILE,
    ODD,
    account_names,
    add_account,
    empty_url,
    fresh_database,
    psql,
)
from tests.support.waiting import wait_until

# -- URLs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "must have the form"),
        ("geheim", "must have the form"),
        ("postgresql:/user:geheim@host/name", "must have the form"),
        ("postgresql://user:geheim@host:port/name", "must have the form"),
        ("postgresql://user:ge@heim@host/name", "write %40 for @"),
        ("mysql://user:geheim@host/name", "one of sqlite, postgresql, got 'mysql'"),
        ("postgresql+asyncpg://user:geheim@host/name", "got 'postgresql\\+asyncpg'"),
        ("postgresq://user:geheim@host/name", "got 'postgresq'"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("sqlite://host/name", "must name a file"),
        ("sqlite:////tmp/x.db?mode=ro", "must name a file"),
    ],
)
def test_a_url_with_a_typo_is_told_without_what_may_be_a_password(url, message):
    with pytest.raises(InputError, match=message) as caught:
        open_database(url)
    assert "heim" not in str(caught.value)


def test_sqlite_in_a_folder_that_is_not_there_makes_none(tmp_path):
    with pytest.raises(NotFoundError, match="which is none"):
        open_database(sqlite_url(tmp_path / "typo"))
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("name", ["a b?c%20#ü&", "x@y:z", "'quoted'"])
def test_any_folder_can_hold_the_database(tmp_path, name):
    (tmp_path / name).mkdir()
    database = open_database(sqlite_url(tmp_path / name))
    migrate(database)
    database.close()
    assert (tmp_path / name / "api.db").is_file()


def test_the_file_is_its_owners_alone(tmp_path):
    with fresh_database("sqlite", tmp_path) as database, database.reading():
        assert (tmp_path / "api.db").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "api.db-wal").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_way_to_say_postgresql_takes_the_one_driver(scheme):
    database = open_database(f"{scheme}://user:geheim@localhost:1/name")
    assert database.engine.driver == "psycopg"
    assert repr(database) == "<Database postgresql://localhost/name>"


def test_all_hosts_of_an_address_reach_the_driver_and_its_options_replace_the_usual_ones(
    monkeypatch,
):
    asked = []

    def connect(*_, **options):
        asked.append(options)
        msg = "refused"
        raise psycopg.OperationalError(msg)

    monkeypatch.setattr(psycopg, "connect", connect)
    hosts = "host=one:5432&host=two:5433"
    database = open_database(f"postgresql://user:geheim@/name?{hosts}&connect_timeout=3")
    assert repr(database) == "<Database postgresql://one:5432,two:5433/name>"
    with pytest.raises(UnreachableDatabaseError, match="refused"):
        database.version()
    told = {name: str(asked[0][name]) for name in ("host", "port", "connect_timeout")}
    assert told == {"host": "one,two", "port": "5432,5433", "connect_timeout": "3"}
    assert asked[0]["application_name"] == "searchlab"


# -- errors -----------------------------------------------------------------------------------


def test_a_server_that_cannot_be_reached_is_told_without_the_password():
    database = open_database("postgresql://user:geheim@localhost:1/name")
    message = "postgresql://localhost/name must be a database"
    with pytest.raises(UnreachableDatabaseError, match=message) as caught:
        migrate(database)
    assert "geheim" not in str(caught.value)
    with pytest.raises(UnreachableDatabaseError, match="Connection refused"):
        database.look_up(lambda connection: connection.scalar(sa.select(1)))


def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "api.db").write_bytes(b"no database at all " * 500)
    with pytest.raises(DataError, match="not a database"):
        migrate(open_database(sqlite_url(tmp_path)))


@pytest.mark.parametrize("name", ["api.db", "api.db.lock"])
def test_a_place_that_cannot_be_written_is_told(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="written, got"):
        migrate(open_database(sqlite_url(tmp_path)))


def test_a_database_without_tables_says_so(url):
    database = open_database(url)
    if database.file is not None:
        database.file.touch()
    with pytest.raises(DataError, match="must have the tables of this version"):
        account_names(database)
    database.close()


def test_sqlite_that_another_holds_is_busy_and_unchanged(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0.01)
    with fresh_database("sqlite", tmp_path) as database:
        other = sqlite3.connect(tmp_path / "api.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with (
            pytest.raises(BusyError, match="another process holds it, try again"),
            database.writing() as connection,
        ):
            add_account(connection, "acme")
        with (
            pytest.raises(BusyError, match="another process holds it, try again"),
            database.writing_alone() as own,
        ):
            own.execute("DELETE FROM accounts")
        assert account_names(database) == []
        other.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_text_that_no_database_should_hold_is_an_input_error_or_comes_back_whole(database, text):
    try:
        with database.writing() as connection:
            add_account(connection, text)
    except InputError:
        assert account_names(database) == []
    else:
        assert account_names(database) == [text]


@pytest.mark.parametrize("text", [*ODD, "x" * 1_000_000])
def test_any_other_text_comes_back_as_it_was(database, text):
    plan = text
    with database.writing() as connection:
        add_account(connection, "acme", plan)
    with database.reading() as connection:
        assert connection.scalar(sa.select(accounts.c.plan)) == text


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_a_number_beyond_64_bits_is_an_input_error(database, number):
    message = "must be such that"
    with pytest.raises(UnstorableError, match=message), database.reading() as connection:
        connection.execute(sa.select(accounts).where(accounts.c.id == number)).all()


TWICE = "INSERT INTO usage_months VALUES (1, '2026-11', 1), (1, '2026-11', 1)"


@pytest.mark.parametrize(
    ("statement", "values", "error", "message"),
    [
        (TWICE, (), DataError, "must take what is written to it, got: UNIQUE"),
        ("SELECT 1 FROM nowhere", (), DataError, "must have the tables of this version"),
        ("SELECT ?", (2**63,), UnstorableError, "must be such that"),
        ("SELECT ?", ("\ud800",), UnstorableError, "must be such that"),
    ],
)
def test_errors_of_sqlites_own_connection_are_ours(tmp_path, statement, values, error, message):
    with (
        fresh_database("sqlite", tmp_path) as database,
        pytest.raises(error, match=message),
        database.writing_alone() as own,
    ):
        own.execute(statement, values)


def test_messages_hold_no_values(database):
    with database.writing() as connection:
        add_account(connection, "geheim")
    with pytest.raises(DataError) as caught, database.writing() as connection:
        add_account(connection, "geheim")
    assert "geheim" not in str(caught.value)
    assert "[SQL parameters hidden" in str(caught.value.__cause__)


def test_a_thread_that_waits_too_long_for_another_is_told(database, monkeypatch):
    monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0.01)
    if database.file is None:
        with database.writing() as connection:
            add_account(connection, "acme")
        database = open_database(database.engine.url.render_as_string(hide_password=False))
    outcomes = []

    def write():
        try:
            with database.writing() as connection:
                connection.execute(accounts.update().values(plan="free"))
        except BusyError as error:
            outcomes.append(str(error))

    with database.writing() as connection:
        connection.execute(accounts.update().values(plan="scale"))
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    write()
    assert len(outcomes) == 1
    assert "must be free, got" in outcomes[0]
    database.close()


@pytest.mark.slow
def test_a_question_that_takes_too_long_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0.01)
    with (
        fresh_database("postgresql", tmp_path) as database,
        pytest.raises(UnreachableDatabaseError, match="statement timeout"),
    ):
        database.look_up(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(60)"))


def test_a_reader_sees_one_state_throughout_and_writes_nothing(database):
    with database.reading() as connection:
        count = sa.select(sa.func.count()).select_from(accounts)
        assert connection.scalar(count) == 0
        with database.writing() as other:
            add_account(other, "acme")
        assert connection.scalar(count) == 0
    assert account_names(database) == ["acme"]


# -- transactions -----------------------------------------------------------------------------


def test_a_block_that_raises_changes_nothing(database):
    def fail():
        with database.writing() as connection:
            add_account(connection, "acme")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert account_names(database) == []


@pytest.mark.slow
def test_a_connection_that_was_cut_is_replaced(tmp_path):
    with fresh_database("postgresql", tmp_path) as database:
        assert database.look_up(lambda connection: connection.scalar(sa.select(1))) == 1
        assert account_names(database) == []
        psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'searchlab'"
        )
        assert database.look_up(lambda connection: connection.scalar(sa.select(1))) == 1
        assert account_names(database) == []


@pytest.mark.slow
def test_what_the_url_says_of_the_connection_goes_first(tmp_path):
    with empty_url("postgresql", tmp_path) as url:
        database = open_database(f"{url}&application_name=mine")
        shown = database.look_up(
            lambda connection: connection.exec_driver_sql("SHOW application_name").scalar()
        )
        database.close()
    assert shown == "mine"


def test_moments_come_back_in_utc_whatever_the_zone_of_the_server(database):
    moment = utc_now()
    with database.writing() as connection:
        connection.execute(accounts.insert().values(name="a", plan="free", created_at=moment))
    with database.reading() as connection:
        read_back = connection.scalar(sa.select(accounts.c.created_at))
    assert read_back == moment
    assert read_back.isoformat().endswith("+00:00")


def test_a_moment_without_a_zone_is_refused():
    with pytest.raises(InputError, match="must have a time zone"):
        UtcMoment().process_bind_param(utc_now().replace(tzinfo=None), None)


@pytest.mark.slow
def test_a_run_of_tests_that_is_killed_leaves_no_server_behind():
    code = """
from tests.support.databases import postgres_server
print(postgres_server().pgdata, flush=True)
input()
"""
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as run:
        folder = Path(run.stdout.readline().strip())
        server = Path("/proc", (folder / "postmaster.pid").read_text().split()[0])
        assert server.exists()
        run.kill()
    wait_until(lambda: not server.exists() and not folder.exists())
