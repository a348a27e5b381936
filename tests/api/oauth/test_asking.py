"""What apps ask for: whatever does not fit leads to no consent and nowhere else."""

import re

import pytest

from searchlab.api.oauth.scopes import SCOPES
from tests.support.oauth_server import BASE
from tests.support.people import hidden, person

# -- what does not fit is told to the app, by a link that the person may follow ----------------


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "x" * 42 + "="}, "invalid_request"),
        ({"resource": "https://photos.test.evil.test/mcp"}, "invalid_target"),
        ({"resource": BASE}, "invalid_target"),
        ({"resource": None}, "invalid_target"),
        ({"resource": "https://photos.test@evil.test/mcp"}, "invalid_target"),
        ({"request": "eyJ"}, "request_not_supported"),
        ({"request_uri": "https://evil.test/r"}, "request_uri_not_supported"),
    ],
)
def test_a_wish_that_does_not_fit_leads_to_no_consent(make, changes, error):
    app = make()
    page = app.ask(**changes)
    back = app.misfit(page)
    assert (back["error"], back["state"], back["iss"]) == (error, "s 1&=", BASE)
    assert 'name="decision"' not in page.text
    sent = app.wish(**changes) | {"decision": "allow", "account_id": str(app.person.account_id)}
    posted = app.person.post("/connect", data=sent)
    assert posted.status_code == 422


# -- who asks, and where the answer goes, must be certain --------------------------------------


@pytest.mark.parametrize(
    "redirect_uri",
    [
        None,
        "",
        "https://evil.test/callback",
        "http://127.0.0.1:8765/callback/",
        "http://127.0.0.1:8765/callback?x=1",
        "http://127.0.0.1:8765/callback#x",
        "http://127.0.0.1:8765/call%62ack",
        "http://127.0.0.1:8765/../callback",
        "http://localhost:8765/callback",
        "http://127.0.0.1.evil.test/callback",
        "http://127.0.0.1:8765@evil.test/callback",
        "http://evil.test\\@127.0.0.1:8765/callback",
        "http://127.0.0.1:x/callback",
        "HTTP://127.0.0.1:8765/callback",
        "https://127.0.0.1:8765/callback",
        "http://127.0.0.1:8765/callback\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
        "//evil.test/callback",
    ],
)
def test_an_answer_goes_nowhere_but_to_the_app(make, redirect_uri):
    app = make()
    page = app.ask(redirect_uri=redirect_uri)
    assert page.status_code == 422
    assert "location" not in page.headers
    assert not any(
        "evil" in address for address in re.findall(r'(?:href|src)="([^"]*)"', page.text)
    )
    sent = app.wish(redirect_uri=redirect_uri) | {"decision": "allow"}
    sent["account_id"] = str(app.person.account_id)
    posted = app.person.post("/connect", data=sent)
    assert posted.status_code == 422
    assert "location" not in posted.headers


def test_a_program_on_this_machine_may_listen_on_any_port(make):
    app = make(redirect_uris=("http://127.0.0.1/callback",))
    app.redirect_uri = "http://127.0.0.1:51234/callback"
    page = app.ask()
    assert "a program on this computer" in page.text
    # Where the app's own page leads on to is known to nobody here.
    assert "form-action" not in page.headers["content-security-policy"]
    assert "form-action 'self';" in app.person.get("/account").headers["content-security-policy"]
    code = app.press(page)["code"]
    assert app.redeem(code, redirect_uri="http://127.0.0.1:51235/callback").status_code == 400


@pytest.mark.parametrize("client_id", [None, "", "app_0123456789abcdef", "x\0", "é", "a" * 4000])
def test_a_client_that_nobody_knows_gets_a_page(make, client_id):
    page = make().ask(client_id=client_id)
    assert page.status_code == 422
    assert "location" not in page.headers
    assert "<h1>" in page.text


def test_parameters_come_once_and_are_short(make):
    app = make()
    twice = app.person.get("/connect?client_id=a&client_id=b")
    assert twice.status_code == 422
    assert "client_id must come once" in twice.text
    assert app.ask(state="x" * 6_001).status_code == 422
    assert app.misfit(app.ask(state="x" * 2_001))["error"] == "invalid_request"
    assert app.ask(state="é").status_code == 422
    assert app.person.get("/connect?" + "&".join(f"a{n}=1" for n in range(60))).status_code == 422
    assert app.person.get("/connect?client_id=%ff").status_code == 422


def test_consent_is_for_who_saw_the_page(server, make):
    """Somebody signs in to another account while the page stands open."""
    app = make("before")
    page = app.ask()
    app.person = person(server, "after")
    shown = app.person.post("/connect", data=hidden(page.text) | {"decision": "allow"})
    assert shown.status_code == 200
    assert "Connect <bdi>Finder</bdi>?" in shown.text
    assert "after" in shown.text


def test_no_other_site_can_press_the_button(make):
    app = make()
    data = hidden(app.ask().text) | {"decision": "allow"}
    for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}):
        assert app.person.post("/connect", data=data, headers=headers).status_code == 403


def test_the_page_cannot_be_framed_and_is_not_kept(make):
    headers = make().ask().headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


def test_names_are_shown_as_text(make):
    page = make(name="<b>Finder</b> & co").ask()
    assert "<b>" not in page.text
    assert "&lt;b&gt;Finder" in page.text
    assert "Nobody has checked" in page.text


def items_of(page, name):
    """Return the items of the list of that id; none if the page has no such list."""
    found = re.search(rf'<ul id="{name}">(.*?)</ul>', page.text, re.DOTALL)
    return re.findall(r"<li>(.*?)</li>", found[1]) if found else []


def test_who_is_asked_for_more_reads_what_the_app_may_do_already(make):
    app = make("widener", name="Finder")
    first = app.ask(scope="search")
    assert (items_of(first, "held"), items_of(first, "added")) == ([], [SCOPES["search"]])
    app.connect(scope="search")
    more = app.ask(scope="search collections:write")
    assert "Let <bdi>Finder</bdi> do more?" in more.text
    assert items_of(more, "held") == [SCOPES["search"]]
    assert items_of(more, "added") == [SCOPES["collections:write"]]
    # What it does not ask for again stays allowed, so it is said as well.
    other = app.ask(scope="collections:read")
    assert items_of(other, "held") == [SCOPES["search"]]
    assert items_of(other, "added") == [SCOPES["collections:read"]]


def test_an_app_that_asks_again_is_said_to_get_nothing_new(make):
    app = make("again", name="Finder")
    app.connect(scope="search collections:read")
    page = app.ask(scope="search")
    assert "Connect <bdi>Finder</bdi> again?" in page.text
    assert items_of(page, "held") == [SCOPES["search"], SCOPES["collections:read"]]
    assert items_of(page, "added") == []


def test_what_others_allowed_an_app_is_nobody_elses(make):
    app, stranger = make("allowing"), make("stranger")
    app.connect(scope="search")
    stranger.client_id = app.client_id
    page = stranger.ask(scope="search")
    assert items_of(page, "held") == []
    assert items_of(page, "added") == [SCOPES["search"]]
