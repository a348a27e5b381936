"""The account dashboard: keys that work at once, usage, sessions, and nobody else's things."""

import contextlib
import html
import io
import itertools
import json
import re
import shlex

import pytest

from searchlab.api.accounts import accounts as storage
from searchlab.api.accounts.accounts import create_key, list_keys
from searchlab.api.accounts.administration import find_account
from searchlab.api.accounts.collections import Collections
from searchlab.api.accounts.export import EXPORTED
from searchlab.api.accounts.sessions import create_link, list_sessions, sign_in
from searchlab.api.accounts.tables import METADATA
from searchlab.api.web.account.charts import bar_chart
from searchlab.client import Client
from searchlab.errors import NotFoundError
from tests.support.apis import api
from tests.support.pages import tiny_library

NUMBERS = itertools.count(1)
SECRET = re.compile(r"sl_[A-Za-z0-9_-]{43}")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with api(tiny_library(tmp_path_factory.mktemp("account"))) as server:
        yield server


@pytest.fixture
def browser(served):
    return served.make_browser(f"ann {next(NUMBERS)}")


def account_of(browser):
    return html.unescape(re.search(r"<h1><bdi>(.*?)</bdi>", browser.get("/account").text)[1])


def key_id_of(browser):
    return re.search(r'name="key_id" value="([^"]+)"', browser.get("/account").text)[1]


def make_key(browser, name="laptop"):
    answer = browser.post("/account/keys", data={"name": name, "key_id": key_id_of(browser)})
    assert answer.status_code == 200, answer.text
    return answer, SECRET.search(answer.text)[0]


def code_of(answer, name):
    return html.unescape(re.search(rf'<code id="{name}">(.*?)</code>', answer.text, re.S)[1])


# -- keys -------------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_works_at_once(served, browser):
    answer, secret = make_key(browser)
    assert served.anonymous.get("/api/v1/usage", headers={"x-api-key": secret}).status_code == 200
    assert secret not in browser.get("/account").text
    assert ">laptop</bdi>" in browser.get("/account").text
    assert answer.headers["cache-control"] == "no-store"


def test_the_lines_for_a_terminal_and_for_python_work_as_they_stand(served, browser, monkeypatch):
    answer, secret = make_key(browser)
    program, option, header, address = shlex.split(code_of(answer, "curl"))
    assert (program, option, header) == ("curl", "-H", f"x-api-key: {secret}")
    name, _, value = header.partition(": ")
    assert served.anonymous.get(address, headers={name: value}).json()["success"] is True
    transport = served.anonymous._transport
    monkeypatch.setattr(
        "searchlab.client.Client", lambda *words: Client(*words, transport=transport)
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code_of(answer, "python"), {})
    assert len(printed.getvalue().splitlines()) == 1


def test_a_form_that_is_sent_twice_makes_one_key(served, browser):
    form = {"name": "laptop", "key_id": key_id_of(browser)}
    first, second = (browser.post("/account/keys", data=form) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 409)
    assert SECRET.search(second.text) is None
    assert len(list_keys(served.database, account_of(browser))) == 1


@pytest.mark.parametrize("key_id", ["", "x", "key_", "key_" + "g" * 16, "key_" + "0" * 17])
def test_the_id_of_a_key_is_one_of_ours(browser, key_id):
    answer = browser.post("/account/keys", data={"name": "a", "key_id": key_id})
    assert (answer.status_code, SECRET.search(answer.text)) == (422, None)


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "{{ 7 * 7 }}",
        "&amp;",
        "مفتاح",
    ],
)
def test_a_hostile_name_of_a_key_is_text(browser, name):
    answer, _ = make_key(browser, name)
    for page in (answer.text, browser.get("/account").text):
        assert html.escape(name, quote=False) in page.replace("&#34;", '"').replace("&#39;", "'")
        assert re.findall(r"<script>|<img src=x|\s49\s", page) == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 10_000, "a\u202eb", "a\u200bb", "a\nb"])
def test_a_name_that_cannot_be_seen_is_refused_on_the_page(served, browser, name):
    answer = browser.post("/account/keys", data={"name": name, "key_id": key_id_of(browser)})
    assert (answer.status_code, "This key was not created" in answer.text) == (422, True)
    assert list_keys(served.database, account_of(browser)) == []


def test_a_name_with_nul_is_no_form(browser):
    form = {"name": "a\0b", "key_id": key_id_of(browser)}
    assert browser.post("/account/keys", data=form).status_code == 422


def test_a_revoked_key_is_refused_at_once(served, browser):
    _, secret = make_key(browser)
    (key,) = list_keys(served.database, account_of(browser))
    ask = {"url": "/api/v1/usage", "headers": {"x-api-key": secret}}
    assert served.anonymous.get(**ask).status_code == 200
    answer = browser.post(f"/account/keys/{key.key_id}/revoke")
    assert (answer.status_code, answer.headers["location"]) == (303, "/account?done=revoked#keys")
    assert served.anonymous.get(**ask).status_code == 401
    assert "The key is revoked" in browser.get("/account?done=revoked").text
    assert browser.post(f"/account/keys/{key.key_id}/revoke").status_code == 404


def test_an_account_makes_so_many_keys_and_no_more(served, browser, monkeypatch):
    monkeypatch.setattr(storage, "MAX_KEYS", 1)
    make_key(browser)
    form = {"name": "b", "key_id": key_id_of(browser)}
    assert browser.post("/account/keys", data=form).status_code == 403
    (key,) = list_keys(served.database, account_of(browser))
    browser.post(f"/account/keys/{key.key_id}/revoke")
    assert browser.post("/account/keys", data=form).status_code == 200


def test_a_closed_account_gets_no_key_and_is_not_made_again(served):
    with pytest.raises(NotFoundError, match="one that was closed"):
        storage.add_key(served.database, 999, name="a", key_id=storage.propose_key_id())


# -- usage ------------------------------------------------------------------------------------


def test_searches_are_shown_by_month_day_and_key(served, browser):
    _, secret = make_key(browser, "counted")
    for _ in range(3):
        search = served.anonymous.get("/api/v1/search/photos?q=red", headers={"x-api-key": secret})
        assert search.status_code == 200
    page = re.sub(r"\s+", " ", browser.get("/account").text)
    assert '<strong class="number">3</strong>' in page
    assert "999,997 left until 1 " in page
    row = '<bdi>counted</bdi></th><td class="number">3</td><td class="number">3</td>'
    assert row in page
    assert page.count('<td class="number">3</td></tr>') == 3  # by key, the day, the month
    assert "last used" in page


def test_a_chart_reaches_its_top_and_shows_the_least():
    chart = bar_chart([("a", 0), ("b", 1), ("c", 1_900)])
    assert (chart.top, chart.total, chart.most.title, chart.ends) == (2_000, 1_901, "c", ("a", "c"))
    assert [bar.height for bar in chart.bars] == [0.0, 1.5, 95.0]
    assert bar_chart([("a", 0)]).most is None


# -- sessions ---------------------------------------------------------------------------------


def test_another_session_is_ended_and_ones_own_goes_on(served, browser):
    other = served.make_browser(account_of(browser))
    account_id = find_account(served.database, account_of(browser)).account_id
    latest, first = list_sessions(served.database, account_id)
    assert browser.get("/account").text.count("this browser") == 1
    answer = browser.post(f"/account/sessions/{latest.session_id}/end")
    assert answer.headers["location"] == "/account?done=ended#sessions"
    assert other.get("/account").status_code == 303
    assert browser.get("/account").status_code == 200
    answer = browser.post(f"/account/sessions/{first.session_id}/end")
    assert (answer.headers["location"], "Max-Age=0" in answer.headers["set-cookie"]) == ("/", True)
    assert browser.get("/account").status_code == 303


def test_signing_out_everywhere_ends_all_sessions(served, browser):
    other = served.make_browser(account_of(browser))
    answer = browser.post("/account/sessions/all/end")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert (browser.get("/account").status_code, other.get("/account").status_code) == (303, 303)


# -- leaving ----------------------------------------------------------------------------------


def fill(served, account):
    """Give an account a collection with a photo, a key, and judgments."""
    account_id = find_account(served.database, account).account_id
    shelf = Collections(served.database)
    with served.database.writing() as connection:
        made = shelf.create(connection, account_id, name="dunes of mine")
        shelf.add_photo(
            connection,
            account_id,
            made["id"],
            photo_id="p1",
            photo_thumbnail_url=None,
            photo_source="nasa",
            photo_photographer="Ann",
        )
    create_key(served.database, account=account, name="exported")
    journals = served.library / "judging" / "dunes" / "journals"
    journals.mkdir(parents=True, exist_ok=True)
    journal = journals / f"{account_id}-0123456789abcdef.jsonl"
    journal.write_text('{"schema": 1}\n{"item": ["dunes", "p1"], "choice": 2}\n{"ite')
    return journal


@pytest.mark.slow
def test_the_export_holds_all_that_is_stored_and_no_secret(served, browser):
    account = account_of(browser)
    fill(served, account)
    answer = browser.get("/account/export")
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert answer.headers["cache-control"] == "no-store"
    export = answer.json()
    assert export["account"]["name"] == account
    assert [key["name"] for key in export["keys"]] == ["exported"]
    assert export["collections"][0]["photos"][0]["photo_id"] == "p1"
    assert len(export["sessions"]) == len(export["sign_in_links"]) == 1
    assert export["judgments"][0]["lines"][1]["choice"] == 2
    assert re.findall(r"sha256|sl[ls]?_[A-Za-z0-9_-]{43}", json.dumps(export)) == []


def test_every_table_is_in_the_export():
    assert set(METADATA.tables) == EXPORTED


def test_the_account_is_deleted_once_its_name_is_typed(served, browser):
    account = account_of(browser)
    journal = fill(served, account)
    _, secret = make_key(browser)
    for typed in ("", "ann", account.upper(), account + "x"):
        answer = browser.post("/account/close", data={"confirm": typed})
        assert (answer.status_code, "Nothing was deleted" in answer.text) == (422, True)
    assert journal.exists()
    answer = browser.post("/account/close", data={"confirm": f" {account} "})
    assert (answer.status_code, "is deleted" in answer.text) == (200, True)
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert not journal.exists()
    refused = served.anonymous.get("/api/v1/usage", headers={"x-api-key": secret})
    assert (refused.status_code, browser.get("/account").status_code) == (401, 303)
    with pytest.raises(NotFoundError):
        find_account(served.database, account)


# -- safety -----------------------------------------------------------------------------------

FORMS = [
    ("/account/keys", {"name": "a", "key_id": "key_" + "0" * 16}),
    ("/account/keys/key_0000000000000000/revoke", {}),
    ("/account/sessions/all/end", {}),
    ("/account/close", {"confirm": "x"}),
]


@pytest.mark.parametrize(("path", "form"), FORMS)
@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "", "origin": "https://evil.test"},
        {"sec-fetch-site": "cross-site", "origin": "https://photos.test"},
    ],
)
def test_a_form_from_elsewhere_changes_nothing(browser, path, form, headers):
    assert browser.post(path, data=form, headers=headers).status_code == 403
    assert browser.get("/account").status_code == 200


@pytest.mark.parametrize(("path", "form"), FORMS)
def test_whoever_is_not_signed_in_changes_nothing(served, path, form):
    stranger = served.make_browser()
    assert stranger.post(path, data=form).status_code == 401
    stranger.headers["x-api-key"] = served.key
    assert stranger.post(path, data=form).status_code == 401


@pytest.mark.parametrize("path", ["/account/export", "/account/close"])
def test_whoever_is_not_signed_in_reads_nothing(served, path):
    assert served.make_browser().get(path).status_code == 401


def test_the_way_to_the_account_leads_through_signing_in(served):
    answer = served.make_browser().get("/account")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/account")


@pytest.mark.slow
def test_a_guest_of_the_server_has_no_account(tmp_path):
    with api(tiny_library(tmp_path), visitors="guests") as server:
        guest = server.make_browser()
        assert guest.get("/account").status_code == 303
        assert guest.get("/account/export").status_code == 401
        assert guest.post("/account/sessions/all/end").status_code == 401


def test_accounts_never_see_or_change_each_others_things(served, browser):
    mine, theirs = account_of(browser), "bea the other"
    other = served.make_browser(theirs)
    fill(served, theirs)
    _, secret = make_key(other, "key of bea")
    their_id = find_account(served.database, theirs).account_id
    (session,) = list_sessions(served.database, their_id)
    for key in list_keys(served.database, theirs):
        assert browser.post(f"/account/keys/{key.key_id}/revoke").status_code == 404
        form = {"name": "mine", "key_id": key.key_id}
        assert browser.post("/account/keys", data=form).status_code == 409
    browser.post(f"/account/sessions/{session.session_id}/end")
    assert other.get("/account").status_code == 200
    assert served.anonymous.get("/api/v1/usage", headers={"x-api-key": secret}).status_code == 200
    seen = browser.get("/account").text + browser.get("/account/export").text
    assert re.findall(rf"bea the|key of bea|{session.session_id}|dunes of mine", seen) == []
    assert list_keys(served.database, mine) == []
    assert browser.post("/account/close", data={"confirm": theirs}).status_code == 422


def test_no_page_of_an_account_is_stored_framed_or_given_to_other_servers(browser):
    answers = [browser.get(f"/account{path}") for path in ("", "/close", "/export")]
    for answer in [*answers, make_key(browser)[0]]:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] in {"same-origin", "no-referrer"}
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert re.findall(r"<script>|\sstyle=|\son[a-z]+=", answer.text) == []


@pytest.mark.parametrize("name", ["<b>x</b>", "Zoë \"' & co", "عيسى", "x" * 100])
def test_an_account_of_any_name_reads_well(served, name):
    browser = served.make_browser(name)
    page = browser.get("/account")
    assert (page.status_code, account_of(browser)) == (200, name)
    assert "<b>x" not in page.text
    disposition = browser.get("/account/export").headers["content-disposition"]
    assert disposition.isascii()
    closed = browser.post("/account/close", data={"confirm": name})
    assert closed.status_code == 200


@pytest.mark.slow
def test_no_secret_is_logged(tmp_path, capfd):
    folder = tiny_library(tmp_path)
    with api(folder) as server:
        browser = server.make_browser("ann")
        token, _ = create_link(server.database, "ann")
        browser.post("/sign-in", data={"token": token})
        session = browser.cookies["__Host-searchlab"]
        _, secret = make_key(browser)
        for hidden in (token, session, secret):
            browser.get(f"/photos/{hidden}")
            browser.get("/", params={"q": hidden})
            with contextlib.suppress(Exception):
                sign_in(server.database, hidden, browser="")
    log = capfd.readouterr().err
    assert [hidden for hidden in (token, session, secret) if hidden in log] == []
