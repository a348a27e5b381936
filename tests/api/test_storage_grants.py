"""Codes, grants and tokens: each works as often as it may, for whom it may, and ends at once."""

import hashlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
import sqlalchemy as sa

from searchlab.api.accounts import issuing
from searchlab.api.accounts.administration import close_account, create_account
from searchlab.api.accounts.apps import (
    find_client,
    propose_app_id,
    register_app,
)
from searchlab.api.accounts.grants import (
    IDLE_LIFE,
    MAX_GRANTS,
    delete_expired_grants,
    list_grants,
    revoke_grant_of,
)
from searchlab.api.accounts.issuing import (
    ACCESS_LIFE,
    CODE_LIFE,
    REPEAT_LIFE,
    challenge_of,
    create_code,
    redeem_code,
    revoke_token,
)
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.tables import METADATA, oauth_codes, oauth_grants, oauth_tokens
from searchlab.api.accounts.usage import UsageCounts, read_keys
from searchlab.api.oauth.tokens import Tokens
from searchlab.errors import InputError, NotFoundError
from tests.support.databases import HOSTILE, run
from tests.support.grants import ASKED, CLIENT, REDIRECT, RESOURCE, VERIFIER, consent

SECOND = timedelta(seconds=1)


def rows(database, table):
    with database.reading() as connection:
        return connection.execute(sa.select(table)).all()


# -- codes ------------------------------------------------------------------------------------


def test_a_code_makes_tokens_of_256_random_bits_kept_as_their_hashes(database, connect, tokens):
    issued = connect()
    assert re.fullmatch(r"sla_[A-Za-z0-9_-]{43}", issued.access_token)
    assert re.fullmatch(r"slr_[A-Za-z0-9_-]{43}", issued.refresh_token)
    hashes = {row.token_sha256 for row in rows(database, oauth_tokens)}
    assert hashes == {
        hashlib.sha256(token.encode()).digest()
        for token in (issued.access_token, issued.refresh_token)
    }
    stored = repr([rows(database, table) for table in METADATA.tables.values()])
    assert issued.access_token not in stored
    assert issued.refresh_token not in stored


def test_a_token_finds_its_grant(connect, tokens, acme, clock):
    grant = tokens.resolve(connect().access_token, RESOURCE)
    assert grant.caller == Caller(acme, grant.grant_id, "growth")
    assert re.fullmatch(r"grant_[0-9a-f]{16}", grant.grant_id)
    assert grant.client_name == "Finder"
    assert grant.scopes == {"search", "collections:read"}
    assert grant.expires_at == clock.now + ACCESS_LIFE


def test_a_code_that_comes_again_ends_what_it_made(database, clock, acme, tokens):
    code = create_code(database, consent(acme), clock=clock)
    issued = redeem_code(database, code, verifier=VERIFIER, clock=clock, **ASKED)
    assert tokens.resolve(issued.access_token, RESOURCE) is not None
    assert redeem_code(database, code, verifier=VERIFIER, clock=clock, **ASKED) is None
    assert tokens.recall(issued.access_token, RESOURCE) is None
    assert tokens.resolve(issued.access_token, RESOURCE) is None
    assert list_grants(database, acme, clock=clock) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client_id", "app_2"),
        ("redirect_uri", "https://app.test/back/"),
        ("resource", "https://photos.test/other"),
        ("verifier", "w" * 43),
        ("verifier", ""),
        ("verifier", challenge_of(VERIFIER)),
    ],
)
def test_a_code_of_another_request_is_refused_and_spent(database, clock, acme, name, value):
    code = create_code(database, consent(acme), clock=clock)
    right = ASKED | {"verifier": VERIFIER}
    assert redeem_code(database, code, clock=clock, **(right | {name: value})) is None
    assert redeem_code(database, code, clock=clock, **right) is None
    assert rows(database, oauth_grants) == []


def test_a_code_lasts_a_minute(database, clock, acme):
    code = create_code(database, consent(acme), clock=clock)
    clock.now += CODE_LIFE
    assert timedelta(seconds=60) == CODE_LIFE
    assert redeem_code(database, code, verifier=VERIFIER, clock=clock, **ASKED) is None


@pytest.mark.parametrize("text", [*HOSTILE, "", "slc_", "slc_" + "x" * 43, "slc_" + "é" * 43])
def test_what_is_no_code_or_token_finds_nothing(database, clock, tokens, renew, text):
    assert redeem_code(database, text, verifier=VERIFIER, clock=clock, **ASKED) is None
    for prefix in ("slr_", "sla_"):
        token = prefix + text[4:]
        assert renew(token) is None
        assert tokens.resolve(token, RESOURCE) is None
        revoke_token(database, token, client_id=CLIENT, clock=clock)


def test_of_many_who_send_a_code_at_once_one_gets_tokens_and_then_loses_them(
    database, clock, acme, tokens
):
    code = create_code(database, consent(acme), clock=clock)
    answers = []

    def send():
        answers.append(redeem_code(database, code, verifier=VERIFIER, clock=clock, **ASKED))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (issued,) = [answer for answer in answers if answer is not None]
    assert tokens.resolve(issued.access_token, RESOURCE) is None


# -- access tokens ----------------------------------------------------------------------------


def test_an_access_token_is_for_one_tool_server_and_for_an_hour(connect, tokens, clock):
    token = connect().access_token
    assert tokens.resolve(token, "https://photos.test.evil.test/mcp") is None
    assert tokens.resolve(token, RESOURCE) is not None
    assert tokens.recall(token, "https://photos.test.evil.test/mcp") is None
    clock.now += timedelta(hours=1)  # also where it is remembered
    assert tokens.resolve(token, RESOURCE) is None


def test_a_refresh_token_or_a_code_is_no_access_token(connect, tokens):
    refresh_token = connect().refresh_token
    assert tokens.resolve(refresh_token, RESOURCE) is None
    assert tokens.resolve("sla_" + refresh_token[4:], RESOURCE) is None


def test_revoking_ends_a_grant_at_once_where_it_is_remembered(database, connect, tokens, clock):
    token = connect().access_token
    grant = tokens.resolve(token, RESOURCE)
    with closing(Tokens(database, clock=clock)) as of_another_worker:
        assert of_another_worker.resolve(token, RESOURCE) == grant
        revoke_grant_of(database, grant.caller.account_id, grant.grant_id, clock=clock)
        for each in (tokens, of_another_worker):
            assert each.recall(token, RESOURCE) is None
            assert each.resolve(token, RESOURCE) is None


def test_another_accounts_grant_cannot_be_revoked(database, connect, tokens, clock):
    token = connect().access_token
    other = create_account(database, "other", clock=clock).account_id
    grant_id = tokens.resolve(token, RESOURCE).grant_id
    for which in (grant_id, "grant_" + "0" * 16, *HOSTILE):
        with pytest.raises(NotFoundError, match="grant_id must be that of an app"):
            revoke_grant_of(database, other, which, clock=clock)
    assert tokens.resolve(token, RESOURCE) is not None


# -- refresh tokens ---------------------------------------------------------------------------


def test_refreshing_replaces_the_refresh_token(connect, renew, tokens):
    first = connect()
    second = renew(first.refresh_token)
    third = renew(second.refresh_token)
    assert len({each.refresh_token for each in (first, second, third)}) == 3
    assert all(tokens.resolve(each.access_token, RESOURCE) for each in (first, second, third))


def test_a_replaced_token_is_honoured_once_more_and_gets_the_same_one_again(
    connect, renew, tokens, clock
):
    first = connect()
    lost = renew(first.refresh_token)
    clock.now += REPEAT_LIFE
    again = renew(first.refresh_token)
    assert again.refresh_token == lost.refresh_token
    assert again.access_token != lost.access_token
    assert renew(again.refresh_token) is not None


@pytest.mark.parametrize("times", [1, 2])
def test_a_token_that_comes_too_late_or_too_often_ends_the_grant(
    connect, renew, tokens, clock, times
):
    first = connect()
    second = renew(first.refresh_token)
    if times == 2:
        assert renew(first.refresh_token) is not None
    else:
        clock.now += REPEAT_LIFE + SECOND
    assert renew(first.refresh_token) is None
    assert renew(second.refresh_token) is None
    assert tokens.resolve(second.access_token, RESOURCE) is None


def test_a_thief_is_noticed_when_the_owner_goes_on(connect, renew, tokens, clock):
    """Whoever of both comes second, even within the minute, ends the grant for both."""
    stolen = connect().refresh_token
    of_thief = renew(stolen)
    renew(of_thief.refresh_token)
    assert renew(stolen) is None
    assert tokens.resolve(of_thief.access_token, RESOURCE) is None


def test_of_many_who_send_a_refresh_token_at_once_two_get_the_same_one_and_the_grant_ends(
    database, connect, renew, clock, acme
):
    """Whatever the order, and in whichever worker: the second may have lost its answer."""
    token = connect().refresh_token
    with ThreadPoolExecutor(4) as pool:
        answers = [each for each in pool.map(renew, [token] * 4) if each is not None]
    assert len(answers) == 2
    assert len({each.refresh_token for each in answers}) == 1
    assert list_grants(database, acme, clock=clock) == []


def test_a_refresh_token_is_for_its_client_and_tool_server(connect, renew):
    token = connect().refresh_token
    assert renew(token, client_id="app_2") is None
    assert renew(token, resource="https://photos.test/other") is None
    assert renew(token) is not None


def test_scopes_can_be_narrowed_for_an_access_token_but_not_widened(connect, renew, tokens):
    first = connect()
    with pytest.raises(InputError, match="scope must be within 'search collections:read'"):
        renew(first.refresh_token, scopes="search collections:write")
    narrow = renew(first.refresh_token, scopes="search")
    assert tokens.resolve(narrow.access_token, RESOURCE).scopes == {"search"}
    wide = renew(narrow.refresh_token)
    assert tokens.resolve(wide.access_token, RESOURCE).scopes == {"search", "collections:read"}


def test_a_grant_ends_when_it_is_not_used_for_long(database, connect, renew, clock, acme):
    token = connect().refresh_token
    clock.now += IDLE_LIFE - SECOND
    token = renew(token).refresh_token
    clock.now += IDLE_LIFE - SECOND
    assert len(list_grants(database, acme, clock=clock)) == 1
    clock.now += SECOND
    assert list_grants(database, acme, clock=clock) == []
    assert renew(token) is None


@pytest.mark.parametrize("kind", ["access", "refresh"])
def test_a_client_gives_tokens_back(database, connect, renew, tokens, clock, kind):
    issued = connect()
    token = issued.access_token if kind == "access" else issued.refresh_token
    revoke_token(database, token, client_id="app_2", clock=clock)
    assert tokens.resolve(issued.access_token, RESOURCE) is not None
    revoke_token(database, token, client_id=CLIENT, clock=clock)
    assert tokens.resolve(issued.access_token, RESOURCE) is None
    assert (renew(issued.refresh_token) is None) == (kind == "refresh")


# -- the account ------------------------------------------------------------------------------


def test_a_grant_is_a_line_of_usage_by_key(database, connect, tokens, meter, clock, acme):
    caller = tokens.resolve(connect().access_token, RESOURCE).caller

    async def search():
        await meter.count(caller, limit=10)
        await meter.flush()

    run(search())
    (line,) = read_keys(database, acme, clock.now)["keys"]
    assert (line["key_id"], line["name"]) == (caller.key_id, "Finder")
    assert line["requests_today"] == line["requests_this_month"] == 1
    assert line["last_used_at"] is not None
    assert list_grants(database, acme, clock=clock)[0].last_used_at == clock.now
    revoke_grant_of(database, acme, caller.key_id, clock=clock)
    assert len(read_keys(database, acme, clock.now)["keys"]) == 1  # until the month ends


def test_a_grant_that_has_expired_is_a_line_only_in_the_month_of_its_searches(
    database, connect, tokens, clock, acme
):
    caller = tokens.resolve(connect().access_token, RESOURCE).caller
    with database.writing() as connection:
        searched = {(acme, caller.key_id): 1}
        UsageCounts(database).add_to_day(connection, clock.now.date(), searched)
        connection.execute(oauth_grants.update().values(expires_at=clock.now))
    assert list_grants(database, acme, clock=clock) == []
    assert len(read_keys(database, acme, clock.now)["keys"]) == 1
    clock.now += timedelta(days=1)  # 1 March
    assert read_keys(database, acme, clock.now)["keys"] == []


def test_one_grant_too_many_ends_the_idlest(database, connect, clock, acme, monkeypatch):
    monkeypatch.setattr("searchlab.api.accounts.grants.MAX_GRANTS", 2)
    assert MAX_GRANTS == 100
    for number in range(3):
        connect(client=f"app_{number}")
        clock.now += SECOND
    created = [grant.created_at for grant in list_grants(database, acme, clock=clock)]
    assert created == [clock.now - SECOND, clock.now - 2 * SECOND]


def test_a_closed_account_leaves_nothing(database, connect, tokens, clock, acme):
    token = connect().access_token
    create_code(database, consent(acme), clock=clock)
    assert tokens.resolve(token, RESOURCE) is not None
    close_account(database, "acme")
    assert tokens.resolve(token, RESOURCE) is None
    assert [rows(database, t) for t in (oauth_codes, oauth_grants, oauth_tokens)] == [[], [], []]


def test_a_closed_account_takes_its_apps_with_it(database, connect, tokens, clock, acme):
    maker = create_account(database, "maker", clock=clock).account_id
    client_id = propose_app_id()
    form = {"name": "Tool", "redirect_uris": [REDIRECT], "client_id": client_id}
    register_app(database, maker, clock=clock, **form)
    token, other = connect(client=client_id).access_token, connect().access_token
    assert tokens.resolve(token, RESOURCE) is not None
    close_account(database, "maker")
    assert tokens.resolve(token, RESOURCE) is None
    assert tokens.resolve(other, RESOURCE) is not None
    assert find_client(database, client_id, clock=clock) is None


def test_what_ended_long_ago_is_deleted(database, connect, renew, clock):
    issued = connect()
    clock.now += timedelta(days=2)
    renew(issued.refresh_token)
    clock.now += timedelta(hours=1)
    with database.writing() as connection:
        delete_expired_grants(connection, clock.now)
    assert rows(database, oauth_codes) == []
    assert len(rows(database, oauth_tokens)) == 3  # both refresh tokens, one access token
    clock.now += IDLE_LIFE + timedelta(days=31)
    with database.writing() as connection:
        delete_expired_grants(connection, clock.now)
    assert rows(database, oauth_grants) == rows(database, oauth_tokens) == []


def test_times_are_those_that_are_promised():
    assert timedelta(hours=1) == issuing.ACCESS_LIFE
    assert timedelta(seconds=60) == issuing.CODE_LIFE == issuing.REPEAT_LIFE
