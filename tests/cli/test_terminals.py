"""Terminals and readers of any kind, and arguments of any bytes: no traceback."""

import os
import subprocess
import sys

import pytest

from tests.support import cli_world
from tests.support.cli_world import error_of, in_a_process

mine = cli_world.mine
search = cli_world.search
whole = cli_world.whole


@pytest.mark.parametrize(
    "environment",
    [
        {"COLUMNS": "1"},
        {"COLUMNS": "12"},
        {"COLUMNS": "20", "NO_COLOR": "1"},
        {"COLUMNS": "1000"},
        {"COLUMNS": "nonsense"},
        {"TERM": "dumb"},
        {"FORCE_COLOR": "1"},
    ],
    ids=str,
)
def test_terminals_of_any_kind_do_not_crash(run, search, mine, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for done in (
        search("red", "--plan"),
        search("--photographer", "user1"),
        search("--photographer", "nobody"),
        run("index", "--data", mine),
    ):
        assert done.code == 0, done.err
        assert done.out


def test_no_color_means_no_colour(search, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\u001b[" in search("red", "-v").out
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\u001b[" not in search("red", "-v").out


@pytest.mark.slow
def test_a_terminal_of_seven_bits_does_not_crash(whole):
    data = ["--data", str(whole / "data")]
    for arguments in (["--photographer", "user1"], ["red", "--json", "--per-page", "100"]):
        done = in_a_process("search", *arguments, *data, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["red", "--source"],
        ["red", "--color-name"],
        ["red", "--color-hex"],
        ["red", "--after-date"],
        ["--photo-id"],
        ["--image"],
        ["--cursor"],
    ],
)
def test_arguments_that_are_not_unicode_are_refused_in_one_line(search, arguments):
    error_of(search(*arguments, os.fsdecode(b"\xff")), 2)


@pytest.mark.slow
def test_a_folder_whose_name_is_not_unicode_is_told_in_one_line():
    assert "searchlab index" in error_of(in_a_process("search", "red", "--data", b"/no/\xff"), 2)


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_reason_for_a_traceback(whole):
    command = [sys.executable, "-c", "from searchlab.cli import main; main()"]
    arguments = ["search", "red", "--json", "--per-page", "100", "--data", str(whole / "data")]
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        error = process.stderr.read().decode()
    assert "Traceback" not in error
    assert "Exception" not in error
