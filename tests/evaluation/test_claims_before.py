"""Sentences that said too much: the page that lists them, held to the pages as they are now."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
LIST = (RESULTS / "CLAIMS.md").read_text(encoding="utf-8")
ITEM = re.compile(r"^- (.+?)(?=^- |^#|^$|\Z)", re.MULTILINE | re.DOTALL)
ITEMS = [" ".join(item.split()) for item in ITEM.findall(LIST)]
BEFORE = [item[9:-1] for item in ITEMS if item.startswith('before: "') and item.endswith('"')]
NOW = [re.fullmatch(r'now, `(.+?)`: "(.+)"', item) for item in ITEMS if item.startswith("now")]
HELD_BY = [item.split("`")[1] for item in ITEMS if item.startswith("held by: ")]


def page(name):
    """Read a page as one line, without its comments."""
    text = (RESULTS / name).resolve().read_text(encoding="utf-8")
    return " ".join(re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).split())


def test_every_point_has_sentences_before_and_now_and_a_test():
    sections = re.split(r"^## ", LIST, flags=re.MULTILINE)[1:-1]
    assert len(sections) == 9
    for section in sections:
        for beginning in ("- before: ", "- wrong: ", "- now, ", "- held by: "):
            assert beginning in section, section[:40]
    assert len(BEFORE) >= 11
    assert all(NOW)


@pytest.mark.parametrize("now", NOW, ids=lambda now: now[2][:50])
def test_a_sentence_stands_on_its_page_as_it_is_quoted(now):
    words = r"(?:\S+ ){0,2}\S+".join(map(re.escape, now[2].split("…")))
    assert re.search(words, page(now[1]))


@pytest.mark.parametrize("before", BEFORE, ids=lambda before: before[:50])
def test_a_sentence_that_said_too_much_stands_nowhere(before):
    pages = ["../README.md", *(path.relative_to(RESULTS) for path in RESULTS.rglob("README.md"))]
    assert [name for name in pages if before in page(name)] == []


@pytest.mark.parametrize("test", HELD_BY)
def test_what_holds_a_sentence_is_a_test(test):
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert name in names if name else any(one.startswith("test_") for one in names)


def test_a_sentence_without_its_scope_is_missed():
    (sentence,) = [now for now in NOW if "stub" in now[2]]
    changed = page(sentence[1]).replace("A stub of the same server", "The same server")
    assert not re.search(re.escape(sentence[2].split("…")[0]), changed)
