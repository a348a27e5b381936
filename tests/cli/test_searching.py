"""`searchlab search`: as a table, as JSON, as a page, one page after the other."""

import json
import re

import pytest

from searchlab.photos.photo import PHOTO_FIELDS
from tests.support import cli_world
from tests.support.cli_world import error_of, ids_of

search = cli_world.search
whole = cli_world.whole


def test_results_are_a_table_on_standard_output(search):
    done = search("red", "--per-page", 3)
    assert (done.code, done.err) == (0, "")
    assert re.findall(r"^ *(\d+) ", done.out, flags=re.MULTILINE)[:3] == ["1", "2", "3"]


def test_json_holds_all_fields_of_every_photo(search):
    done = search("red", "--json")
    assert (done.code, done.err) == (0, "")
    answer = json.loads(done.out)
    assert len(answer["data"]) == 10
    for record in answer["data"]:
        assert tuple(record) == PHOTO_FIELDS
        assert len(record) == 22
        assert 0 <= record["relevance_score"] <= 1
    assert answer["pagination"]["per_page"] == 10
    assert answer["pagination"]["has_more"] is True


def test_fields_are_the_asked_ones_in_the_specifications_order(search):
    done = search("red", "--json", "--fields", "relevance_score,photo_id,width")
    assert {tuple(record) for record in json.loads(done.out)["data"]} == {
        ("photo_id", "width", "relevance_score")
    }


@pytest.mark.parametrize("fields", ["nonsense", "photo_id,nonsense", ",", "photo_id,,width"])
def test_unknown_fields_are_refused_also_where_nothing_is_found(search, fields):
    line = error_of(search("red", "--json", "--fields", fields), 2)
    assert "photo_id" in line
    nobody = ["--photographer", "nobody"]
    assert error_of(search(*nobody, "--json", "--fields", fields), 2) == line


def test_blanks_around_fields_do_not_matter(search):
    done = search("red", "--json", "--fields", "photo_id, width")
    assert done.code == 0
    assert set(json.loads(done.out)["data"][0]) == {"photo_id", "width"}


def test_pages_by_cursor_are_the_slices_of_one_large_page(search):
    large = ids_of(search("red", "--json", "--per-page", 100))
    assert len(large) == 25
    done = search("red", "--json", "--per-page", 7)
    photo_ids, sizes = ids_of(done), [len(ids_of(done))]
    while cursor := json.loads(done.out)["pagination"]["next_cursor"]:
        done = search("--cursor", cursor, "--json")
        photo_ids += ids_of(done)
        sizes.append(len(ids_of(done)))
    assert photo_ids == large
    assert sizes == [7, 7, 7, 4]
    assert json.loads(done.out)["pagination"] == {
        "per_page": 7,
        "has_more": False,
        "next_cursor": None,
    }


def test_a_limit_counts_over_all_pages(search):
    done = search("red", "--json", "--per-page", 4, "--limit", 5)
    cursor = json.loads(done.out)["pagination"]["next_cursor"]
    last = search("--cursor", cursor, "--json")
    assert (len(ids_of(done)), len(ids_of(last))) == (4, 1)
    assert json.loads(last.out)["pagination"]["has_more"] is False


def test_filters_narrow_and_newest_sorts(search):
    done = search(
        "--source", "pexels", "--photographer", "user0", "--after-date", "2024-01-10",
        "--orientation", "landscape", "--orientation", "square", "--license-type", "cc0",
        "--sort-by", "newest", "--json", "--fields", "uploaded_on,source,photographer_username",
    )  # fmt: skip
    dates = [record["uploaded_on"] for record in json.loads(done.out)["data"]]
    assert dates == ["2024-01-25", "2024-01-19", "2024-01-13"]


def test_a_picture_finds_itself_and_an_indexed_photo_does_not(search, whole):
    picture = whole / "photos/03.png"
    [record] = json.loads(search("--image", picture, "--per-page", 1, "--json").out)["data"]
    assert record["source_description"] == "photo 3"
    assert record["photo_id"] not in ids_of(
        search("--photo-id", record["photo_id"], "--per-page", 100, "--json")
    )


def test_a_score_threshold_leaves_out_the_rest(search):
    scores = [
        record["relevance_score"]
        for record in json.loads(search("red", "--json", "--per-page", 100).out)["data"]
    ]
    done = search("red", "--json", "--per-page", 100, "--score-threshold", scores[4])
    assert len(ids_of(done)) == sum(score >= scores[4] for score in scores)


def test_nothing_found_is_success_and_says_so(search):
    done = search("--photographer", "nobody")
    assert (done.code, done.out) == (0, "no photo meets all conditions\n")
    assert json.loads(search("--photographer", "nobody", "--json").out)["data"] == []


def test_the_plan_is_explained(search):
    done = search("red", "--source", "pexels", "--plan")
    assert done.code == 0
    assert done.out.startswith("exact: ")
    assert "13 of 25 photos" in done.out
    assert "source is pexels" in done.out


def test_markup_and_control_characters_of_captions_are_shown_as_text(search):
    done = search("--photographer", "user1", "--per-page", 100)
    assert "[bold]markup[/bold]" in done.out.replace("\n", "")
    assert "\u001b" not in done.out


def test_html_is_one_escaped_file_that_needs_no_other(search, tmp_path):
    page = tmp_path / "page.html"
    done = search("<script>alert(2)</script>red", "--html", page, "--per-page", 25)
    assert done.code == 0
    text = page.read_text(encoding="utf-8")
    assert text.lower().startswith("<!doctype html>")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "&lt;script&gt;alert(2)" in text
    assert re.findall(r"""(?:src|srcset|@import|url\()\s*=?\s*["'(]?(?!data:)\w+:""", text) == []
    assert re.findall(r"<(?:link|iframe|object|embed|base)\b", text) == []
    assert text.count('src="data:image/webp;base64,') == 25


def test_html_and_json_go_together(search, tmp_path):
    done = search("red", "--json", "--html", tmp_path / "page.html")
    assert len(ids_of(done)) == 10
    assert (tmp_path / "page.html").exists()


def test_page_2_starts_at_its_place_in_terminal_and_page(search, tmp_path):
    first = json.loads(search("red", "--per-page", 4, "--json").out)
    cursor = first["pagination"]["next_cursor"]
    done = search("--cursor", cursor, "--html", tmp_path / "page.html")
    assert re.findall(r"^ *(\d+) +\d\.\d{3} ", done.out, re.MULTILINE) == ["5", "6", "7", "8"]
    shown = (tmp_path / "page.html").read_text()
    assert re.findall(r"<b>(\d+)\.</b>", shown) == ["5", "6", "7", "8"]


def test_the_library_may_be_named_by_the_environment(run, whole, monkeypatch):
    monkeypatch.setenv("SEARCHLAB_DATA", str(whole / "data"))
    assert run("search", "red").code == 0
    assert run("check").code == 0
