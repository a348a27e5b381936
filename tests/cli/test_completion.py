"""What a shell offers when the tab key is pressed."""

import os
import subprocess

import pytest
from click.shell_completion import ShellComplete

from searchlab.cli import searchlab
from searchlab.photos.colors import FAMILY_NAMES
from tests.support import cli_world

whole = cli_world.whole


def offered(*words):
    """Complete the last word of a command line."""
    shell = ShellComplete(searchlab, {}, "searchlab", "_SEARCHLAB_COMPLETE")
    *before, begun = map(str, words)
    return [item.value for item in shell.get_completions(before, begun)]


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["search", "--color-name", ""], sorted(FAMILY_NAMES)),
        (["search", "--color-name", "te"], ["teal"]),
        (["search", "owl", "--orientation", ""], ["landscape", "portrait", "square"]),
        (["search", "--sort-by", "n"], ["newest"]),
        (["search", "--thumbnails", "s"], ["sixel"]),
        (["search", "--fields", "wid"], ["width"]),
        (["search", "--fields", "photo_id,width,fi"], ["photo_id,width,file"]),
        (["search", "--fields", "width,wid"], []),
        (["index", "--source", "pe"], ["pexels"]),
        (["index", "--index", ""], ["clustered", "exact", "exact-on-device", "hnsw"]),
        (["index", "--model", "mi"], ["migrated", "mini"]),
        (["index", "--allow", "n"], ["nc", "nd", "none"]),
        (["fetch", "uns"], ["unsplash"]),
        (["fetch", "unsplash", "--size", "r"], ["regular"]),
        (["models", "check", "pal"], ["palette"]),
        (["models", "adapt", "--model", "min"], ["mini"]),
        (["evaluate", "--dataset", "demo-si"], ["demo-similar"]),
        (["evaluate", "--metric", "ndcg@"], ["ndcg@10"]),
        (["keys", "create", "--plan", "g"], ["growth"]),
        (["inf"], ["info"]),
    ],
    ids=str,
)
def test_values_of_options_are_offered(words, values):
    assert values == sorted(offered(*words))


def test_values_of_the_library_are_offered(whole, monkeypatch):
    for words in (["--data", whole / "data"], []):
        assert offered("search", *words, "--source", "") == ["pexels", "unsplash"]
        assert set(offered("search", *words, "--license-type", "")) == {"cc0", "free"}
        assert offered("search", *words, "--photographer", "user1") == ["user1"]
        monkeypatch.setenv("SEARCHLAB_DATA", str(whole / "data"))


@pytest.mark.parametrize("name", ["CURRENT", "photos.columns"])
def test_a_library_that_is_none_offers_nothing(tmp_path, name):
    (tmp_path / name).write_text("000001-79c35ffa")
    assert offered("search", "--data", tmp_path, "--source", "") == []
    assert offered("search", "--data", "/no/where", "--source", "") == []


@pytest.mark.slow
def test_bash_is_offered_them(whole):
    script = 'eval "$(_SEARCHLAB_COMPLETE=bash_source searchlab)" && complete -p searchlab'
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert "_searchlab_completion" in shown.stdout
    variables = {"_SEARCHLAB_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    variables["COMP_WORDS"] = "searchlab search --color-name te"
    done = subprocess.run(
        ["searchlab"], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.stdout == "plain,teal\n"
