"""`searchlab accounts`: what is printed where, what is refused, and that it holds at once."""

import json
import re
import sys

import pytest
from click.testing import CliRunner

from searchlab.api.accounts import administration
from searchlab.api.accounts.administration import close_account
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.keyring import KeyRing
from searchlab.api.accounts.sessions import Sessions, sign_in
from searchlab.cli.accounts import accounts
from searchlab.cli.keys import keys
from searchlab.errors import ConflictError, InputError, NotFoundError


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "library.json").write_text("{}")
    return folder


@pytest.fixture
def database(library):
    database = open_database(sqlite_url(library))
    yield database
    database.close()


@pytest.fixture
def call(library):
    def call(*arguments, group=accounts, **options):
        return CliRunner().invoke(group, [*arguments, "--data", str(library)], **options)

    return call


def test_an_account_is_made_listed_and_moved(call):
    made = call("create", "--account", "acme", "--plan", "growth")
    assert made.stdout == "account acme is created, with plan growth\n"
    call("create", "--account", "Zoë")
    moved = call("plan", "--account", "acme", "--plan", "scale")
    assert moved.stdout == "account acme changes from plan growth to scale\n"
    heads, *rows = call("list").stdout.splitlines()
    assert heads.split()[:3] == ["ACCOUNT", "PLAN", "CREATED"]
    assert [row.split()[:2] for row in rows] == [["Zoë", "free"], ["acme", "scale"]]
    (first, second) = json.loads(call("list", "--json").stdout)
    assert (first["name"], second["keys"], second["sessions"]) == ("Zoë", 0, 0)
    assert second["created_at"].endswith("+00:00")


def test_an_empty_list_is_its_head(call):
    assert call("list").stdout.startswith("ACCOUNT  PLAN")


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (("create", "--account", "acme"), ConflictError, "account must be a new name"),
        (("create", "--account", "b", "--plan", "gold"), InputError, "plan must be one of"),
        (("plan", "--account", "acme", "--plan", "gold"), InputError, "plan must be one of"),
        (("plan", "--account", "b", "--plan", "free"), NotFoundError, "searchlab accounts list"),
        (("link", "--account", "b"), NotFoundError, "`searchlab accounts create`"),
        (("link", "--account", "acme", "--base-url", "x"), InputError, "--base-url must be like"),
        (("close", "--account", "b", "--yes"), NotFoundError, "got 'b'"),
        (("close", "--account", "acme"), InputError, "--yes must be given where nobody can be"),
    ],
)
def test_what_cannot_be_done_is_said(call, words, error, message):
    call("create", "--account", "acme")
    done = call(*words)
    assert isinstance(done.exception, error)
    assert message in str(done.exception)
    assert len(call("list").stdout.splitlines()) == 2


def test_a_link_is_all_of_standard_output_and_signs_in_once(call, database):
    call("create", "--account", "acme")
    done = call("link", "--account", "acme")
    address, token = done.stdout.strip().split("#token=")
    assert address == "http://127.0.0.1:8000/sign-in"
    assert re.fullmatch(r"opens account acme in the browser, once, until [^\n]+:\n", done.stderr)
    assert token not in done.stderr
    secret = sign_in(database, token, browser="")
    assert Sessions(database).find(secret).account == "acme"
    assert sign_in(database, token, browser="") is None


@pytest.mark.parametrize(
    ("way", "start"),
    [
        ({"args": ["--base-url", "https://p.test/x/"]}, "https://p.test/x/sign-in#token=sll_"),
        ({"env": {"SEARCHLAB_PORT": "9001"}}, "http://127.0.0.1:9001/sign-in#token=sll_"),
        ({"env": {"SEARCHLAB_BASE_URL": "https://p.test"}}, "https://p.test/sign-in#token=sll_"),
    ],
)
def test_a_link_names_the_server_that_was_named(call, way, start):
    call("create", "--account", "acme")
    done = call("link", "--account", "acme", *way.get("args", []), env=way.get("env"))
    assert done.stdout.startswith(start)
    assert "needs" not in done.stderr


def test_a_link_that_no_browser_may_use_is_given_with_a_warning(call):
    call("create", "--account", "acme")
    done = call("link", "--account", "acme", "--base-url", "http://photos.test")
    assert "signing in needs an address that begins with https://" in done.stderr


def test_closing_ends_keys_and_sessions_at_once(call, database):
    secret = call("create", "--account", "acme", "--name", "a", group=keys).stdout.strip()
    token = call("link", "--account", "acme").stdout.strip().partition("token=")[2]
    session = sign_in(database, token, browser="")
    ring, sessions = KeyRing(database), Sessions(database)
    assert ring.find(secret)
    assert sessions.find(session)
    done = call("close", "--account", "acme", "--yes")
    assert done.stdout == "account acme is closed, and all that was its own is deleted\n"
    assert (ring.find(secret), sessions.find(session)) == (None, None)
    assert len(call("list").stdout.splitlines()) == 1
    ring.close()
    sessions.close()


def test_closing_takes_the_name_off_the_judging_tasks_of_an_account(call, library):
    call("create", "--account", "acme")
    file = library / "judging" / "dunes" / "task.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"title": "Dünen", "made_by": "acme", "owner": "1"}')
    call("close", "--account", "acme", "--yes")
    assert json.loads(file.read_text()) == {"title": "Dünen", "made_by": "", "owner": ""}


def test_closing_takes_the_name_off_a_task_that_is_made_meanwhile(call, library, monkeypatch):
    call("create", "--account", "acme")
    file = library / "judging" / "dunes" / "task.json"

    def make_and_close(*args, **kwargs):
        file.parent.mkdir(parents=True)
        file.write_text('{"title": "Dünen", "made_by": "acme", "owner": "1"}')
        return close_account(*args, **kwargs)

    monkeypatch.setattr(administration, "close_account", make_and_close)
    call("close", "--account", "acme", "--yes")
    assert json.loads(file.read_text()) == {"title": "Dünen", "made_by": "", "owner": ""}


@pytest.mark.parametrize(("answer", "is_closed"), [("acme", True), ("ACME", False), ("", False)])
def test_whoever_closes_an_account_types_its_name(call, monkeypatch, answer, is_closed):
    module = sys.modules["searchlab.cli.accounts"]  # the package has a command of this name
    monkeypatch.setattr(module, "_is_asked", lambda: True)
    call("create", "--account", "acme", "--name", "a", group=keys)
    done = call("close", "--account", "acme", input=f"{answer}\n")
    assert "account acme has 1 key, 0 collections and 0 sessions" in done.stderr
    assert (len(call("list").stdout.splitlines()) == 1) is is_closed
    if not is_closed:
        assert "nothing was deleted" in str(done.exception)
