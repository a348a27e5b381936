"""`searchlab search`: as a table, as JSON, as a page, one page after the other."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from searchlab.library.library import open_library
from searchlab.photos.colors import color_name, hex_distance
from searchlab.photos.photo import PHOTO_FIELDS
from tests.support import cli_world
from tests.support.cli_world import error_of, ids_of, in_a_process, mosaic

mine = cli_world.mine
search = cli_world.search
whole = cli_world.whole


def test_results_are_a_line_each_place_score_file_and_caption(search, whole):
    done = search("red", "--per-page", 3)
    assert (done.code, done.err) == (0, "")
    found = re.findall(r"^(\d)  ([01]\.\d\d)  (\S+)  (photo \d+)$", done.out, re.MULTILINE)
    assert [place for place, *_ in found] == ["1", "2", "3"]
    assert len(done.out.splitlines()) == 3
    for _, _, path, caption in found:
        assert path == f"{whole}/photos/{int(caption[6:]):02d}.png"


@pytest.mark.parametrize("columns", ["1", "20", "60", "200"])
def test_into_a_pipe_nothing_is_wrapped_or_cut(search, monkeypatch, columns):
    wide = search("red", "--per-page", 25).out
    monkeypatch.setenv("COLUMNS", columns)
    assert search("red", "--per-page", 25).out == wide
    assert len(wide.splitlines()) == 25


def test_verbose_results_show_credit_colour_and_files(search, whole):
    done = search("red", "--per-page", 2, "-v")
    [first, *rest] = done.out.splitlines()
    assert re.fullmatch(r"1  [01]\.\d\d  [█░]{8}     [a-z]+  photo \d+", first)
    assert [line.split()[0] for line in rest[:4]] == ["credit", "photo", "thumbnail", "photo_id"]
    assert f"     photo      {whole}/photos/" in done.out


def test_photos_are_found_by_colours_of_their_palette_most_of_them_first(search, whole):
    photos = open_library(whole / "data").engine.table.photos(range(25))

    def percent(photo, family):
        return sum(share for shade, share in photo.palette if color_name(shade) == family)

    green = {p.photo_id: percent(p, "green") for p in photos if percent(p, "green") >= 15}
    assert 1 < len(green) < 25
    done = search("--palette", "green:15", "--per-page", 25, "--json")
    assert ids_of(done) == sorted(green, key=lambda photo_id: (-green[photo_id], photo_id))
    both = search("--palette", "green:15", "--palette", "purple", "--per-page", 25, "--json")
    purple = {photo.photo_id for photo in photos if percent(photo, "purple")}
    assert set(ids_of(both)) == set(green) & purple


def test_a_shade_alone_brings_the_nearest_photos_first(search):
    done = search("--color-hex", "#4682b4", "--color-tolerance", 120, "--json", "--per-page", 25)
    shades = [record["color_hex"] for record in json.loads(done.out)["data"]]
    assert len(shades) > 5
    assert shades == sorted(shades, key=lambda shade: hex_distance(shade, "#4682b4"))


def test_json_holds_all_fields_of_every_photo(search):
    done = search("red", "--json")
    assert (done.code, done.err) == (0, "")
    answer = json.loads(done.out)
    assert len(answer["data"]) == 10
    for record in answer["data"]:
        assert tuple(record) == (*PHOTO_FIELDS, "file")
        assert len(record) == 23
        assert Path(record["file"]).name == f"{int(record['uploaded_on'][-2:]) - 1:02d}.png"
        assert Path(record["file"]).is_file()
        assert 0 <= record["relevance_score"] <= 1
    assert answer["pagination"]["per_page"] == 10
    assert answer["pagination"]["has_more"] is True


def test_fields_are_the_asked_ones_in_the_specifications_order(search):
    done = search("red", "--json", "--fields", "relevance_score,photo_id,width")
    assert {tuple(record) for record in json.loads(done.out)["data"]} == {
        ("photo_id", "width", "relevance_score")
    }


@pytest.mark.parametrize("fields", ["file", "width,file", "file,width"])
def test_the_file_is_a_field_too_and_comes_last(search, fields):
    done = search("red", "--json", "--fields", fields)
    assert {tuple(record) for record in json.loads(done.out)["data"]} == {
        tuple(sorted(fields.split(","), reverse=True))
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
        "total": 25,
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
    between = ["--after-date", "2024-01-10", "--before-date", "2024-01-13", "--json"]
    records = json.loads(search(*between, "--per-page", 100).out)["data"]
    assert {record["uploaded_on"] for record in records} == {f"2024-01-{n}" for n in range(10, 14)}


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
    assert re.findall(r"^ *(\d+) +\d\.\d\d ", done.out, re.MULTILINE) == ["5", "6", "7", "8"]
    shown = (tmp_path / "page.html").read_text()
    assert re.findall(r"<b>(\d+)\.</b>", shown) == ["5", "6", "7", "8"]


def test_pages_by_number_are_the_slices_of_one_large_page(search):
    large = ids_of(search("red", "--json", "--per-page", 100))
    pages = [ids_of(search("red", "--json", "--per-page", 7, "--page", n)) for n in (1, 2, 3, 4)]
    assert pages == [large[:7], large[7:14], large[14:21], large[21:]]


def test_a_page_behind_the_last_names_the_last(search):
    line = error_of(search("red", "--per-page", 7, "--page", 5), 2)
    assert "page must be at most 4, which is the last for 25 results at 7 a page, got 5" in line
    assert "page must be an integer from 1" in error_of(search("red", "--page", 0), 2)
    cursor = json.loads(search("red", "--json").out)["pagination"]["next_cursor"]
    assert "--page and --cursor cannot be combined" in error_of(
        search("--cursor", cursor, "--page", 2), 2
    )
    line = error_of(search("blue", "--cursor", cursor, "--per-page", 3, "--source", "nasa"), 2)
    assert "--cursor must stand without a search, as it holds one, got --per-page, --source" in line


def test_fields_without_json_are_refused(search):
    assert "--fields goes with --json" in error_of(search("red", "--fields", "width"), 2)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["search", "--help"], ["search", "red"], ["info"]]
)
def test_a_reader_that_has_seen_enough_is_no_error(whole, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    data = [] if arguments[-1].startswith("-") else ["--data", str(whole / "data")]
    done = subprocess.run(
        [sys.executable, "-c", "from searchlab.cli import main; main()", *arguments, *data],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


# -- files ------------------------------------------------------------------------------------


def test_paths_are_a_file_a_line_and_nothing_else(search):
    done = search("red", "--paths", "--per-page", 25)
    assert (done.code, done.err) == (0, "")
    files = done.out.splitlines()
    assert files == [
        r["file"] for r in json.loads(search("red", "--json", "--per-page", 25).out)["data"]
    ]
    assert all(Path(file).is_file() for file in files)


def test_where_nothing_scores_enough_no_condition_is_blamed(search):
    done = search("zzqqxx", "--score-threshold", 1)
    assert done.out == "no photo scores as high as --score-threshold asks\n"
    done = search("zzqqxx", "--sort-by", "newest")
    assert done.out.endswith("shown by date; --score-threshold 0 shows all\n")
    assert search("zzqqxx", "--sort-by", "newest", "--score-threshold", 0).out.count("\n") > 1


def test_paths_may_end_in_nul_for_xargs(search):
    done = search("red", "-0", "--per-page", 3)
    assert done.out == search("red", "--paths", "--per-page", 3).out.replace("\n", "\0")
    assert done.out.count("\0") == 3


def test_where_nothing_is_found_no_path_is_printed(search):
    done = search("--photographer", "nobody", "--paths")
    assert (done.code, done.out, done.err) == (0, "", "no photo meets all conditions\n")


def test_the_plan_does_not_come_between_paths_or_into_json(search):
    assert search("red", "--paths", "--plan").out == search("red", "--paths").out
    done = search("red", "--json", "--plan")
    assert json.loads(done.out)
    assert "filter: " in done.err


@pytest.mark.slow
def test_a_name_of_any_bytes_reaches_a_pipe_as_it_is(tmp_path):
    names = ["a b", "two\nlines", "-dash", "'quoted\"", "夜", "\x1b[31mred", "%20"]
    for number, name in enumerate(names):
        mosaic(tmp_path / "photos" / f"{name}.png", number)
    data = ["--data", tmp_path / "data"]
    assert in_a_process("index", tmp_path / "photos", *data, "--model", "palette").code == 0
    done = in_a_process("search", "red", "-0", *data, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    paths = {str(tmp_path.resolve() / "photos" / f"{name}.png") for name in names}
    assert {*done.out.split("\0")} == {*paths, ""}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--paths", "--json"], "--paths and --json"),
        (["-0", "-v"], "--verbose and -0"),
        (["-0", "--json"], "got -0 and --json"),
        (["-0", "--paths", "--json"], "got --paths and --json"),
        (["-v", "--json"], "--verbose and --json"),
        (["-0", "--share"], "got -0 too"),
        (["--paths", "--share"], "--share leaves out files, places and keywords, got --paths"),
        (["--json", "--fields", "file", "--share"], "got the field file"),
        (["--json", "--fields", "photo_id,place", "--share"], "got the field place"),
    ],
)
def test_forms_that_contradict_each_other_are_refused(search, options, words):
    assert words in error_of(search("red", *options), 2)


@pytest.mark.parametrize("form", [[], ["-v"], ["--json"], ["--html", "page.html"]])
def test_what_is_shared_says_nothing_of_where_the_files_lie(
    search, whole, tmp_path, monkeypatch, form
):
    monkeypatch.chdir(tmp_path)
    picture = whole / "photos/03.png"
    for share, is_told in (([], True), (["--share"], False)):
        done = search("red", "--image", picture, "--plan", *form, *share)
        told = done.out + done.err + "".join(p.read_text() for p in tmp_path.glob("*.html"))
        assert (str(whole) in told) is is_told
        assert (".png" in told) is is_told


def test_what_is_the_owners_is_printed_where_it_is_named(run, tmp_path):
    mosaic(tmp_path / "p/a.png", 1)
    line = {"file": "a.png", "title": "Ebbe", "tags": ["sea"], "place": "Faro", "rating": 4}
    line |= {"latitude": 0, "longitude": -7.9}
    (tmp_path / "p/photos.jsonl").write_text(json.dumps(line))
    data = ["--data", tmp_path / "data"]
    assert run("index", tmp_path / "p", *data, "--model", "palette").code == 0
    fields = "width,title,folder,tags,place,latitude,longitude,rating"
    [record] = json.loads(run("search", "red", *data, "--json", "--fields", fields).out)["data"]
    assert record == {name: line.get(name) for name in fields.split(",")} | {
        "width": record["width"],
        "folder": "p",
    }
    [whole] = json.loads(run("search", "red", *data, "--json").out)["data"]
    assert not {"tags", "place", "latitude", "title", "folder", "rating"} & set(whole)
    details = run("search", "red", *data, "-v").out
    assert "Faro" in details
    assert "sea" in details
    shared = run("search", "red", *data, "-v", "--share").out
    assert "Faro" not in shared
    assert "sea" not in shared.replace("searchlab", "")


def test_the_page_is_opened_in_the_browser(search, mine, run, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert run("search", "red", "--open", "--data", mine).code == 0
    assert opened == [(mine / "search.html").as_uri()]
    assert "file://" in (mine / "search.html").read_text()
    assert (mine / "search.html").stat().st_mode & 0o777 == 0o600
    search("red", "--open", "--html", tmp_path / "page.html")
    assert opened[1:] == [(tmp_path / "page.html").as_uri()]
    assert search("red", "--html", tmp_path / "page.html").code == 0
    assert len(opened) == 2


def test_without_a_browser_the_page_is_named(run, mine, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    done = run("search", "red", "--open", "--data", mine)
    assert done.code == 2
    assert str(mine / "search.html") in done.err


def test_the_library_may_be_named_by_the_environment(run, whole, monkeypatch):
    monkeypatch.setenv("SEARCHLAB_DATA", str(whole / "data"))
    assert run("search", "red").code == 0
    assert run("check").code == 0
