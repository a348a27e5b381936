"""Results that have no file here, long captions, names that steer a terminal."""

import io
import json
import sys
from pathlib import Path

import pytest

from searchlab.cli.results import check_output, show_page
from searchlab.search.hits import Hit
from searchlab.search.queries import Page, Query, QueryPlan

PLAN = QueryPlan(mode="exact", n_photos=9, n_allowed=9, reason="few", scored_by="toy")
OPTIONS = {"verbose": False, "paths": False, "null": False, "as_json": False, "fields": None}
OPTIONS |= {"html": None, "opened": False, "share": False, "thumbnails": "auto", "plan": False}


@pytest.fixture
def shown(capsys, make_photo):
    """Show photos of some changes; returns what was printed and what was remarked."""

    def show(*changes, **options):
        hits = [Hit(photo=make_photo(i, **c), relevance_score=0.5) for i, c in enumerate(changes)]
        page = Page(
            hits=tuple(hits), query=Query(text="sea"), start=9, total=30, per_page=20,
            next_cursor=None, plan=PLAN,
        )  # fmt: skip
        show_page(page, check_output(OPTIONS | options), None)
        return capsys.readouterr()

    return show


def test_a_photo_that_lives_elsewhere_is_named_by_its_page_or_its_id(shown):
    [by_page, by_id] = shown(
        {"source_image_url": "https://example.org/7"}, {"source_image_url": ""}
    ).out.splitlines()
    assert by_page == " 9  0.50  https://example.org/7  plain photo 0"
    assert by_id == "10  0.50  00000000-0000-4000-8000-000000000001  plain photo 1"
    assert "thumbnail" not in shown({}, verbose=True).out


def test_paths_of_photos_without_a_file_are_left_out_and_counted(shown):
    out, err = shown({"file": "/a/1.jpg"}, {}, {}, paths=True)
    assert (out, err) == ("/a/1.jpg\n", "2 results without a file on this machine\n")
    [here, away] = json.loads(shown({"file": "/a/1.jpg"}, {}, as_json=True).out)["data"]
    assert (here["file"], away["file"]) == ("/a/1.jpg", None)


@pytest.mark.parametrize(
    ("encoding", "seen"),
    [("utf-8", "/a/Kärnten 夜.jpg".encode()), ("latin-1", b"/a/K\xe4rnten \\u591c.jpg")],
)
def test_a_path_in_a_terminal_is_in_the_letters_that_it_has(shown, monkeypatch, encoding, seen):
    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    terminal = Terminal(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    shown({"file": "/a/Kärnten 夜.jpg"}, paths=True)
    assert terminal.buffer.getvalue() == seen + b"\n"


@pytest.mark.parametrize("text", ["two\nlines", "tab\tand\x1b[31m red", "\u202eright to left"])
def test_a_result_is_one_line_whatever_its_texts_and_name(shown, text):
    out = shown({"file": f"/a/{text}.jpg", "title": text}).out
    assert len(out.splitlines()) == 1
    assert not {"\x1b", "\u202e", "\t"} & set(out)


def test_words_keep_what_joins_their_letters(shown):
    assert "می\u200cخواهم 👩\u200d🚀" in shown({"title": "می\u200cخواهم 👩\u200d🚀"}).out


def test_a_long_caption_goes_whole_into_a_pipe(shown):
    title = "word " * 400
    assert title.strip() in shown({"file": str(Path("/a/1.jpg")), "title": title}).out
