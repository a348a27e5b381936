"""What a search on the command line refuses: in one line that says what must hold."""

import json

import pytest

from searchlab import cli
from searchlab.errors import DataError, rebuild_remedy
from searchlab.library.library import open_library
from tests.support import cli_world
from tests.support.cli_world import error_of

mine = cli_world.mine
search = cli_world.search
whole = cli_world.whole


# -- bad usage ----------------------------------------------------------------------------------


BAD = [
    ([], "query must have"),
    ([""], "query must have"),
    (["   "], "query must have"),
    (["--color-tolerance", "30"], "--color-tolerance goes with"),
    (["--palette", "crimson"], "palette must name one of black"),
    (["--palette", "red:200"], "from 1 to 100"),
    (["--sort-by", "newest"], "query must have"),
    (["--limit", "5"], "query must have"),
    (["x" * 501], "500"),
    (["red", "--text-alpha", "nan"], "--text-alpha"),
    (["red", "--text-alpha", "inf"], "--text-alpha"),
    (["red", "--text-alpha", "-0.1"], "--text-alpha"),
    (["red", "--text-alpha", "10.1"], "--text-alpha"),
    (["red", "--text-alpha", "much"], "text-alpha"),
    (["red", "--color-name", "nonsense"], "--color-name"),
    (["red", "--color-hex", "nonsense"], "#"),
    (["red", "--color-hex", "1f6f8b"], "#"),
    (["red", "--color-hex", "#1f6f8"], "#"),
    (["red", "--color-hex", "#1f6f8g"], "#"),
    (["red", "--color-hex", "#１f6f8b"], "#"),
    (["red", "--color-name", "red", "--color-hex", "#ff0000"], "cannot be combined"),
    (["red", "--color-hex", "#ff0000", "--color-tolerance", "-1"], "--color-tolerance"),
    (["red", "--color-hex", "#ff0000", "--color-tolerance", "256"], "--color-tolerance"),
    (["red", "--color-hex", "#ff0000", "--color-tolerance", "9" * 30], "--color-tolerance"),
    (["red", "--color-hex", "#ff0000", "--color-tolerance", "1.5"], "color-tolerance"),
    (["red", "--orientation", "diagonal"], "landscape, portrait, square"),
    (["red", "--source", "nowhere"], "pexels, unsplash"),
    (["red", "--license-type", "nonsense"], "cc0"),
    (["red", "--after-date", "yesterday"], "YYYY-MM-DD"),
    (["red", "--after-date", "2024-02-30"], "YYYY-MM-DD"),
    (["red", "--after-date", "2024-1-1"], "YYYY-MM-DD"),
    (["red", "--sort-by", "oldest"], "relevance or newest"),
    (["red", "--score-threshold", "nan"], "--score-threshold"),
    (["red", "--score-threshold", "1.01"], "--score-threshold"),
    (["red", "--score-threshold", "-inf"], "--score-threshold"),
    (["red", "--limit", "0"], "--limit"),
    (["red", "--limit", "101"], "--limit"),
    (["red", "--limit", "9" * 30], "--limit"),
    (["red", "--limit", "ten"], "limit"),
    (["red", "--per-page", "0"], "--per-page"),
    (["red", "--per-page", "101"], "--per-page"),
    (["red", "--per-page", "-1"], "--per-page"),
    (["--cursor", "nonsense"], "cursor"),
    (["--cursor", "a.b"], "cursor"),
    (["--photo-id", "nonsense"], "--photo-id"),
    (["--photo-id", "00000000-0000-0000-0000-000000000000"], "--photo-id"),
    (["--photo-id", ""], "--photo-id"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=lambda value: " ".join(value)[:40])
def test_bad_usage_is_one_line_that_says_what_must_hold(search, arguments, says):
    assert says in error_of(search(*arguments), 2)


def test_pictures_that_are_none_are_refused_in_one_line(search, tmp_path):
    (tmp_path / "text.jpg").write_text("hello")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "cut.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    assert "JPEG" in error_of(search("--image", tmp_path / "text.jpg"), 2)
    assert "0 bytes" in error_of(search("--image", tmp_path / "empty.png"), 2)
    assert "undamaged" in error_of(search("--image", tmp_path / "cut.png"), 2)
    assert "nowhere.png" in error_of(search("--image", tmp_path / "nowhere.png"), 2)
    assert "directory" in error_of(search("--image", tmp_path), 2)


def test_a_picture_and_a_photo_id_cannot_be_combined(search, whole):
    picture = whole / "photos/03.png"
    assert "keep one" in error_of(search("--image", picture, "--photo-id", "x"), 2)


def test_a_cursor_of_which_one_letter_is_wrong_is_refused(search):
    cursor = json.loads(search("red", "--json").out)["pagination"]["next_cursor"]
    for place in (0, len(cursor) // 2, -1):
        letters = list(cursor)
        letters[place] = "A" if letters[place] != "A" else "B"
        assert "cursor" in error_of(search("--cursor", "".join(letters)), 2)


@pytest.mark.parametrize("name", ["missing/page.html", "", "text.txt/page.html"])
def test_a_page_that_cannot_be_written_is_refused_in_one_line(search, tmp_path, name):
    (tmp_path / "text.txt").write_text("x")
    error_of(search("red", "--html", tmp_path / name), 2)


# -- no library, or a damaged one ---------------------------------------------------------------


def test_where_no_library_is_the_remedy_is_named_and_nothing_is_made(run, tmp_path):
    for arguments in (["search", "red"], ["check"]):
        assert "searchlab index" in error_of(run(*arguments, "--data", tmp_path / "no"), 2)
    assert not (tmp_path / "no").exists()


def test_a_file_in_place_of_the_library_is_refused(run, whole):
    error_of(run("search", "red", "--data", whole / "photos/00.png"), 2)
    error_of(run("index", whole / "photos", "--data", whole / "photos/00.png/below"), 2)


def test_a_damaged_library_is_an_error_with_the_remedy(run, mine):
    [path] = mine.glob("snapshots/*/vectors.npy")
    path.write_bytes(path.read_bytes()[:-1])
    for arguments in (["search", "red"], ["check"], ["index"]):
        line = error_of(run(*arguments, "--data", mine), 1)
        assert "vectors.npy" in line
        assert "--rebuild" in line


@pytest.mark.parametrize("name", ["photos", "facets", "words", "words-0"])
def test_a_cut_file_of_columns_is_an_error_with_the_command_that_mends_it(run, mine, name):
    [path] = mine.glob(f"snapshots/*/{name}.columns")
    path.write_bytes(path.read_bytes()[:-64])
    for arguments in (["search", "red"], ["index"], *([["info"]] if name == "photos" else [])):
        line = error_of(run(*arguments, "--data", mine), 1)
        assert f"`searchlab index --data {mine} --rebuild`" in line
    assert run("index", "--data", mine, "--rebuild").code == 0


def test_where_only_the_command_line_knows_the_folder_it_names_it(run, mine, monkeypatch):
    def read(_):
        msg = f"texts must lie in order, got others; {rebuild_remedy()}"
        raise DataError(msg)

    monkeypatch.setattr("searchlab.library.info.describe_library", read)
    assert f"--data {mine} --rebuild" in error_of(run("info", "--data", mine), 1)


@pytest.mark.parametrize("more", [[], ["--model", "palette"]], ids=["", "model"])
def test_rebuilding_as_the_remedy_says_mends_it(run, mine, more):
    [path] = mine.glob("snapshots/*/vectors.npy")
    path.write_bytes(path.read_bytes()[:-1])
    done = run("index", "--data", mine, "--rebuild", *more)
    assert done.code == 0, done.err
    names = ("facets.columns", "photos.columns", "vectors.npy")
    names += ("words-0.columns", "words.columns")
    names += ("cache.db",)
    assert run("check", "--data", mine).out == "".join(f"ok {name}\n" for name in names)
    assert open_library(mine).engine.config.model == "palette"


def test_too_little_memory_is_one_line(monkeypatch, capsys):
    def search_the_limit(**_):
        raise MemoryError

    monkeypatch.setattr(cli, "searchlab", search_the_limit)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    assert capsys.readouterr().err.endswith("got less; see `ulimit -v`\n")
