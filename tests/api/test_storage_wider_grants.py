"""An app that asks again: it stays one grant, and no token allows more than its own consent."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from searchlab.api.accounts import issuing
from searchlab.api.accounts.administration import create_account
from searchlab.api.accounts.grants import list_grants, revoke_grant_of
from searchlab.api.accounts.issuing import (
    ACCESS_LIFE,
    TooManyTokensError,
    create_code,
    redeem_code,
)
from searchlab.api.accounts.tables import oauth_tokens
from searchlab.api.accounts.usage import read_keys
from searchlab.errors import InputError
from tests.support.grants import ASKED, RESOURCE, VERIFIER, consent

SECOND = timedelta(seconds=1)


def test_an_app_that_asks_for_more_stays_one_grant_that_allows_all_of_it(
    database, connect, tokens, clock, acme
):
    first = connect(scopes="search")
    clock.now += SECOND
    second = connect(scopes="collections:write")
    (grant,) = list_grants(database, acme, clock=clock)
    assert grant.scopes == "search collections:write"
    assert grant.created_at == clock.now - SECOND
    found = [tokens.resolve(each.access_token, RESOURCE) for each in (first, second)]
    assert {each.grant_id for each in found} == {grant.grant_id}
    assert len(read_keys(database, acme, clock.now)["keys"]) == 1


def test_tokens_of_before_go_on_allowing_what_they_did_and_no_more(connect, renew, tokens):
    """One of them may be a thief's: what the person allows afterwards is not for it."""
    before = connect(scopes="search")
    after = connect(scopes="search collections:write")
    assert tokens.resolve(before.access_token, RESOURCE).scopes == {"search"}
    with pytest.raises(InputError, match="scope must be within 'search', which was allowed"):
        renew(before.refresh_token, scopes="search collections:write")
    renewed = renew(before.refresh_token)
    assert renewed.scopes == "search"
    assert renew(renewed.refresh_token).scopes == "search"
    assert tokens.resolve(renewed.access_token, RESOURCE).scopes == {"search"}
    assert renew(after.refresh_token).scopes == "search collections:write"


def test_disconnecting_ends_the_tokens_of_before_too(database, connect, tokens, clock, acme):
    issued = [connect(scopes="search"), connect()]
    (grant,) = list_grants(database, acme, clock=clock)
    revoke_grant_of(database, acme, grant.grant_id, clock=clock)
    assert [tokens.resolve(each.access_token, RESOURCE) for each in issued] == [None, None]
    assert connect().scopes == "search collections:read"  # a new grant, without what ended
    (again,) = list_grants(database, acme, clock=clock)
    assert again.grant_id != grant.grant_id


def test_two_apps_of_one_name_and_two_accounts_of_one_app_are_grants_of_their_own(
    database, connect, clock, acme
):
    connect()
    connect(client="app_2")
    other = create_account(database, "other", clock=clock).account_id
    code = create_code(database, consent(other), clock=clock)
    redeem_code(database, code, verifier=VERIFIER, clock=clock, **ASKED)
    assert len(list_grants(database, acme, clock=clock)) == 2
    assert len(list_grants(database, other, clock=clock)) == 1


def test_codes_that_are_redeemed_at_once_make_one_grant(database, clock, acme):
    codes = [create_code(database, consent(acme), clock=clock) for _ in range(4)]

    def send(code):
        return redeem_code(database, code, verifier=VERIFIER, clock=clock, **ASKED)

    with ThreadPoolExecutor(4) as pool:
        issued = list(pool.map(send, codes))
    assert None not in issued
    assert len(list_grants(database, acme, clock=clock)) == 1


def test_a_refresh_token_of_an_older_version_allows_what_its_grant_does(database, connect, renew):
    issued = connect()
    with database.writing() as connection:
        digest = hashlib.sha256(issued.refresh_token.encode()).digest()
        mine = oauth_tokens.c.token_sha256 == digest
        connection.execute(oauth_tokens.update().where(mine).values(scopes=None))
    assert renew(issued.refresh_token).scopes == "search collections:read"


def test_an_app_cannot_fill_the_database_with_tokens(database, connect, renew, clock, monkeypatch):
    monkeypatch.setattr(issuing, "MAX_LIVING", 3)
    token = connect().refresh_token
    for _ in range(2):
        token = renew(token).refresh_token
    clock.now += ACCESS_LIFE - timedelta(seconds=90.5)
    with pytest.raises(TooManyTokensError, match="an app may have 3 access tokens") as refused:
        renew(token)
    assert refused.value.retry_after_s == 91
    clock.now += timedelta(seconds=91)
    assert renew(token) is not None  # it was not used up, and nothing was ended
