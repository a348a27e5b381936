"""Sign-in links and sessions: made, spent once, found at every request, ended at once."""

import hashlib
import re
import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from searchlab.api.accounts import sessions as storage
from searchlab.api.accounts.administration import create_account
from searchlab.api.accounts.sessions import (
    IDLE_LIFE,
    LINK_LIFE,
    LONGEST_LIFE,
    Sessions,
    create_link,
    end_sessions,
    list_sessions,
    sign_in,
)
from searchlab.api.accounts.tables import sessions, sign_in_links
from searchlab.api.accounts.visitors import Visitor
from searchlab.errors import InputError, NotFoundError
from tests.support.databases import HOSTILE, fresh_database, start


@pytest.fixture
def ring(database, clock):
    ring = Sessions(database, clock=clock)
    yield ring
    ring.close()


@pytest.fixture
def acme(database, clock):
    return create_account(database, "acme", plan="growth", clock=clock).account_id


def enter(database, clock, account="acme", **options):
    token, _ = create_link(database, account, clock=clock)
    return sign_in(database, token, browser="Firefox on Linux", clock=clock, **options)


def rows(database, table):
    with database.reading() as connection:
        return connection.execute(sa.select(table)).all()


# -- links ------------------------------------------------------------------------------------


def test_a_link_is_256_random_bits_kept_as_their_hash(database, clock, acme):
    token, expires_at = create_link(database, "acme", clock=clock)
    assert re.fullmatch(r"sll_[A-Za-z0-9_-]{43}", token)
    assert expires_at == clock.now + timedelta(minutes=10)
    (row,) = rows(database, sign_in_links)
    assert row.token_sha256 == hashlib.sha256(token.encode()).digest()
    assert token not in repr(row)


def test_only_an_account_that_exists_gets_a_link(database, clock):
    with pytest.raises(NotFoundError, match="got 'nobody'; see `searchlab accounts list`"):
        create_link(database, "nobody", clock=clock)
    with pytest.raises(InputError, match="account must"):
        create_link(database, "a\0b", clock=clock)


def test_a_link_signs_in_once(database, clock, acme, ring):
    token, _ = create_link(database, "acme", clock=clock)
    secret = sign_in(database, token, browser="Firefox on Linux", clock=clock)
    assert re.fullmatch(r"sls_[A-Za-z0-9_-]{43}", secret)
    assert sign_in(database, token, browser="Firefox on Linux", clock=clock) is None
    visitor = ring.find(secret)
    assert visitor == Visitor(acme, "acme", "growth", visitor.session_id)
    assert visitor.is_signed_in


@pytest.mark.parametrize("past", [LINK_LIFE, timedelta(days=1)])
def test_an_expired_link_signs_nobody_in(database, clock, acme, past):
    token, _ = create_link(database, "acme", clock=clock)
    clock.now += past
    assert sign_in(database, token, browser="", clock=clock) is None
    assert rows(database, sessions) == []


@pytest.mark.parametrize("token", ["", "sll_", "x" * 47, "sll_" + "a" * 43, "sll_" + "é" * 43])
def test_what_is_no_token_signs_nobody_in(database, clock, acme, token):
    create_link(database, "acme", clock=clock)
    assert sign_in(database, token, browser="", clock=clock) is None


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_token_that_cannot_be_stored_is_no_token(database, clock, acme, hostile):
    assert sign_in(database, ("sll_" + hostile).ljust(47, "a"), browser="", clock=clock) is None


def test_of_many_attempts_at_once_with_one_link_one_succeeds(database, clock, acme):
    token, _ = create_link(database, "acme", clock=clock)
    gate, secrets = threading.Barrier(6), []

    def attempt():
        gate.wait()
        secrets.append(sign_in(database, token, browser="", clock=clock))

    threads = [threading.Thread(target=attempt) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(secrets) == 6
    assert sum(secret is not None for secret in secrets) == 1
    assert len(rows(database, sessions)) == 1


def test_a_wrong_token_makes_no_worker_forget_whom_it_knows(tmp_path, clock, monkeypatch):
    with fresh_database("sqlite", tmp_path) as database:
        create_account(database, "acme", clock=clock)
        secret = enter(database, clock)
        ring = Sessions(database, clock=clock)
        visitor = ring.find(secret)
        assert sign_in(database, "sll_" + "a" * 43, browser="", clock=clock) is None
        assert ring.recall(secret) == visitor
        ring.close()


# -- sessions ---------------------------------------------------------------------------------


def test_a_session_is_kept_as_its_hash_only(database, clock, acme):
    secret = enter(database, clock)
    (row,) = rows(database, sessions)
    assert row.secret_sha256 == hashlib.sha256(secret.encode()).digest()
    assert secret not in repr(row)
    assert secret.removeprefix("sls_") not in row.id


@pytest.mark.parametrize("secret", ["", "sls_", "x" * 47, "sls_" + "é" * 43, "sls_" + "\0" * 43])
def test_what_is_no_secret_finds_nobody(database, clock, acme, ring, secret):
    enter(database, clock)
    assert ring.find(secret) is None
    assert ring.recall(secret) is None


def test_a_link_is_no_session_and_a_session_no_link(database, clock, acme, ring):
    token, _ = create_link(database, "acme", clock=clock)
    assert ring.find(token) is None
    assert sign_in(database, enter(database, clock), browser="", clock=clock) is None


def test_the_session_that_a_browser_had_ends_when_it_signs_in_again(database, clock, acme, ring):
    first = enter(database, clock)
    assert ring.find(first)
    second = enter(database, clock, replaced=first)
    assert ring.find(first) is None
    assert ring.find(second)
    assert len(list_sessions(database, acme, clock=clock)) == 1


def test_a_session_ends_when_it_is_not_used_for_a_month(database, clock, acme, ring):
    secret = enter(database, clock)
    clock.now += IDLE_LIFE - timedelta(seconds=1)
    assert ring.find(secret)
    ring._remembered._known.clear()
    clock.now += IDLE_LIFE - timedelta(seconds=1)
    assert ring.find(secret), "use prolongs it"
    ring._remembered._known.clear()
    clock.now += IDLE_LIFE
    assert ring.find(secret) is None


def test_no_session_is_older_than_a_year(database, clock, acme, ring):
    secret, end = enter(database, clock), clock.now + LONGEST_LIFE
    while clock.now + timedelta(days=20) < end:
        clock.now += timedelta(days=20)
        ring._remembered._known.clear()
        assert ring.find(secret)
    clock.now = end
    ring._remembered._known.clear()
    assert ring.find(secret) is None


def test_when_it_was_used_is_noted_once_a_minute(database, clock, acme, ring):
    secret, began = enter(database, clock), clock.now
    clock.now += timedelta(seconds=59)
    ring.find(secret)
    assert list_sessions(database, acme, clock=clock)[0].last_seen_at == began
    ring._remembered._known.clear()
    clock.now += timedelta(seconds=1)
    ring.find(secret)
    assert list_sessions(database, acme, clock=clock)[0].last_seen_at == clock.now


def test_an_account_ends_its_own_sessions_only(database, clock, acme, ring):
    create_account(database, "beta", clock=clock)
    mine, theirs = enter(database, clock), enter(database, clock, "beta")
    theirs_id = ring.find(theirs).session_id
    assert end_sessions(database, acme, theirs_id, clock=clock) == 0
    assert end_sessions(database, acme, "ses_\0", clock=clock) == 0
    assert end_sessions(database, acme, ring.find(mine).session_id, clock=clock) == 1
    assert end_sessions(database, acme, clock=clock) == 0
    assert ring.find(mine) is None
    assert ring.find(theirs)


def test_all_sessions_of_an_account_end_together(database, clock, acme, ring):
    secrets = [enter(database, clock) for _ in range(3)]
    assert all(map(ring.find, secrets))
    assert end_sessions(database, acme, clock=clock) == 3
    assert [ring.find(secret) for secret in secrets] == [None] * 3
    assert list_sessions(database, acme, clock=clock) == []


def test_sessions_are_listed_with_the_latest_first(database, clock, acme):
    enter(database, clock)
    clock.now += timedelta(minutes=5)
    enter(database, clock)
    first, second = list_sessions(database, acme, clock=clock)
    assert first.last_seen_at - second.last_seen_at == timedelta(minutes=5)
    assert first.browser == "Firefox on Linux"


def test_one_session_too_many_ends_the_one_that_was_idle_for_longest(
    database, clock, acme, ring, monkeypatch
):
    monkeypatch.setattr(storage, "MAX_SESSIONS", 2)
    secrets = []
    for _ in range(3):
        secrets.append(enter(database, clock))
        clock.now += timedelta(minutes=5)
    assert [bool(ring.find(secret)) for secret in secrets] == [False, True, True]


def test_what_is_expired_is_deleted_when_somebody_signs_in(database, clock, acme):
    create_link(database, "acme", clock=clock)
    enter(database, clock)
    clock.now += IDLE_LIFE + timedelta(days=31)
    enter(database, clock)
    assert len(rows(database, sign_in_links)) == 1
    assert len(rows(database, sessions)) == 1


ASK = """
import sys
from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.sessions import Sessions
ring = Sessions(open_database(sys.argv[1]))
for line in sys.stdin:
    visitor = ring.find(line.strip())
    print(visitor and visitor.account, flush=True)
"""


@pytest.mark.slow
def test_another_process_refuses_an_ended_session_at_once(database):
    account_id = create_account(database, "acme").account_id
    worker = start(ASK, database.engine.url.render_as_string(hide_password=False))

    def ask(secret):
        worker.stdin.write(f"{secret}\n")
        worker.stdin.flush()
        return worker.stdout.readline().strip()

    for _ in range(10):
        token, _ = create_link(database, "acme")
        secret = sign_in(database, token, browser="")
        assert [ask(secret), ask(secret)] == ["acme", "acme"]
        end_sessions(database, account_id)
        assert ask(secret) == "None"
    worker.communicate()
    assert worker.returncode == 0
