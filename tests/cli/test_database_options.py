"""The address of the database: from a file or the environment, so that no other user reads it."""

import click
import pytest
from click.testing import CliRunner

from searchlab.api.settings import Settings
from searchlab.cli.database import database_option
from searchlab.errors import InputError

URL = "postgresql://ann:secret@db.example.org/photos"


@click.command()
@database_option
def show(database_url):
    click.echo(database_url)


def run(*words, **environment):
    return CliRunner().invoke(show, [*map(str, words)], env=environment)


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "database-url"
    file.write_text(f"{URL}\n", encoding="utf-8")
    return file


def test_it_comes_from_a_file_or_from_the_environment_without_a_warning(file):
    for done in (
        run("--database-url-file", file),
        run(SEARCHLAB_DATABASE_URL_FILE=str(file)),
        run(SEARCHLAB_DATABASE_URL=URL),
    ):
        assert (done.stdout, done.stderr) == (f"{URL}\n", "")


def test_a_password_among_the_words_of_a_command_is_warned_of_but_not_repeated():
    done = run("--database-url", URL)
    assert done.stdout == f"{URL}\n"
    assert "can read the password in --database-url" in done.stderr
    assert "secret" not in done.stderr
    assert run("--database-url", "sqlite:////tmp/a.db").stderr == ""


def test_both_or_a_file_without_one_line_are_refused(file):
    both = run("--database-url-file", file, "--database-url", URL)
    assert isinstance(both.exception, InputError)
    assert "leave one out" in str(both.exception)
    for text in ("", "one\ntwo"):
        file.write_text(text, encoding="utf-8")
        refused = run("--database-url-file", file)
        assert isinstance(refused.exception, InputError)
        assert "must hold one line" in str(refused.exception)


def test_the_settings_do_not_show_it(tmp_path):
    settings = Settings(data=tmp_path, database_url=URL)
    assert "secret" not in repr(settings)
    assert Settings.__eq__(settings, Settings(data=tmp_path, database_url=URL))
