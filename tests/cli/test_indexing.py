"""`searchlab index`: what it tells, what it keeps, and what it refuses."""

import json
import shutil

import pytest

from searchlab.errors import InputError
from searchlab.library.library import open_library
from searchlab.library.retention import Retention, read_retention
from tests.support import cli_world
from tests.support.cli_world import error_of, mosaic

mine = cli_world.mine
whole = cli_world.whole


# -- what it does and tells ---------------------------------------------------------------------


@pytest.mark.slow
def test_indexing_tells_the_result_on_standard_output_and_progress_on_standard_error(
    run, whole, tmp_path
):
    arguments = ["index", whole / "photos", "--data", tmp_path / "data", "--model", "palette"]
    done = run(*arguments)
    assert (done.code, done.out) == (0, "25 photos: 25 added, 0 removed, 0 copies left out\n")
    assert "embedding photos" in done.err
    done = run(*arguments)
    assert (done.code, done.out) == (0, "25 photos: 0 added, 0 removed, 0 copies left out\n")
    assert "embedding photos" not in done.err


def test_another_kind_of_index_is_built_without_embedding_again(run, mine):
    done = run("index", "--data", mine, "--index", "clustered")
    assert done.code == 0, done.err
    engine = open_library(mine).engine
    assert engine.config.index == "clustered"
    assert type(engine.index).__name__ == "IvfIndex"
    assert run("search", "red", "--data", mine, "--min-recall", "1").code == 0


def test_indexing_again_needs_no_folder_and_no_model(run, mine):
    done = run("index", "--data", mine)
    assert (done.code, done.out) == (0, "25 photos: 0 added, 0 removed, 0 copies left out\n")
    assert open_library(mine).engine.config.model == "palette"


def test_naming_a_folder_again_without_its_records_and_source_keeps_its_photos(run, tmp_path):
    mosaic(tmp_path / "p/a.png", 1)
    (tmp_path / "r.jsonl").write_text('{"file": "p/a.png", "license_type": "cc0"}')
    data = ["--data", tmp_path / "data"]
    run("index", tmp_path / "p", *data, "--model", "palette",
        "--source", "unsplash", "--records", tmp_path / "r.jsonl")  # fmt: skip
    done = run("index", tmp_path / "p", *data)
    assert done.out == "1 photo: 0 added, 0 removed, 0 copies left out\n"
    [record] = json.loads(run("search", "--after-date", "1000-01-01", *data, "--json").out)["data"]
    assert (record["source"], record["license_type"]) == ("unsplash", "cc0")


def test_skipped_files_are_listed_one_a_line_and_counted(run, tmp_path):
    mosaic(tmp_path / "p/good.png", 1)
    (tmp_path / "p/bad.jpg").write_text("text")
    (tmp_path / "p/[red]x[bold]\u001b[2J\nnew line.jpg").write_text("other")
    (tmp_path / "p/photos.jsonl").write_text("nonsense\n")
    done = run("index", tmp_path / "p", "--data", tmp_path / "data", "--model", "palette")
    assert done.code == 0
    lines = done.out.splitlines()
    assert len(lines) == 4
    assert lines[-1] == "1 photo: 1 added, 0 removed, 0 copies left out, 3 skipped"
    assert f"skipped {tmp_path.resolve()}/p/bad.jpg: not an image" in lines
    assert "[red]x[bold]" in done.out
    assert "\u001b" not in done.out + done.err


@pytest.mark.slow
def test_a_long_list_of_skipped_files_is_cut(run, tmp_path):
    mosaic(tmp_path / "p/good.png", 1)
    for i in range(70):
        (tmp_path / f"p/{i}.jpg").write_text(str(i))
    arguments = ["index", tmp_path / "p", "--data", tmp_path / "data", "--model", "palette"]
    done = run(*arguments)
    assert "... and 20 more; --verbose names all" in done.out
    assert len(done.out.splitlines()) == 52
    assert len(run(*arguments, "--verbose").out.splitlines()) == 71
    run(*arguments, "--skipped", tmp_path / "skipped.jsonl")
    listed = [*map(json.loads, (tmp_path / "skipped.jsonl").read_text().splitlines())]
    assert {line["where"] for line in listed} == {
        str(path.resolve()) for path in (tmp_path / "p").glob("*.jpg")
    }
    assert {line["reason"] for line in listed} == {"not an image"}


def test_how_long_what_is_replaced_stays_is_told_to_the_library(run, tmp_path):
    mosaic(tmp_path / "p/good.png", 1)
    arguments = ["index", tmp_path / "p", "--data", tmp_path / "data", "--model", "palette"]
    assert run(*arguments, "--keep-minutes", "90", "--keep-gb", "2.5").code == 0
    assert read_retention(tmp_path / "data") == Retention(5_400.0, 2_500_000_000)
    assert run(*arguments, "--keep-minutes", "0").code == 0
    assert read_retention(tmp_path / "data") == Retention(0.0, 2_500_000_000)
    for wrong in ("-1", "nan", "inf"):
        done = run(*arguments, "--keep-gb", wrong)
        assert (done.code, done.err.count("\n")) == (2, 1), done


def test_files_that_are_no_pictures_share_a_line_a_kind(run, tmp_path):
    mosaic(tmp_path / "p/good.png", 1)
    for i in range(12):
        (tmp_path / f"p/{i}.MOV").write_bytes(b"\0\0\0\x14ftypqt  " + bytes([i]))
        (tmp_path / f"p/{i}").write_text(f"plain {i}")
    (tmp_path / "p/1.bmp").write_bytes(b"BM" + bytes(50))
    (tmp_path / "p/2.bmp").write_bytes(b"BM" + bytes(51))
    (tmp_path / "p/damaged.jpg").write_bytes(b"\xff\xd8\xff" + bytes(50))
    (tmp_path / "p/notes.txt").write_text("one of its kind")
    arguments = ["index", tmp_path / "p", "--data", tmp_path / "data", "--model", "palette"]
    done = run(*arguments)
    place = tmp_path.resolve() / "p"
    assert sorted(done.out.splitlines()) == [
        "1 photo: 1 added, 0 removed, 0 copies left out, 28 skipped",
        "12 files of kind .mov were skipped: not a picture",
        "12 files without a suffix were skipped: not a picture",
        "2 files of kind .bmp were skipped: pictures of a format that is not read",
        f"skipped {place}/damaged.jpg: damaged",
        f"skipped {place}/notes.txt: not an image",
    ]
    assert f"skipped {place}/7.MOV: not an image" in run(*arguments, "-v").out.splitlines()


def test_where_the_skipped_cannot_be_written_nothing_is_indexed(run, tmp_path):
    mosaic(tmp_path / "p/good.png", 1)
    arguments = ["index", tmp_path / "p", "--data", tmp_path / "new", "--model", "palette"]
    line = error_of(run(*arguments, "--skipped", tmp_path / "none/x"), 2)
    assert "--skipped must be a file that can be written, in a folder that is there" in line
    assert not (tmp_path / "new").exists()


def test_the_report_is_printed_though_the_skipped_could_not_be_written(run, tmp_path, monkeypatch):
    def write(path, text):
        msg = f"{path} must be a file that can be written, got: No space left on device"
        raise InputError(msg)

    monkeypatch.setattr("searchlab.cli.library.write_text", write)
    mosaic(tmp_path / "p/good.png", 1)
    arguments = ["index", tmp_path / "p", "--data", tmp_path / "new", "--model", "palette"]
    done = run(*arguments, "--skipped", tmp_path / "x")
    assert (done.code, done.out) == (2, "1 photo: 1 added, 0 removed, 0 copies left out\n")
    assert "No space left" in done.err


def test_what_is_hidden_is_told_in_a_line_and_listed(run, tmp_path):
    for name in ("good.png", ".one.png", "sub/.two.png", ".private/a.png", ".private/b.png"):
        mosaic(tmp_path / "p" / name, len(name))
    arguments = ["index", tmp_path / "p", "--data", tmp_path / "data", "--model", "palette"]
    done = run(*arguments, "--skipped", tmp_path / "skipped.jsonl")
    place = tmp_path.resolve() / "p"
    assert sorted(done.out.splitlines()) == [
        "1 photo: 1 added, 0 removed, 0 copies left out, 3 skipped",
        "2 hidden files were skipped: their names begin with a dot",
        f"skipped {place}/.private: a hidden folder",
    ]
    listed = [*map(json.loads, (tmp_path / "skipped.jsonl").read_text().splitlines())]
    assert {(line["where"], line["reason"]) for line in listed} == {
        (f"{place}/.one.png", "a hidden file"),
        (f"{place}/sub/.two.png", "a hidden file"),
        (f"{place}/.private", "a hidden folder"),
    }


def test_a_missing_folder_is_told_and_its_photos_stay_until_forgotten(run, tmp_path):
    mosaic(tmp_path / "near/a.png", 1)
    mosaic(tmp_path / "far/b.png", 2)
    data = ["--data", tmp_path / "data"]
    run("index", tmp_path / "near", tmp_path / "far", *data, "--model", "palette")
    shutil.rmtree(tmp_path / "far")
    done = run("index", *data)
    assert done.code == 0
    assert f"{tmp_path.resolve()}/far: no photo was read there, so its photos are kept" in done.out
    done = run("index", *data, "--forget", tmp_path / "far")
    assert done.out == "1 photo: 0 added, 1 removed, 0 copies left out\n"


def test_a_folder_that_shows_nothing_now_is_told_and_its_photos_stay(run, tmp_path):
    mosaic(tmp_path / "photos/a.png", 1)
    arguments = ("index", tmp_path / "photos", "--data", tmp_path / "data", "--model", "palette")
    assert run(*arguments).code == 0
    (tmp_path / "photos/a.png").unlink()
    done = run("index", "--data", tmp_path / "data")
    assert done.code == 0, done.err
    assert (
        "photos: no photo was read there, so its photos are kept (--forget drops them)" in done.out
    )
    assert "1 photo: 0 added, 0 removed" in done.out


def test_pruning_and_configurations_from_a_file(run, mine, tmp_path):
    assert run("index", "--data", mine, "--prune").code == 0
    (tmp_path / "chosen.json").write_text('{"config": {"model": "palette", "index": "hnsw"}}')
    done = run("index", "--data", mine, "--config", tmp_path / "chosen.json")
    assert done.code == 0, done.err
    names = ("facets.columns", "graph.hnsw", "photos.columns", "vectors.npy")
    names += ("words-0.columns", "words.columns")
    names += ("cache.db",)
    assert run("check", "--data", mine).out == "".join(f"ok {name}\n" for name in names)


# -- what it refuses ----------------------------------------------------------------------------


def bad_index_calls(folder):
    (folder / "file.txt").write_text("x")
    (folder / "garbage.json").write_text("{")
    (folder / "other.json").write_text('{"config": {"model": "palette", "nonsense": 1}}')
    (folder / "range.json").write_text('{"model": "palette", "M": 1}')
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "empty").mkdir()
    good = folder / "good"
    mosaic(good / "a.png", 1)
    return {
        "nothing to cover": [],
        "missing folder": [folder / "nowhere"],
        "file": [folder / "file.txt"],
        "empty folder": [folder / "empty"],
        "missing records": [good, "--records", folder / "nowhere.jsonl"],
        "records for none": ["--records", folder / "file.txt"],
        "records for two": [good, folder / "empty", "--records", folder / "file.txt"],
        "no source name": [good, "--source", " "],
        "unknown model": [good, "--model", "nonsense"],
        "half a hybrid": [good, "--model", "hybrid:palette"],
        "missing config": [good, "--config", folder / "nowhere.json"],
        "garbage config": [good, "--config", folder / "garbage.json"],
        "unknown setting": [good, "--config", folder / "other.json"],
        "setting out of range": [good, "--config", folder / "range.json"],
        "deep config": [good, "--config", folder / "deep.json"],
        "forget unknown": [good, "--model", "palette", "--forget", folder / "empty"],
        "forget all": [good, "--forget", good],
        "minutes below 0": [good, "--keep-minutes", "-5"],
        "no minutes": [good, "--keep-minutes", "nan"],
        "GB below 0": [good, "--keep-gb", "-1"],
        "endless GB": [good, "--keep-gb", "inf"],
    }


@pytest.mark.parametrize(
    "case",
    [
        "nothing to cover", "missing folder", "file", "empty folder", "missing records",
        "records for none", "records for two", "no source name", "unknown model",
        "half a hybrid", "missing config", "garbage config", "unknown setting",
        "setting out of range", "deep config", "forget unknown",
    ],
)  # fmt: skip
def test_bad_usage_of_index_is_one_line_and_makes_no_state(run, tmp_path, case):
    arguments = bad_index_calls(tmp_path)[case]
    done = run("index", *arguments, "--data", tmp_path / "data")
    assert done.code in ((1, 2) if "config" in case or "setting" in case else (2,))
    assert done.out == ""
    # Progress may stand before the error.
    assert done.err.splitlines()[-1].startswith("searchlab: ")
    assert sum(line.startswith("searchlab: ") for line in done.err.splitlines()) == 1
    assert not (tmp_path / "data/CURRENT").exists()


@pytest.mark.parametrize(
    "case",
    [
        "missing folder", "unknown model", "missing records", "file", "nothing to cover",
        "forget unknown", "forget all", "minutes below 0", "no minutes", "GB below 0",
        "endless GB",
    ],
)  # fmt: skip
def test_a_misspelt_option_leaves_no_folder_behind(run, tmp_path, case):
    arguments = bad_index_calls(tmp_path)[case]
    run("index", *arguments, "--data", tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--keep-minutes", "-5", "a number from 0 to 527,040, got -5"),
        ("--keep-minutes", "527041", "a number from 0 to 527,040, got 527041"),
        ("--keep-gb", "-1", "a number from 0 to 1,152,921,504, got -1"),
        ("--keep-gb", "nan", "a number from 0 to 1,152,921,504, got nan"),
    ],
)
def test_what_is_kept_is_refused_in_the_unit_it_was_given_in(run, mine, option, value, said):
    before = read_retention(mine)
    line = error_of(run("index", "--data", mine, option, value), 2)
    assert line == f"searchlab: {option} must be {said}"
    assert read_retention(mine) == before


def test_the_most_that_can_be_kept_is_taken(run, mine):
    assert run("index", "--data", mine, "--keep-minutes", "527040").code == 0


def test_an_unknown_kind_of_index_is_refused_and_no_library_is_made(run, tmp_path):
    line = error_of(run("index", tmp_path, "--data", tmp_path / "new", "--index", "tree"), 2)
    assert "clustered" in line
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("inside", ["", "thumbnails"])
def test_indexing_a_library_into_itself_is_one_line_and_changes_nothing(run, mine, inside):
    before = (mine / "CURRENT").read_bytes()
    line = error_of(run("index", mine / inside, "--data", mine), 2)
    assert "must lie outside the library" in line
    assert (mine / "CURRENT").read_bytes() == before


def test_a_library_that_somebody_writes_to_is_an_error_that_says_to_wait(run, mine):
    with open_library(mine).writing():
        line = error_of(run("index", "--data", mine), 1)
        assert "wait" in line
        assert run("search", "red", "--data", mine).code == 0


def test_a_folder_of_photos_never_becomes_a_library_by_a_mistake(run, tmp_path, monkeypatch):
    photos = tmp_path / "Pictures"
    mosaic(photos / "a.png", 1)
    monkeypatch.chdir(photos)
    done = run("index", ".", "--data", ".", "--model", "palette")
    assert done.code == 2
    assert "must lie outside the library" in error_of(done, 2)
    assert "name another folder for the library with --data" in error_of(done, 2)
    assert [path.name for path in photos.iterdir()] == ["a.png"]
    for words in (["index", ""], ["index", ".", "--data", ""]):
        done = run(*words)
        assert done.code == 2
        assert "a path must not be empty" in done.err
    assert [path.name for path in photos.iterdir()] == ["a.png"]


@pytest.mark.parametrize("words", [["tune"], ["compare", "a"], ["export", "atlas", "f"]])
def test_a_seed_below_zero_is_refused(run, words):
    done = run(*words, "--seed", "-1")
    assert done.code == 2
    assert "-1 is not in the range x>=0" in done.err
