"""Help of the command line: quick, of every command, and named where a word is unknown."""

import subprocess
import sys
import time

import click
import pytest

from searchlab.cli import searchlab
from tests.support.cli_world import error_of


@pytest.mark.slow
def test_help_is_quick_and_loads_nothing_heavy():
    script = (
        "import sys\n"
        "from searchlab.cli import main\n"
        "sys.argv = ['searchlab', '--help']\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "print(sorted({'numpy', 'PIL', 'onnxruntime', 'hnswlib', 'pandas', 'sklearn', "
        "'ranx', 'torch', 'scipy', 'matplotlib', 'tokenizers'} & set(sys.modules)))\n"
    )
    times, outputs = [], []
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        times.append(time.perf_counter() - began)
        outputs.append(done.stdout)
    assert outputs[0].startswith("Usage:")
    assert outputs[0].splitlines()[-1] == "[]"
    assert min(times) < 1.5


@pytest.mark.parametrize("command", ["index", "search", "info", "check", "demo", "models"])
def test_every_command_has_help(run, command):
    done = run(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: ")
    assert run(command, "-h") == done


def groups(command, *names):
    """Names of every group of commands, below a command."""
    if isinstance(command, click.Group):
        yield names
        for name in command.list_commands(click.Context(command)):
            yield from groups(command.get_command(click.Context(command), name), *names, name)


@pytest.mark.parametrize("group", list(groups(searchlab)), ids=" ".join)
def test_a_list_of_commands_says_what_each_does_in_a_whole_sentence(run, group, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, _, listed = run(*group, "--help").out.partition("Commands:\n")
    lines = listed.splitlines()
    assert lines
    assert [line for line in lines if not line.endswith(".")] == []
    assert [line for line in lines if line.endswith("...")] == []


def test_version(run):
    done = run("--version")
    assert (done.code, done.err) == (0, "")
    assert "0.1.0" in done.out


def test_models_are_listed(run):
    done = run("models", "list")
    assert done.code == 0
    assert {"captions", "mini", "palette"} <= set(done.out.split())


@pytest.mark.parametrize("arguments", [[], ["models"]])
def test_without_a_command_the_commands_are_shown(run, arguments):
    done = run(*arguments)
    assert done.code in (0, 2)
    assert "Usage: " in done.out + done.err
    assert not done.err.startswith("searchlab: Usage")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--nonsense"],
        ["search", "--nonsense"],
        ["search", "red", "blue"],
        ["search", "red", "--limit"],
        ["index", "--nonsense"],
        ["check", "more"],
        ["models", "nonsense"],
    ],
)
def test_an_unknown_word_is_bad_usage_in_one_line(run, arguments):
    assert "--help" in error_of(run(*arguments), 2)


def test_the_least_recall_is_above_0_in_the_help_as_in_the_refusal(run):
    assert "above 0, up to 1" in " ".join(run("search", "--help").out.split())
