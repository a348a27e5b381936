"""A person connects an app, and the app uses, renews and gives back its tokens."""

from urllib.parse import parse_qsl, urlsplit

from mcp.shared.auth import OAuthToken

from searchlab.api.accounts import issuing
from tests.support.oauth_clients import REDIRECT
from tests.support.oauth_server import BASE, RESOURCE, grant_of
from tests.support.people import hidden


def test_a_person_connects_an_app_and_disconnects_it(server, make):
    app = make("whole")
    page = app.ask()
    assert page.status_code == 200
    for words in ("Finder", "127.0.0.1", REDIRECT, "whole", "Search photos", "private ones too"):
        assert words in page.text
    back = app.press(page)
    assert (back["state"], back["iss"]) == ("s 1&=", BASE)
    answer = app.redeem(back["code"])
    assert answer.headers["cache-control"] == "no-store"
    tokens = OAuthToken.model_validate_json(answer.content)
    assert (tokens.token_type, tokens.expires_in) == ("Bearer", 3600)
    assert tokens.scope == "search collections:read"
    grant = grant_of(server, tokens.access_token)
    assert grant.scopes == {"search", "collections:read"}
    account = app.person.get("/account").text
    assert "Finder" in account
    assert grant.grant_id in account
    done = app.person.post(f"/account/grants/{grant.grant_id}/revoke")
    assert done.status_code == 303
    assert grant_of(server, tokens.access_token) is None
    assert app.renew(tokens.refresh_token).json()["error"] == "invalid_grant"
    assert grant.grant_id not in app.person.get("/account").text


def test_the_app_is_told_that_the_person_refused(make):
    app = make()
    back = app.press(app.ask(), "refuse")
    assert back == {
        "error": "access_denied",
        "error_description": "the person refused",
        "state": "s 1&=",
        "iss": BASE,
    }


def test_who_is_not_signed_in_comes_back_after_signing_in(server, make):
    app = make()
    app.person = server.make_browser()
    answer = app.ask()
    assert answer.status_code == 303
    page = app.person.get(answer.headers["location"])
    for each in (answer, page):  # else a client that opened this window would lose it
        assert each.headers["cross-origin-opener-policy"] == "unsafe-none"
    following = hidden(page.text)["next"]
    assert following.startswith("/connect?")
    assert dict(parse_qsl(urlsplit(following).query)) == app.wish()
    posted = app.person.post("/connect", data=app.wish() | {"decision": "allow"})
    assert posted.headers["location"] == answer.headers["location"]


def test_refreshing_and_revoking_over_http(server, make):
    app = make()
    first = app.connect()
    second = app.renew(first["refresh_token"], resource=RESOURCE, scope="search").json()
    assert second["scope"] == "search"
    assert grant_of(server, second["access_token"]).scopes == {"search"}
    assert app.renew(second["refresh_token"], resource="https://e.test/mcp").json() == {
        "error": "invalid_target",
        "error_description": f"resource must be {RESOURCE}",
    }
    wide = app.renew(second["refresh_token"], scope="search collections:write")
    assert wide.json()["error"] == "invalid_scope"
    assert app.post("revoke", {"token": "slr_unknown", "client_id": "x"}).status_code == 200
    form = {"token": second["refresh_token"], "client_id": app.client_id}
    assert app.post("revoke", form).status_code == 200
    assert grant_of(server, first["access_token"]) is None


def test_a_stolen_refresh_token_ends_the_grant_for_the_thief_too(server, make, monkeypatch):
    monkeypatch.setattr(issuing, "REPEAT_LIFE", issuing.REPEAT_LIFE * 0)
    app = make()
    stolen = app.connect()["refresh_token"]
    of_thief = app.renew(stolen).json()
    assert app.renew(stolen).json()["error"] == "invalid_grant"
    assert grant_of(server, of_thief["access_token"]) is None
    assert app.renew(of_thief["refresh_token"]).status_code == 400


def test_an_app_that_asks_for_more_is_one_line_among_the_connected_apps(server, make):
    app = make("stepper", name="Stepper")
    narrow = app.connect(scope="search")
    wide = app.connect(scope="search collections:write")
    listed = app.person.get("/account").text
    assert listed.count("Disconnect<span") == 1
    assert "Create, change and delete your collections" in listed
    assert grant_of(server, narrow["access_token"]).scopes == {"search"}
    assert app.renew(narrow["refresh_token"]).json()["scope"] == "search"
    assert app.renew(wide["refresh_token"]).json()["scope"] == "search collections:write"


def test_scopes_that_nobody_knows_are_left_out_and_none_means_search(server, make):
    app = make()
    assert app.connect(scope="offline_access search")["scope"] == "search"
    assert app.connect(scope=None)["scope"] == "search"
    assert app.misfit(app.ask(scope="everything"))["error"] == "invalid_scope"
