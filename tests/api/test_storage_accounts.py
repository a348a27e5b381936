"""Accounts and keys: made, listed, revoked, found at every request, refused at once everywhere."""

import hashlib
import os
import re
import signal
import threading

import pytest
import sqlalchemy as sa

from searchlab.api.accounts import keyring
from searchlab.api.accounts.accounts import (
    PLAN_NAMES,
    create_key,
    list_keys,
    plan_of,
    revoke_key,
)
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.keyring import Caller, Generation, KeyRing
from searchlab.api.accounts.plans import PLANS
from searchlab.api.accounts.tables import api_keys
from searchlab.errors import DataError, InputError, NotFoundError
from tests.support.databases import HOSTILE, Clock, fresh_database, start


@pytest.fixture
def ring(database):
    ring = KeyRing(database)
    yield ring
    ring.close()


def url_of(database):
    return database.engine.url.render_as_string(hide_password=False)


# -- making -----------------------------------------------------------------------------------


def test_a_secret_has_256_random_bits_and_is_kept_as_its_hash_only(database):
    record, secret = create_key(database, account="acme", name="server")
    assert re.fullmatch(r"sl_[A-Za-z0-9_-]{43}", secret)
    assert record.hint == secret[:9]
    with database.reading() as connection:
        row = connection.execute(sa.select(api_keys)).one()
    assert row.secret_sha256 == hashlib.sha256(secret.encode()).digest()
    assert secret not in repr(row)


def test_an_account_is_made_on_first_use_with_the_free_plan(database):
    assert plan_of(database, "acme") is None
    record, _ = create_key(database, account="acme", name="server")
    assert (record.account, record.plan) == ("acme", "free")
    assert plan_of(database, "acme") == "free"


def test_an_account_has_several_keys_also_of_one_name(database):
    first, _ = create_key(database, account="acme", name="server")
    second, _ = create_key(database, account="acme", name="server")
    assert first.key_id != second.key_id
    assert [record.key_id for record in list_keys(database)] == [first.key_id, second.key_id]


def test_naming_another_plan_changes_the_account_and_naming_none_leaves_it(database):
    create_key(database, account="acme", name="a", plan="growth")
    create_key(database, account="acme", name="b")
    assert plan_of(database, "acme") == "growth"
    create_key(database, account="acme", name="c", plan="scale")
    assert [record.plan for record in list_keys(database)] == ["scale"] * 3


@pytest.mark.parametrize("plan", ["enterprise", "", "Free", "free ", 7, *HOSTILE])
def test_a_plan_that_there_is_not_is_refused(database, plan):
    with pytest.raises(InputError, match="plan must be one of free, starter, growth, scale, got"):
        create_key(database, account="acme", name="a", plan=plan)
    assert list_keys(database) == []
    assert plan_of(database, "acme") is None


def test_the_api_knows_the_same_plans():
    assert tuple(PLANS) == PLAN_NAMES


@pytest.mark.parametrize("name", ["", "x" * 101, " a", "a ", "\t", "a\nb", "a\u200bb", *HOSTILE, 7])
def test_a_name_that_is_not_visible_is_refused(database, name):
    with pytest.raises(InputError, match="account must"):
        create_key(database, account=name, name="server")
    with pytest.raises(InputError, match="name must"):
        create_key(database, account="acme", name=name)
    assert list_keys(database) == []


@pytest.mark.parametrize("name", ["x", "🦊" * 100, "Zoë & Søn, 中文", "'; DROP TABLE accounts; --"])
def test_any_visible_name_will_do(database, name):
    create_key(database, account=name, name=name)
    assert [(r.account, r.name) for r in list_keys(database, name)] == [(name, name)]


def test_composed_and_decomposed_accents_are_one_account(database):
    create_key(database, account="Zo\u00eb", name="a")
    create_key(database, account="Zoe\u0308", name="b")
    assert len(list_keys(database, "Zo\u00eb")) == 2


def test_the_keys_of_one_account_are_listed_alone(database):
    create_key(database, account="acme", name="a")
    mine, _ = create_key(database, account="beta", name="b")
    assert list_keys(database, "beta") == [mine]
    assert list_keys(database, "nobody") == []


# -- revoking ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["key_id", "hint", "secret"])
def test_a_key_is_revoked_by_its_id_its_hint_or_itself(database, ring, way):
    record, secret = create_key(database, account="acme", name="server")
    _, other = create_key(database, account="acme", name="other")
    names = {"key_id": record.key_id, "hint": record.hint, "secret": secret}
    assert revoke_key(database, names[way]).key_id == record.key_id
    assert ring.find(secret) is None
    assert ring.find(other) is not None


def test_revoking_again_changes_nothing(database):
    record, _ = create_key(database, account="acme", name="server")
    clock = Clock(2024, 1, 1)
    assert revoke_key(database, record.key_id, clock=clock).revoked_at == clock.now
    assert revoke_key(database, record.key_id).revoked_at == clock.now


@pytest.mark.parametrize("key", ["", "key_0", "sl_______", "%", "x" * 100_000, *HOSTILE])
def test_a_key_that_is_not_there_is_not_found(database, key):
    create_key(database, account="acme", name="server")
    with pytest.raises(NotFoundError, match="key must be a key_id or the first 9 characters"):
        revoke_key(database, key)


def test_a_secret_that_is_not_there_is_not_repeated_in_the_message(database):
    secret = "sl_" + "a" * 43
    with pytest.raises(NotFoundError) as caught:
        revoke_key(database, secret)
    assert "sl_aaaaaa..." in str(caught.value)
    assert secret not in str(caught.value)


def test_a_hint_of_two_keys_is_refused_with_their_ids(database):
    first, _ = create_key(database, account="acme", name="a")
    second, _ = create_key(database, account="acme", name="b")
    with database.writing() as connection:
        connection.execute(api_keys.update().values(hint="sl_abcdef"))
    with pytest.raises(InputError, match=f"{first.key_id}.*|{second.key_id}.*; use the key_id"):
        revoke_key(database, "sl_abcdef")


# -- finding ----------------------------------------------------------------------------------


def test_a_secret_finds_its_account_key_and_plan(database, ring):
    record, secret = create_key(database, account="acme", name="server", plan="growth")
    assert ring.find(secret) == Caller(1, record.key_id, "growth")
    assert ring.find(secret) == Caller(1, record.key_id, "growth")


@pytest.mark.parametrize(
    "secret",
    ["", "sl_", "x" * 46, "sl_" + "é" * 43, "sl_" + "\ud800" * 43, "sl_" + "\0" * 43, "sl_" * 9999],
)
def test_what_is_no_secret_finds_nobody(database, ring, secret):
    create_key(database, account="acme", name="server")
    assert ring.find(secret) is None


def test_a_secret_with_one_other_character_finds_nobody(database, ring):
    _, secret = create_key(database, account="acme", name="server")
    assert ring.find(secret) is not None
    assert ring.find(secret[:-1] + ("A" if secret[-1] != "A" else "B")) is None
    assert ring.find(secret.swapcase()) is None


def test_a_key_made_later_is_found_although_it_was_unknown_before(database, ring):
    _, first = create_key(database, account="acme", name="a")
    assert ring.find(first)
    _, second = create_key(database, account="acme", name="b")
    assert ring.find(second)


def test_a_changed_plan_is_seen_at_once(database, ring):
    _, secret = create_key(database, account="acme", name="a")
    assert ring.find(secret).plan == "free"
    create_key(database, account="acme", name="b", plan="scale")
    assert ring.find(secret).plan == "scale"


def test_who_is_remembered_is_found_without_the_database_until_keys_change(tmp_path, monkeypatch):
    with fresh_database("sqlite", tmp_path) as database:
        ring = KeyRing(database)
        record, secret = create_key(database, account="acme", name="a")
        assert ring.recall(secret) is None
        caller = ring.find(secret)
        with monkeypatch.context() as patch:
            patch.setattr(database, "look_up", None)
            assert ring.recall(secret) == caller
            assert ring.recall("nonsense") is None
        create_key(database, account="acme", name="b")
        assert ring.recall(secret) is None
        assert ring.find(secret) == ring.recall(secret) == caller
        revoke_key(database, record.key_id)
        assert ring.recall(secret) is None
        ring.close()


@pytest.mark.slow
def test_postgresql_is_always_asked(tmp_path):
    with fresh_database("postgresql", tmp_path) as database:
        ring = KeyRing(database)
        _, secret = create_key(database, account="acme", name="a")
        assert ring.find(secret) is not None
        assert ring.recall(secret) is None


def test_what_is_remembered_is_forgotten_after_seconds(tmp_path, monkeypatch):
    with fresh_database("sqlite", tmp_path) as database:
        ring = KeyRing(database)
        _, secret = create_key(database, account="acme", name="a")
        assert ring.find(secret)
        with database.writing() as connection:  # past the generation, as no command of ours does
            connection.execute(api_keys.update().values(revoked_at=Clock(2024, 1, 1).now))
        assert ring.find(secret)
        now = keyring.time.monotonic()
        monkeypatch.setattr(keyring.time, "monotonic", lambda: now + 5.1)
        assert ring.find(secret) is None
        ring.close()


def test_no_more_is_remembered_than_there_is_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(keyring, "_MOST_REMEMBERED", 2)
    with fresh_database("sqlite", tmp_path) as database:
        ring = KeyRing(database)
        secrets = [create_key(database, account="acme", name="a")[1] for _ in range(5)]
        assert all(ring.find(secret) for secret in secrets * 2)
        ring.close()


def test_threads_may_ask_at_once_while_keys_come_and_go(database, ring):
    _, secret = create_key(database, account="acme", name="a")
    wrong = []
    done = threading.Event()

    def ask():
        while not done.is_set():
            if ring.find(secret) is None:
                wrong.append(secret)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        record, other = create_key(database, account="acme", name="b")
        assert ring.find(other)
        revoke_key(database, record.key_id)
        assert ring.find(other) is None
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []


ASK = """
import sys
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.keyring import KeyRing
ring = KeyRing(open_database(sys.argv[1]))
for line in sys.stdin:
    caller = ring.find(line.strip())
    print(caller and caller.plan, flush=True)
"""


@pytest.mark.slow
def test_another_process_refuses_a_revoked_key_and_sees_a_changed_plan_at_once(database):
    worker = start(ASK, url_of(database))

    def ask(secret):
        worker.stdin.write(f"{secret}\n")
        worker.stdin.flush()
        return worker.stdout.readline().strip()

    for _ in range(20):
        record, secret = create_key(database, account="acme", name="a", plan="free")
        assert [ask(secret), ask(secret)] == ["free", "free"]
        create_key(database, account="acme", name="b", plan="scale")
        assert ask(secret) == "scale"
        revoke_key(database, record.key_id)
        assert ask(secret) == "None"
    worker.communicate()
    assert worker.returncode == 0


# -- the generation ---------------------------------------------------------------------------

DIE_IN_A_CHANGE = """
import sys
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.keyring import change_access
with change_access(open_database(sys.argv[1])) as connection:
    connection.exec_driver_sql("UPDATE accounts SET plan = 'scale'")
    print("in it", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_a_change_whose_process_is_killed_leaves_all_as_it_was(tmp_path):
    with fresh_database("sqlite", tmp_path) as database:
        ring = KeyRing(database)
        _, secret = create_key(database, account="acme", name="a")
        assert ring.find(secret).plan == "free"
        worker = start(DIE_IN_A_CHANGE, url_of(database))
        assert worker.stdout.readline() == "in it\n"
        generation = Generation(tmp_path / "api.db")
        assert generation.read() % 2 == 1
        assert [ring.find(secret).plan, ring.find(secret).plan] == ["free", "free"]
        assert generation.read() % 2 == 1
        os.kill(worker.pid, signal.SIGKILL)
        worker.communicate()
        assert ring.find(secret).plan == "free"
        assert generation.read() % 2 == 0
        create_key(database, account="acme", name="b", plan="growth")
        assert ring.find(secret).plan == "growth"
        generation.close()
        ring.close()


def test_a_database_that_was_put_back_from_a_backup_brings_its_own_keys(tmp_path, monkeypatch):
    with fresh_database("sqlite", tmp_path) as database:
        ring = KeyRing(database)
        record, secret = create_key(database, account="acme", name="a")
        assert ring.find(secret)
        (tmp_path / "api.db.generation").unlink()
        revoke_key(database, record.key_id)  # it counts in a new file
        now = keyring.time.monotonic()
        monkeypatch.setattr(keyring.time, "monotonic", lambda: now + 5.1)
        assert ring.find(secret) is None
        record, secret = create_key(database, account="acme", name="b")
        assert ring.find(secret)
        revoke_key(database, record.key_id)
        assert ring.find(secret) is None
        ring.close()


def test_a_generation_that_cannot_be_written_is_told(tmp_path):
    database = open_database(sqlite_url(tmp_path))
    (tmp_path / "api.db.generation").mkdir()
    with pytest.raises(DataError, match=r"api\.db\.generation must be a file"):
        KeyRing(database)
