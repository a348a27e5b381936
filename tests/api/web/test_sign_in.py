"""Signing in and out: what spends a token, what a cookie is worth, where it leads."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.api.accounts.administration import close_account, create_account
from searchlab.api.accounts.sessions import create_link
from searchlab.api.web.browsers import describe_browser
from searchlab.api.web.session_cookies import Site, safe_next
from tests.support.apis import api
from tests.support.pages import tiny_library

WRONG = "sll_" + "a" * 43


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with api(tiny_library(tmp_path_factory.mktemp("sign-in"))) as server:
        create_account(server.database, "ann")
        yield server


@pytest.fixture
def browser(served):
    served.app.services.sign_in_rates._map[:] = bytes(len(served.app.services.sign_in_rates._map))
    return served.make_browser()


def token_of(served, account="ann"):
    return create_link(served.database, account)[0]


# -- tokens -----------------------------------------------------------------------------------


def test_a_token_that_is_posted_signs_in_and_leads_on(served, browser):
    answer = browser.post("/sign-in", data={"token": token_of(served), "next": "/photos/x?q=a"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/photos/x?q=a")
    assert "Signed in as <bdi>ann</bdi>" in browser.get("/").text


def test_looking_at_the_link_spends_nothing(served, browser):
    token = token_of(served)
    for method in ("GET", "HEAD", "OPTIONS"):
        browser.request(method, "/sign-in", params={"token": token})
    for site in ("cross-site", "none"):
        browser.get(f"/sign-in?token={token}", headers={"sec-fetch-site": site})
    assert browser.post("/sign-in", data={"token": token}).status_code == 303


def test_the_whole_address_may_be_pasted(served, browser):
    address = f"  https://photos.test/sign-in#token={token_of(served)} "
    assert browser.post("/sign-in", data={"token": address}).status_code == 303


def test_wrong_spent_and_expired_tokens_get_one_answer(served, browser):
    spent, expired = token_of(served), token_of(served)
    served.make_browser().post("/sign-in", data={"token": spent})
    with served.database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE sign_in_links SET expires_at = '2020-01-01 00:00:00' WHERE used_at IS NULL"
        )
    tokens = [spent, expired, WRONG, "", "nonsense", "\u202e", "x" * 5000]
    answers = [browser.post("/sign-in", data={"token": token}) for token in tokens]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.text for answer in answers}) == 1
    assert all("set-cookie" not in answer.headers for answer in answers)


def test_the_answer_repeats_no_token(served, browser):
    assert WRONG not in browser.post("/sign-in", data={"token": WRONG}).text


def test_a_form_that_comes_from_elsewhere_spends_nothing(served, browser):
    token = token_of(served)
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "https://photos.test"},
    ):
        answer = browser.post("/sign-in", data={"token": token}, headers=headers)
        assert answer.status_code == 403
    assert browser.post("/sign-in", data={"token": token}).status_code == 303


def test_an_old_browser_signs_in_by_its_origin(served):
    browser = served.make_browser()
    del browser.headers["sec-fetch-site"]
    token = token_of(served)
    assert browser.post("/sign-in", data={"token": token}).status_code == 403
    for origin, status in (("https://evil.test", 403), ("null", 403), ("https://photos.test", 303)):
        answer = browser.post("/sign-in", data={"token": token}, headers={"origin": origin})
        assert answer.status_code == status


def test_attempts_from_one_address_are_few(served, browser):
    answers = [browser.post("/sign-in", data={"token": WRONG}) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [403] * 10 + [429]
    assert 0 < int(answers[-1].headers["retry-after"]) <= 10
    # Behind a proxy on this machine, each sender has attempts of its own; what it claims is no use.
    elsewhere = {"x-forwarded-for": "1.1.1.1, 203.0.113.7"}
    answers = [
        browser.post("/sign-in", data={"token": WRONG}, headers=elsewhere | {"x-forwarded-for": v})
        for v in [f"9.9.9.{n}, 203.0.113.7" for n in range(11)]
    ]
    assert [answer.status_code for answer in answers] == [403] * 10 + [429]


def test_behind_a_trusted_proxy_each_sender_has_attempts_of_its_own(tmp_path):
    with api(tiny_library(tmp_path), trusted_proxy_header="X-Real-IP") as served:
        browser = served.make_browser()
        for address in ("203.0.113.7:5555", "203.0.113.8:5555"):
            headers = {"x-real-ip": address}
            answers = [
                browser.post("/sign-in", data={"token": WRONG}, headers=headers) for _ in range(11)
            ]
            assert [answer.status_code for answer in answers] == [403] * 10 + [429]


def test_beside_trusted_proxies_nobody_else_says_whom_they_ask_for(tmp_path):
    proxies = {"trusted_proxy_header": "X-Real-IP", "trusted_proxies": ("172.71.0.0/16",)}
    with api(tiny_library(tmp_path), **proxies) as served:
        browser = served.make_browser()
        claims = [{"x-forwarded-for": f"9.9.9.{n}", "x-real-ip": f"9.9.9.{n}"} for n in range(11)]
        answers = [
            browser.post("/sign-in", data={"token": WRONG}, headers=claim) for claim in claims
        ]
        assert [answer.status_code for answer in answers] == [403] * 10 + [429]


def test_the_script_sends_the_token_once_and_takes_it_out_of_the_history(browser):
    page = browser.get("/sign-in").text
    (address,) = re.findall(r'<script type="module" src="(/static/[^"]+sign_in.js)">', page)
    script = browser.get(address)
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.text.index("replaceState") < script.text.index("form.submit")


def test_a_link_of_a_stranger_moves_nobody_into_another_account_unseen(served, browser):
    create_account(served.database, "mallory <b>")
    victim, form = served.make_browser("ann"), {"token": token_of(served, "mallory <b>")}
    asked = victim.post("/sign-in", data=form)
    assert (asked.status_code, "set-cookie" in asked.headers) == (200, False)
    assert "Go on as <bdi>mallory &lt;b&gt;</bdi>?" in asked.text
    assert asked.headers["cache-control"] == "no-store"
    assert "Signed in as <bdi>ann</bdi>" in victim.get("/").text
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', asked.text))
    assert victim.post("/sign-in", data=hidden).status_code == 303
    assert "Signed in as <bdi>mallory" in victim.get("/").text


def test_a_link_of_ones_own_account_asks_nothing(served, browser):
    browser = served.make_browser("ann")
    assert browser.post("/sign-in", data={"token": token_of(served)}).status_code == 303
    assert browser.post("/sign-in", data={"token": WRONG}).status_code == 403


# -- cookies ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "cookie", "is_secure"),
    [
        ("https://photos.test", "__Host-searchlab", True),
        ("https://photos.test:8443", "__Host-searchlab", True),
        ("http://127.0.0.1:8000", "searchlab-8000", False),
        ("http://localhost:81", "searchlab-81", False),
        ("http://[::1]:8000", "searchlab-8000", False),
    ],
)
def test_the_cookie_is_as_strict_as_the_address_allows(served, base_url, cookie, is_secure):
    browser = served.make_browser(base_url=base_url)
    answer = browser.post("/sign-in", data={"token": token_of(served)})
    name, _, rest = answer.headers["set-cookie"].partition("=")
    value, *attributes = rest.split("; ")
    assert name == cookie
    assert re.fullmatch(r"sls_[A-Za-z0-9_-]{43}", value)
    assert sorted(attributes) == sorted(
        [
            "Max-Age=31536000",
            "Path=/",
            "HttpOnly",
            "SameSite=Lax",
            *(["Secure"] if is_secure else []),
        ]
    )


@pytest.mark.parametrize("base_url", ["http://photos.test", "http://10.0.0.2:8000"])
def test_without_https_nobody_signs_in_from_another_machine(served, base_url):
    browser = served.make_browser(base_url=base_url)
    token = token_of(served)
    answer = browser.post("/sign-in", data={"token": token})
    assert (answer.status_code, "--base-url" in answer.text) == (403, True)
    assert "set-cookie" not in answer.headers
    assert "https://" in browser.get("/sign-in").text
    assert served.make_browser().post("/sign-in", data={"token": token}).status_code == 303


@pytest.mark.parametrize(
    ("base_url", "is_loopback"),
    [
        ("http://127.9.9.9", True),
        ("http://a.localhost", True),
        ("http://127.0.0.1.evil.test", False),
        ("http://localhost.evil.test", False),
        ("http://0.0.0.0", False),
        ("http://[::ffff:10.0.0.1]", False),
    ],
)
def test_only_this_machine_is_loopback(base_url, is_loopback):
    assert Site(base_url).can_sign_in is is_loopback


def test_nobody_chooses_the_session_that_they_sign_in_to(served, browser):
    planted = "sls_" + "b" * 43
    browser.cookies.set("__Host-searchlab", planted, domain="photos.test")
    answer = browser.post("/sign-in", data={"token": token_of(served)})
    assert planted not in answer.headers["set-cookie"]
    stranger = served.make_browser()
    stranger.cookies.set("__Host-searchlab", planted, domain="photos.test")
    assert "Not signed in" in stranger.get("/").text


def test_the_old_session_of_a_browser_ends_as_it_signs_in_again(served):
    browser = served.make_browser("ann")
    old = browser.cookies["__Host-searchlab"]
    browser.post("/sign-in", data={"token": token_of(served)})
    thief = served.make_browser()
    thief.cookies.set("__Host-searchlab", old, domain="photos.test")
    assert "Not signed in" in thief.get("/").text


@pytest.mark.parametrize("value", ["", "x", "sls_", "sls_" + "a" * 43, "sls_" + "a" * 9000])
def test_a_cookie_that_is_no_session_is_nobody(served, value):
    browser = served.make_browser()
    browser.cookies.set("__Host-searchlab", value, domain="photos.test")
    answer = browser.get("/")
    assert (answer.status_code, "Not signed in" in answer.text) == (200, True)


def test_a_cookie_opens_no_operation_of_the_api_and_a_key_no_page(served):
    browser = served.make_browser("ann")
    assert browser.get("/api/v1/usage").status_code == 401
    stranger = served.make_browser()
    stranger.headers["x-api-key"] = served.key
    assert "Not signed in" in stranger.get("/").text


def test_signing_out_ends_the_session_for_good(served):
    browser = served.make_browser("ann")
    secret = browser.cookies["__Host-searchlab"]
    assert browser.post("/sign-out", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert browser.get("/sign-out").status_code == 405
    assert "Signed in as" in browser.get("/").text
    answer = browser.post("/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "__Host-searchlab=; Max-Age=0" in answer.headers["set-cookie"]
    browser.cookies.set("__Host-searchlab", secret, domain="photos.test")
    assert "Not signed in" in browser.get("/").text


def test_the_session_of_a_closed_account_is_nobody(served):
    browser = served.make_browser("short")
    close_account(served.database, "short")
    assert "Not signed in" in browser.get("/").text


def test_neither_page_nor_answer_is_stored(served, browser):
    assert browser.get("/sign-in").headers["cache-control"] == "no-store"
    answer = browser.post("/sign-in", data={"token": token_of(served)})
    assert answer.headers["cache-control"] == "no-store"


# -- where it leads ---------------------------------------------------------------------------

ELSEWHERE = [
    *("//evil.test", "/\\evil.test", "\\\\evil.test", "https://evil.test", "javascript:alert(1)"),
    *("/%2Fevil.test", "/%2f/evil.test", "/%5Cevil.test", "/\t/evil.test", "/\n/evil.test"),
    *("/%0d%0aSet-Cookie:x", "/\r\nSet-Cookie: x=y", " //evil.test", "/a//evil.test", "evil.test"),
    *("", "/\0", "/é", "/" + "a" * 20_000, "http:/evil.test", "/..//evil.test", "/%00"),
    *("////evil.test", "///\\;@evil.test", "/\u2028/evil.test", "data:text/html,x"),
]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_no_address_leads_elsewhere(served, browser, path):
    assert safe_next(path) == "/"
    page = browser.get("/sign-in", params={"next": path})
    assert '<input type="hidden" name="next" value="/">' in page.text


def test_what_is_posted_as_next_is_checked_too(served, browser):
    answer = browser.post("/sign-in", data={"token": token_of(served), "next": "//evil.test"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize("path", ["/", "/account", "/photos/a-b?q=%C3%A9&x=//y#z", "/?q=%5C"])
def test_a_path_of_this_server_is_kept(path):
    assert safe_next(path) == path


@given(st.text(alphabet="/\\.%25fFcC09adeEvil:?#@ \t\n\r", max_size=12))
def test_whatever_comes_a_browser_stays_here(text):
    # As the URL standard reads it: tabs and line ends are dropped, \ is /.
    read = re.sub(r"[\t\n\r]", "", safe_next(text)).replace("\\", "/")
    assert read.startswith("/")
    assert not read.startswith("//")


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit Chrome/140.0 Safari/537.36",
            "Chrome on Windows",
        ),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140 Safari/537 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU like Mac OS X) Version/18.0 Safari/604.1", "Safari on iPhone"),
        ("<script>alert(1)</script>" * 999, "A browser"),
        ("\u202e\0", "A browser"),
    ],
)
def test_a_browser_is_named_and_nothing_else_of_its_header_is_kept(agent, name):
    assert describe_browser(agent) == name
