"""`searchlab open`: from a folder with a library to its owner's pages in the browser."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from click.testing import CliRunner

from searchlab.api.accounts.administration import create_account, find_account
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.api.ops.listening import bind
from searchlab.cli.opening import open_library
from searchlab.errors import InputError, NotFoundError
from tests.support.pages import tiny_library
from tests.support.served import COMMAND


@pytest.fixture
def library(tmp_path):
    return tiny_library(tmp_path)


@pytest.fixture
def started(monkeypatch):
    """Settings of the servers that were started, each of which is ready at once and ends."""
    settings = []

    def serve(options, *, stream, on_ready):
        settings.append(options)
        on_ready(f"http://{options.host}:{options.port or 4321}")

    monkeypatch.setattr("searchlab.api.ops.server.serve", serve)
    return settings


def call(*words, **options):
    return CliRunner().invoke(open_library, list(map(str, words)), **options)


def owner_of(library, name="me"):
    database = open_database(sqlite_url(library))
    try:
        return find_account(database, name)
    finally:
        database.close()


def test_the_address_is_all_of_standard_output(library, started):
    done = call(library, "--no-browser")
    port = started[0].port
    assert re.fullmatch(
        rf"http://127\.0\.0\.1:{port}/sign-in#token=sll_[A-Za-z0-9_-]{{43}}\n", done.stdout
    )
    assert f"searchlab shows {library} at http://127.0.0.1:{port}/; Ctrl-C ends it" in done.stderr
    assert (started[0].host, started[0].data, started[0].workers) == ("127.0.0.1", library, 1)


def test_owners_find_their_photos_by_all_that_is_written_about_them(library, started):
    call(library, "--no-browser")
    assert started[0].show_places


def test_the_owner_gets_an_account_once_and_its_plan_is_left_alone(library, started):
    call(library, "--no-browser")
    assert owner_of(library).plan == "scale"
    database = open_database(sqlite_url(library))
    migrate(database)
    create_account(database, "ann", plan="free")
    database.close()
    call(library, "--no-browser", "--account", "ann")
    assert owner_of(library, "ann").plan == "free"


@pytest.mark.parametrize("way", ["argument", "option", "variable", "folder"])
def test_the_library_is_named_in_any_way(library, started, monkeypatch, way):
    library.rename(library.with_name("searchlab-data"))
    folder = library.with_name("searchlab-data")
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("SEARCHLAB_DATA", raising=False)
    words = {"argument": [folder], "option": ["--data", folder]}.get(way, [])
    env = {"SEARCHLAB_DATA": str(folder)} if way == "variable" else None
    done = call("--no-browser", *words, env=env)
    assert done.exit_code == 0, done.exception
    assert started[0].data == folder


def test_a_library_that_is_named_twice_is_refused_unless_by_the_variable(library, started):
    done = call(library, "--data", "other", "--no-browser")
    assert isinstance(done.exception, InputError)
    assert f"got {library} and other; keep one" in str(done.exception)
    assert started == []
    call(library, "--no-browser", env={"SEARCHLAB_DATA": "other"})
    assert started[0].data == library


def test_a_library_has_a_port_of_its_own_as_long_as_it_is_free(library, started):
    call(library, "--no-browser")
    call(library, "--no-browser")
    port = started[0].port
    assert started[1].port == port >= 20_000
    listener = bind("127.0.0.1", port)
    listener.listen()
    try:
        call(library, "--no-browser")
    finally:
        listener.close()
    assert started[2].port == 0
    call(library, "--no-browser", "--port", 4000)
    assert started[3].port == 4000


def test_without_a_library_the_command_that_makes_one_is_named(tmp_path, started):
    done = call(tmp_path / "none", "--no-browser")
    assert isinstance(done.exception, NotFoundError)
    assert "make one with `searchlab index --data" in str(done.exception)
    assert not (tmp_path / "none").exists()
    assert started == []


def test_the_browser_is_sent_to_the_link_and_its_token_is_not_printed(
    library, started, monkeypatch
):
    links = []

    class Browser:
        def open(self, link):
            links.append(link)
            return True

    monkeypatch.setattr("webbrowser.get", Browser)
    done = call(library)
    assert "sign-in#token=sll_" in links[0]
    assert "sll_" not in done.output


@pytest.mark.parametrize("failure", ["none", "refuses", "terminal"])
def test_where_no_browser_can_be_opened_the_address_is_printed(
    library, started, monkeypatch, failure
):
    import webbrowser

    class Refusing:
        def open(self, link):
            return False

    def get():
        if failure == "none":
            raise webbrowser.Error
        return Refusing() if failure == "refuses" else webbrowser.GenericBrowser("lynx")

    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setattr("webbrowser.get", get)
    assert "sign-in#token=sll_" in call(library).stdout


@pytest.mark.slow
def test_from_the_command_to_a_page_that_knows_its_owner(library):
    process = subprocess.Popen(
        [*COMMAND, "open", str(library), "--no-browser"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "SEARCHLAB_DATA"},
    )
    try:
        address, _, token = process.stdout.readline().strip().partition("/sign-in#token=")
        with httpx.Client(base_url=address, headers={"sec-fetch-site": "same-origin"}) as browser:
            assert browser.post("/sign-in", data={"token": token}).status_code == 303
            assert "Signed in as <bdi>me</bdi>" in browser.get("/").text
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
