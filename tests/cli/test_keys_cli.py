"""`searchlab keys`: what is printed where, what is refused, and that it holds at once."""

import json
import re

import pytest
from click.testing import CliRunner

from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.keyring import KeyRing
from searchlab.cli.keys import keys
from searchlab.errors import DataError, InputError, NotFoundError
from tests.support.databases import fresh_database


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "library.json").write_text("{}")
    return folder


def call(*arguments, library=None):
    data = [] if library is None else ["--data", str(library)]
    return CliRunner().invoke(keys, [*arguments, *data], catch_exceptions=True)


def create(library, *more, account="acme", name="server"):
    done = call("create", "--account", account, "--name", name, *more, library=library)
    assert done.exit_code == 0, done.output
    return done


def listed(library, *more):
    return json.loads(call("list", "--json", *more, library=library).stdout)


def test_a_new_key_is_all_of_standard_output(library):
    done = create(library)
    assert re.fullmatch(r"sl_[A-Za-z0-9_-]{43}\n", done.stdout)
    assert done.stderr.splitlines()[0] == "account acme is created, with plan free"
    assert re.search(r"key key_[0-9a-f]{16} \(server\) of account acme", done.stderr)
    assert done.stdout.strip() not in done.stderr


def test_a_new_key_works_in_a_server_that_runs(library):
    secrets = [create(library).stdout.strip()]
    database = open_database(sqlite_url(library))
    ring = KeyRing(database)
    secrets.append(create(library).stdout.strip())
    assert [ring.find(secret).account_id for secret in secrets] == [1, 1]
    call("revoke", secrets[0][:9], library=library)
    assert ring.find(secrets[0]) is None
    assert ring.find(secrets[1]) is not None
    ring.close()
    database.close()


def test_another_plan_changes_the_account_and_says_so(library):
    create(library)
    assert "changes from plan" not in create(library).stderr
    done = create(library, "--plan", "growth")
    assert done.stderr.splitlines()[0] == "account acme changes from plan free to growth"
    assert {key["plan"] for key in listed(library)} == {"growth"}


def test_a_new_account_may_start_with_a_plan(library):
    done = create(library, "--plan", "scale")
    assert done.stderr.splitlines()[0] == "account acme is created, with plan scale"


def test_a_plan_that_is_none_is_refused_and_makes_nothing(library):
    done = call("create", "--account", "a", "--name", "b", "--plan", "gold", library=library)
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == ("--plan must be one of free, starter, growth, scale, got 'gold'")
    assert not (library / "api.db").exists()


@pytest.mark.parametrize("missing", ["--account", "--name"])
def test_account_and_name_are_required(library, missing):
    options = {"--account": "a", "--name": "b"}
    del options[missing]
    done = call("create", *(word for pair in options.items() for word in pair), library=library)
    assert done.exit_code == 2
    assert f"Missing option '{missing}'" in done.stderr


def test_the_list_shows_everything_but_the_secret(library):
    secret = create(library, name="Zoë's server").stdout.strip()
    create(library, account="beta")
    done = call("list", library=library)
    heads, *rows = done.stdout.splitlines()
    assert " ".join(heads.split()) == "KEY ACCOUNT PLAN NAME BEGINS CREATED LAST USED STATE"
    assert len(rows) == 2
    assert re.search(r"acme +free +Zoë's server +sl_.{6}\.\.\. .*never +in force$", rows[0])
    assert secret not in done.stdout


def test_the_list_can_be_of_one_account_and_for_machines(library):
    create(library)
    create(library, account="beta", name="b")
    (key,) = listed(library, "--account", "beta")
    assert (key["account"], key["name"], key["last_used_at"]) == ("beta", "b", None)
    assert key["created_at"].endswith("+00:00")
    assert sorted(key) == [
        "account",
        "created_at",
        "hint",
        "key_id",
        "last_used_at",
        "name",
        "plan",
        "revoked_at",
    ]


def test_an_empty_list_is_its_head(library):
    assert call("list", library=library).stdout.startswith("KEY  ACCOUNT")


def test_revoking_twice_says_the_same(library):
    create(library)
    (key,) = listed(library)
    first = call("revoke", key["key_id"], library=library)
    assert re.fullmatch(
        rf"key {key['key_id']} \(server\) of account acme is revoked since \S+ \S+\+00:00\n",
        first.stdout,
    )
    assert call("revoke", key["hint"], library=library).stdout == first.stdout
    assert "revoked 20" in call("list", library=library).stdout


def test_a_key_that_is_not_there_is_told(library):
    done = call("revoke", "key_0", library=library)
    assert isinstance(done.exception, NotFoundError)
    assert "got 'key_0', which no key has; see `searchlab keys list`" in str(done.exception)


def test_a_folder_without_a_library_gets_no_database(tmp_path):
    done = call("list", library=tmp_path)
    assert isinstance(done.exception, NotFoundError)
    assert "--data must be a library" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["option", "variable"])
def test_the_keys_of_a_postgresql_database_need_no_library(tmp_path, monkeypatch, way):
    with fresh_database("postgresql", tmp_path) as database:
        url = database.engine.url.render_as_string(hide_password=False)
        if way == "variable":
            monkeypatch.setenv("SEARCHLAB_DATABASE_URL", url)
        more = ["--database-url", url] if way == "option" else []
        secret = create(None, *more).stdout.strip()
        ring = KeyRing(database)
        assert ring.find(secret).plan == "free"
        call("revoke", secret[:9], *more)
        assert ring.find(secret) is None


def test_an_url_with_a_password_is_never_repeated(library):
    url = "postgresql://user:geheim@localhost:1/name"
    done = call("list", "--database-url", url, library=library)
    assert isinstance(done.exception, DataError)
    assert "geheim" not in str(done.exception) + done.output
