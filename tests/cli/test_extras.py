"""Extras: searching needs none, and what does need one says which, in one line."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from PIL import Image

from searchlab.cli import extras, main

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
WITHOUT_EXTRAS = """
import sys
from searchlab.cli import extras, main
for modules in extras.MODULES.values():
    sys.modules |= dict.fromkeys(modules)  # an import of one fails
main()
"""


def run_without_extras(*words):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


def run_main(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["searchlab", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr().err


@pytest.mark.parametrize("extra", sorted(extras.MODULES))
def test_the_modules_of_an_extra_are_those_of_what_it_installs(extra):
    requirements = PROJECT["project"]["optional-dependencies"][extra]
    names = {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}
    distributions = packages_distributions()
    # python-multipart, which the extra mcp brings, has a `multipart` too, which leads to the other.
    brought = [
        {name.lower().replace("_", "-") for name in distributions[module]}
        for module in extras.MODULES[extra]
    ]
    assert len(brought) == len(names)
    assert all(owners & names for owners in brought)


def test_indexing_and_searching_need_no_extra(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.new("RGB", (8, 6), "red").save(photos / "red.png")
    library = tmp_path / "library"
    for words in (
        ("index", "--data", library, "--model", "palette", photos),
        ("search", "--data", library, "red"),
    ):
        done = run_without_extras(*words)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [("serve",), ("keys", "list")])
def test_a_missing_extra_is_one_line_that_says_what_to_install(words, tmp_path):
    done = run_without_extras(*words, "--data", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"searchlab: \w+ must be installed, got none; run pip install 'searchlab\[serve\]'\n",
        done.stderr,
    )


def test_fetching_names_its_own_extra(tmp_path):
    done = run_without_extras(
        "fetch", "pexels", "--query", "boats", "--key", "k", "--out", tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.endswith("; run pip install 'searchlab[sources]'\n")


def test_nothing_is_served_where_a_worker_could_not_start(monkeypatch, capsys):
    monkeypatch.setitem(extras.MODULES, "serve", ("no_such_module",))
    code, message = run_main(monkeypatch, capsys, "serve")
    assert code == 2
    assert message == (
        "searchlab: no_such_module must be installed, got none; "
        "run pip install 'searchlab[serve]'\n"
    )


def test_a_module_that_no_extra_brings_is_not_hidden(monkeypatch):
    assert extras.explain_missing(ModuleNotFoundError(name="no_such_module")) is None
