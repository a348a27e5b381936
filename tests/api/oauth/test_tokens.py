"""Codes and tokens of others: replayed, stolen, mixed up, of the wrong request."""

import pytest

from searchlab.api.accounts import issuing
from tests.support.oauth_server import grant_of


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": "short"}, "invalid_request"),
        ({"code_verifier": None}, "invalid_request"),
        ({"code_verifier": "w" * 129}, "invalid_request"),
        ({"client_id": None}, "invalid_request"),
        ({"client_id": "app_0123456789abcdef"}, "invalid_grant"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"redirect_uri": "http://127.0.0.1:8766/callback"}, "invalid_grant"),
        ({"resource": "https://evil.test/mcp"}, "invalid_target"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": None}, "invalid_request"),
        ({"code": "slc_" + "x" * 43}, "invalid_grant"),
        ({"code": "x" * 60_000}, "invalid_grant"),
        ({"client_secret": "x"}, "invalid_client"),
    ],
)
def test_a_code_is_redeemed_by_who_asked_alone(make, changes, error):
    app = make()
    form = {"code": app.press(app.ask())["code"]} | changes
    answer = app.redeem(**form)
    assert answer.json()["error"] == error
    assert answer.json()["error_description"].isascii()
    assert answer.status_code == (401 if error == "invalid_client" else 400)
    assert answer.headers["cache-control"] == "no-store"


def test_a_client_that_sends_a_password_is_told_that_none_is_taken(make):
    app = make()
    sent = {"authorization": "Basic YXBwOnNlY3JldA=="}
    form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": app.client_id}
    answer = app.program.post("/oauth/token", data=form, headers=sent)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert answer.headers["www-authenticate"].startswith("Basic ")


def test_a_code_that_is_replayed_ends_what_it_made(server, make):
    app = make()
    code = app.press(app.ask())["code"]
    token = app.redeem(code).json()["access_token"]
    assert grant_of(server, token) is not None
    thief = make("mallory")
    assert thief.redeem(code, client_id=app.client_id).json()["error"] == "invalid_grant"
    assert grant_of(server, token) is None


def test_one_client_cannot_use_what_another_got(server, make):
    """A mix-up: a dishonest client lures an honest one into sending it a code or token."""
    honest, dishonest = make(), make("mallory")
    code = honest.press(honest.ask())["code"]
    stolen = dishonest.redeem(code, code_verifier=honest.verifier)
    assert stolen.json()["error"] == "invalid_grant"
    tokens = honest.connect()
    assert dishonest.renew(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    form = {"token": tokens["refresh_token"], "client_id": dishonest.client_id}
    assert dishonest.post("revoke", form).status_code == 200
    assert grant_of(server, tokens["access_token"]) is not None


def test_another_accounts_grant_cannot_be_ended(server, make):
    app, mallory = make(), make("mallory")
    token = app.connect()["access_token"]
    grant = grant_of(server, token)
    answer = mallory.person.post(f"/account/grants/{grant.grant_id}/revoke")
    assert answer.status_code == 404
    assert grant_of(server, token) is not None


def test_a_token_of_an_app_is_no_key_and_a_key_is_no_token(server, make):
    token = make().connect()["access_token"]
    asked = server.anonymous.get("/api/v1/usage", headers={"x-api-key": token})
    assert asked.status_code == 401
    assert grant_of(server, server.key) is None


@pytest.mark.parametrize("what", ["token", "revoke"])
def test_forms_are_small_plain_and_say_each_thing_once(make, what):
    program = make().program
    url = f"/oauth/{what}"
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert program.post(url, content=b"a" * 70_000, headers=form).status_code == 413
    assert program.post(url, json={}).status_code == 415
    for content in (b"client_id=a&client_id=b", b"code=%00", b"code=\xff", b"a=1&" * 600):
        answer = program.post(url, content=content, headers=form)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert program.get(url).status_code == 405


def test_an_app_with_too_many_tokens_is_told_how_long_to_wait(make, monkeypatch):
    monkeypatch.setattr(issuing, "MAX_LIVING", 1)
    app = make()
    answer = app.renew(app.connect()["refresh_token"])
    assert (answer.status_code, answer.json()["error"]) == (429, "temporarily_unavailable")
    assert 3_500 < int(answer.headers["retry-after"]) <= 3_600


def test_who_sends_wrong_codes_must_wait(make):
    app = make()
    answers = [app.redeem("slc_" + "x" * 43).status_code for _ in range(110)]
    assert answers[0] == 400
    assert answers[-1] == 429
    assert make().redeem("slc_" + "x" * 43).status_code == 400  # another address need not
