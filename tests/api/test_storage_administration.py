"""Accounts as a whole: made, listed, moved to another plan, closed with all that is theirs."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from searchlab.api.accounts.accounts import (
    add_key,
    create_key,
    plan_of,
    propose_key_id,
    revoke_key_of,
)
from searchlab.api.accounts.administration import (
    change_plan,
    close_account,
    create_account,
    find_account,
    list_accounts,
)
from searchlab.api.accounts.apps import propose_app_id, register_app
from searchlab.api.accounts.collections import Collections, FullError
from searchlab.api.accounts.export import export_account
from searchlab.api.accounts.issuing import Consent, challenge_of, create_code, redeem_code
from searchlab.api.accounts.keyring import Caller, KeyRing
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.replays import Attempt, Replays
from searchlab.api.accounts.sessions import Sessions, create_link, sign_in
from searchlab.api.accounts.tables import METADATA, accounts, api_keys, usage_days, usage_months
from searchlab.errors import ConflictError, InputError, NotFoundError
from tests.support.databases import HOSTILE, lock_account, run


def fill(database, account, clock):
    """Give an account a row in every table; returns its key and the secret of its session."""
    record, secret = create_key(database, account=account, name="server", clock=clock)
    account_id = find_account(database, account, clock=clock).account_id
    shelf = Collections(database, clock=clock)
    with database.writing() as connection:
        made = shelf.create(connection, account_id, name="trees")
        shelf.add_photo(
            connection,
            account_id,
            made["id"],
            photo_id="one",
            photo_thumbnail_url=None,
            photo_source="pexels",
            photo_photographer="Ann",
        )
    meter = Meter(database, clock=clock)
    try:
        run(meter.count(Caller(account_id, record.key_id, "free"), limit=9))
    finally:
        meter.close()
    Replays(database, clock=clock).begin(Attempt(account_id, "POST", "/x", account, b"same"))
    token, _ = create_link(database, account, clock=clock)
    session = sign_in(database, token, browser="Firefox", clock=clock)
    create_link(database, account, clock=clock)
    asked = {"client_id": propose_app_id(), "redirect_uri": "https://a.test/", "resource": "r"}
    app = {"name": "finder", "redirect_uris": ["https://a.test/"], "client_id": asked["client_id"]}
    register_app(database, account_id, clock=clock, **app)
    consent = Consent(
        account_id=account_id,
        client_name="finder",
        scopes="search",
        challenge=challenge_of("verifier"),
        **asked,
    )
    code = create_code(database, consent, clock=clock)
    assert redeem_code(database, code, verifier="verifier", clock=clock, **asked) is not None
    return secret, session


def counts(database):
    with database.reading() as connection:
        return {
            name: connection.scalar(sa.select(sa.func.count()).select_from(table))
            for name, table in METADATA.tables.items()
        }


def test_a_new_account_is_listed_with_what_it_has(database, clock):
    made = create_account(database, "beta", plan="growth", clock=clock)
    assert (made.name, made.plan, made.created_at) == ("beta", "growth", clock.now)
    fill(database, "acme", clock)
    first, second = list_accounts(database, clock=clock)
    assert (first.name, first.keys, first.sessions, first.collections) == ("acme", 1, 1, 1)
    assert (first.plan, first.requests) == ("free", 1)
    assert second == made
    clock.now += timedelta(days=60)
    assert list_accounts(database, clock=clock)[0].requests == 0
    assert list_accounts(database, clock=clock)[0].sessions == 0


def test_a_name_is_taken_once(database, clock):
    create_account(database, "Zo\u00eb", clock=clock)
    with pytest.raises(ConflictError, match="account must be a new name"):
        create_account(database, "Zoe\u0308", clock=clock)


@pytest.mark.parametrize("name", ["", "x" * 101, " a", "a\u202eb", "a\u200bb", *HOSTILE])
def test_a_name_that_is_not_visible_makes_no_account(database, clock, name):
    with pytest.raises(InputError, match="account must"):
        create_account(database, name, clock=clock)
    assert list_accounts(database, clock=clock) == []


def test_another_plan_is_seen_at_once_by_keys_and_sessions(database, clock):
    secret, session = fill(database, "acme", clock)
    keys, sessions = KeyRing(database), Sessions(database, clock=clock)
    assert (keys.find(secret).plan, sessions.find(session).plan) == ("free", "free")
    change_plan(database, "acme", "scale")
    assert (keys.find(secret).plan, sessions.find(session).plan) == ("scale", "scale")
    assert plan_of(database, "acme") == "scale"
    keys.close()
    sessions.close()


def test_a_plan_or_account_that_is_none_is_refused(database, clock):
    create_account(database, "acme", clock=clock)
    with pytest.raises(InputError, match="plan must be one of"):
        change_plan(database, "acme", "gold")
    with pytest.raises(NotFoundError, match="got 'nobody'"):
        change_plan(database, "nobody", "scale")
    with pytest.raises(NotFoundError, match="got 'nobody'"):
        close_account(database, "nobody")
    assert find_account(database, "acme").plan == "free"


def test_a_closed_account_leaves_nothing_and_takes_nothing_of_others(database, clock):
    create_account(database, "empty", clock=clock)
    before = counts(database)
    assert sum(before.values()) == 1
    secret, session = fill(database, "acme", clock)
    assert all(counts(database).values()), "every table has a row, or this test shows less"
    theirs, their_session = fill(database, "beta", clock)
    both = counts(database)
    keys, sessions = KeyRing(database), Sessions(database, clock=clock)
    assert keys.find(secret)
    assert sessions.find(session)
    deleted = close_account(database, "acme")
    assert deleted["accounts"] == deleted["api_keys"] == deleted["collection_photos"] == 1
    assert (keys.find(secret), sessions.find(session)) == (None, None)
    assert keys.find(theirs)
    assert sessions.find(their_session)
    left = counts(database)
    assert left == {name: both[name] - count for name, count in deleted.items()}
    close_account(database, "beta")
    assert counts(database) == before
    keys.close()
    sessions.close()


def test_an_account_is_closed_while_its_searches_are_counted(database, clock):
    """What counts them locks the month, and then the key; closing must not have locked the key."""
    fill(database, "acme", clock)
    account_id = find_account(database, "acme", clock=clock).account_id

    def touch(connection, table, column):
        mine = table.c.account_id == account_id
        changed = table.update().where(mine).values({column: column}).returning(column)
        assert connection.execute(changed).all()

    with ThreadPoolExecutor(1) as pool:
        with database.writing() as connection:
            touch(connection, usage_months, usage_months.c.requests)
            closing = pool.submit(close_account, database, "acme")
            with pytest.raises(TimeoutError):
                closing.result(0.5)
            touch(connection, api_keys, api_keys.c.last_used_at)
        assert closing.result(30)["accounts"] == 1
    assert sum(counts(database).values()) == 0


def test_an_export_holds_an_accounts_own_rows_alone(database, clock):
    fill(database, "acme", clock)
    fill(database, "beta", clock)
    export = export_account(database, find_account(database, "beta", clock=clock).account_id)
    assert export["account"]["name"] == "beta"
    lists = {name: len(rows) for name, rows in export.items() if isinstance(rows, list)}
    assert lists.pop("sign_in_links") == lists.pop("tokens_of_apps") == 2
    assert set(lists.values()) == {1}
    assert [len(made["photos"]) for made in export["collections"]] == [1]
    assert export["usage_by_day"][0]["day"] == "2024-02-29"
    assert export["sessions"][0]["created_at"].endswith("+00:00")


def test_a_form_adds_one_key_and_its_account_revokes_it(database, clock):
    first = create_account(database, "acme", clock=clock).account_id
    second = create_account(database, "beta", clock=clock).account_id
    key_id, keys = propose_key_id(), KeyRing(database)
    _, secret = add_key(database, first, name="a", key_id=key_id, clock=clock)
    for account_id in (first, second):
        with pytest.raises(ConflictError, match="this form must be sent once"):
            add_key(database, account_id, name="b", key_id=key_id, clock=clock)
    assert keys.find(secret).account_id == first
    with pytest.raises(NotFoundError):
        revoke_key_of(database, second, key_id, clock=clock)
    assert keys.find(secret)
    revoke_key_of(database, first, key_id, clock=clock)
    assert keys.find(secret) is None
    with pytest.raises(NotFoundError):
        revoke_key_of(database, first, "key_\0", clock=clock)
    keys.close()


def test_of_two_who_make_the_last_key_one_does(database, clock, monkeypatch):
    monkeypatch.setattr("searchlab.api.accounts.accounts.MAX_KEYS", 1)
    account_id = create_account(database, "acme", clock=clock).account_id
    made = {"id": "key_1", "account_id": account_id, "name": "first", "hint": "sl_1"}
    with ThreadPoolExecutor(1) as pool:
        with lock_account(database, account_id) as connection:
            key_id = propose_key_id()
            second = pool.submit(add_key, database, account_id, name="second", key_id=key_id)
            with pytest.raises(TimeoutError):
                second.result(0.5)
            values = made | {"secret_sha256": b"1", "created_at": clock.now}
            connection.execute(api_keys.insert().values(values))
        with pytest.raises(FullError, match="at most 1 keys, got one more; revoke one first"):
            second.result(30)
    assert counts(database)["api_keys"] == 1


def test_every_table_belongs_to_an_account_or_goes_with_one_that_does():
    roots = {"accounts", "collection_photos"}
    assert {name for name, table in METADATA.tables.items() if "account_id" not in table.c} == roots


def test_the_number_of_a_closed_account_is_never_given_again(database, clock):
    first = create_account(database, "acme", clock=clock)
    close_account(database, "acme")
    assert create_account(database, "acme", clock=clock).account_id > first.account_id


def test_what_a_search_counts_for_an_account_that_is_closed_meanwhile_goes_with_old_counts(
    database, clock
):
    secret, _ = fill(database, "acme", clock)
    caller = KeyRing(database).find(secret)
    meter = Meter(database, clock=clock)
    for _ in range(2):  # it deletes what is old once a day, after its first work
        run(meter.flush())
    close_account(database, "acme")
    create_account(database, "beta", clock=clock)
    assert run(meter.count(caller, limit=9)) == 1
    assert counts(database)["usage_days"] == counts(database)["usage_months"] == 1
    meter.close()
    clock.now += timedelta(days=1)
    later = Meter(database, clock=clock)
    run(later.flush())
    later.close()
    left = counts(database)
    assert (left[usage_days.name], left[usage_months.name], left[accounts.name]) == (0, 0, 1)
