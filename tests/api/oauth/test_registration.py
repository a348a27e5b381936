"""Apps that register themselves, and those of the dashboard."""

import pytest

from tests.support.oauth_clients import REDIRECT
from tests.support.oauth_server import grant_of
from tests.support.people import hidden, person


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.test/cb",
        "https://app.test:8443/cb?a=1",
        "http://localhost/cb",
        "http://[::1]:9000/cb",
        "com.example.app:/cb",
        "com.example.app://cb",
        "cursor://anysphere.cursor-retrieval/oauth/callback",
    ],
)
def test_addresses_that_apps_have_are_registered(make, uri):
    answer = make().register([uri])
    assert answer.status_code == 201
    assert answer.json()["redirect_uris"] == [uri]
    assert answer.json()["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in answer.json()


@pytest.mark.parametrize(
    "uri",
    [
        "http://app.test/cb",
        "https://app.test/cb#x",
        "https://u:p@app.test/cb",
        "https://app.test\\@evil.test/",
        "https://app.test:65536/cb",
        "http://127.0.0.1:99999/cb",
        "https://app.test /cb",
        "https://*.app.test/cb",
        "https://app.test/c;\r\nb",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "custom:/cb",
        "/cb",
        "",
        "https://app.test/" + "a" * 1_000,
        "https://аpp.test/cb",
    ],
)
def test_addresses_that_lead_anywhere_are_not_registered(make, uri):
    answer = make().register([uri])
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"redirect_uris": []}',
        b'{"redirect_uris": "https://app.test/"}',
        b'{"redirect_uris": ["https://app.test/"], "client_name": "a\\u202eb"}',
        b'{"redirect_uris": ["https://app.test/"], "client_name": "a\\u0000"}',
        b'{"redirect_uris": ["https://app.test/"], "response_types": ["token"]}',
        b'{"redirect_uris": ["https://app.test/"], "grant_types": ["password"]}',
        b"[" * 10_000,
        b'{"redirect_uris": ["\xff"]}',
    ],
)
def test_what_describes_no_client_is_not_registered(make, body):
    answer = make().program.post("/oauth/register", content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")


def test_registering_is_limited_by_address_and_in_size(make):
    app = make()
    big = app.program.post("/oauth/register", content=b" " * 20_000)
    assert big.status_code == 413
    answers = [app.register([REDIRECT]) for _ in range(25)]
    assert answers[0].status_code == 201
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_an_app_of_the_dashboard_is_connected_under_its_name(server, make):
    owner = person(server, "maker")
    form = hidden(owner.get("/account/apps").text)
    sent = form | {"name": "Maker's tool", "redirect_uris": "https://tool.test/cb\nhttp://[::1]/cb"}
    assert owner.post("/account/apps", data=sent).status_code == 303
    assert owner.post("/account/apps", data=sent).status_code == 409
    assert form["client_id"] in owner.get("/account/apps").text
    app = make("user", client_id=form["client_id"], redirect_uris=("https://tool.test/cb",))
    page = app.ask()
    assert "Nobody has checked" not in page.text
    tokens = app.redeem(app.press(page)["code"]).json()
    grant = grant_of(server, tokens["access_token"])
    assert grant.client_name == "Maker's tool"
    stranger = person(server, "mallory")
    assert stranger.post(f"/account/apps/{form['client_id']}/delete").status_code == 404
    assert owner.post(f"/account/apps/{form['client_id']}/delete").status_code == 303
    assert grant_of(server, tokens["access_token"]) is None
    assert app.ask().status_code == 422


@pytest.mark.parametrize(
    ("name", "uris", "says"),
    [("", "https://a.test/", "name must"), ("tool", "", "1 to 10"), ("tool", "x", "must be like")],
)
def test_an_app_that_does_not_fit_is_not_registered(server, name, uris, says):
    owner = person(server, "maker")
    form = hidden(owner.get("/account/apps").text)
    answer = owner.post("/account/apps", data=form | {"name": name, "redirect_uris": uris})
    assert answer.status_code == 422
    assert says in answer.text
