import json
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from conftest import Done
from searchlab.library import open_library
from searchlab.photos import PHOTO_FIELDS

NASTY = "<script>alert(1)</script> [bold]markup[/bold] \u001b[31m 夜"


def in_a_process(*arguments, **environment):
    """Runs a command line in a process of its own, with arguments of any bytes."""
    command = [sys.executable, "-c", "from searchlab.cli import main; main()", *arguments]
    done = subprocess.run(
        command, capture_output=True, env=os.environ | environment, check=False, timeout=60
    )
    return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode())


def mosaic(path, number):
    path.parent.mkdir(parents=True, exist_ok=True)
    tiles = np.random.default_rng(number).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    Image.fromarray(tiles).resize((40, 30), Image.Resampling.NEAREST).save(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A library of 25 photos; tests only read it."""
    folder = tmp_path_factory.mktemp("cli").resolve()
    lines = []
    for i in range(25):
        mosaic(folder / "photos" / f"{i:02d}.png", i)
        lines.append(
            {
                "file": f"{i:02d}.png",
                "source": "unsplash" if i % 2 else "pexels",
                "license_type": "cc0",
                "photographer_username": f"user{i % 3}",
                "source_description": NASTY if i == 7 else f"photo {i}",
                "title": "a" if i != 7 else NASTY,
                "uploaded_on": f"2024-01-{i + 1:02d}",
            }
        )
    (folder / "photos/photos.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = in_a_process("index", folder / "photos", "--data", folder / "data", "--model", "palette")
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def search(run, whole):
    def call(*arguments):
        return run("search", *arguments, "--data", whole / "data")

    return call


@pytest.fixture
def mine(whole, tmp_path):
    """A copy of the library that a test may change."""
    shutil.copytree(whole / "data", tmp_path / "data")
    return tmp_path / "data"


def error_of(done, code):
    """The one line on standard error, without a traceback and without results."""
    assert done.code == code, done
    assert done.out == ""
    [line] = done.err.splitlines()
    assert line.startswith("searchlab: ")
    return line


def ids_of(done):
    assert done.code == 0, done.err
    return [record["photo_id"] for record in json.loads(done.out)["data"]]


# Help


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


@pytest.mark.parametrize("command", ["index", "search", "check", "demo", "models"])
def test_every_command_has_help(run, command):
    done = run(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: ")
    assert run(command, "-h") == done


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


# Searching


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
    found, sizes = ids_of(done), [len(ids_of(done))]
    while cursor := json.loads(done.out)["pagination"]["next_cursor"]:
        done = search("--cursor", cursor, "--json")
        found += ids_of(done)
        sizes.append(len(ids_of(done)))
    assert found == large
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


def test_the_library_may_be_named_by_the_environment(run, whole, monkeypatch):
    monkeypatch.setenv("SEARCHLAB_DATA", str(whole / "data"))
    assert run("search", "red").code == 0
    assert run("check").code == 0


BAD = [
    ([], "query must have"),
    ([""], "query must have"),
    (["   "], "query must have"),
    (["--color-tolerance", "30"], "query must have"),
    (["--sort-by", "newest"], "query must have"),
    (["--limit", "5"], "query must have"),
    (["x" * 501], "500"),
    (["red", "--text-alpha", "nan"], "text_alpha"),
    (["red", "--text-alpha", "inf"], "text_alpha"),
    (["red", "--text-alpha", "-0.1"], "text_alpha"),
    (["red", "--text-alpha", "10.1"], "text_alpha"),
    (["red", "--text-alpha", "much"], "text-alpha"),
    (["red", "--color-name", "nonsense"], "color_name"),
    (["red", "--color-hex", "nonsense"], "#"),
    (["red", "--color-hex", "1f6f8b"], "#"),
    (["red", "--color-hex", "#1f6f8"], "#"),
    (["red", "--color-hex", "#1f6f8g"], "#"),
    (["red", "--color-hex", "#１f6f8b"], "#"),
    (["red", "--color-name", "red", "--color-hex", "#ff0000"], "cannot be combined"),
    (["red", "--color-hex", "#ff0000", "--color-tolerance", "-1"], "color_tolerance"),
    (["red", "--color-hex", "#ff0000", "--color-tolerance", "256"], "color_tolerance"),
    (["red", "--color-hex", "#ff0000", "--color-tolerance", "9" * 30], "color_tolerance"),
    (["red", "--color-hex", "#ff0000", "--color-tolerance", "1.5"], "color-tolerance"),
    (["red", "--orientation", "diagonal"], "landscape, portrait, square"),
    (["red", "--source", "nowhere"], "pexels, unsplash"),
    (["red", "--license-type", "nonsense"], "cc0"),
    (["red", "--after-date", "yesterday"], "YYYY-MM-DD"),
    (["red", "--after-date", "2024-02-30"], "YYYY-MM-DD"),
    (["red", "--after-date", "2024-1-1"], "YYYY-MM-DD"),
    (["red", "--sort-by", "oldest"], "relevance or newest"),
    (["red", "--score-threshold", "nan"], "score_threshold"),
    (["red", "--score-threshold", "1.01"], "score_threshold"),
    (["red", "--score-threshold", "-inf"], "score_threshold"),
    (["red", "--limit", "0"], "limit"),
    (["red", "--limit", "101"], "limit"),
    (["red", "--limit", "9" * 30], "limit"),
    (["red", "--limit", "ten"], "limit"),
    (["red", "--per-page", "0"], "per_page"),
    (["red", "--per-page", "101"], "per_page"),
    (["red", "--per-page", "-1"], "per_page"),
    (["--cursor", "nonsense"], "cursor"),
    (["--cursor", "a.b"], "cursor"),
    (["--photo-id", "nonsense"], "photo_id"),
    (["--photo-id", "00000000-0000-0000-0000-000000000000"], "photo_id"),
    (["--photo-id", ""], "photo_id"),
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


@pytest.mark.parametrize("more", [[], ["--model", "palette"]], ids=["", "model"])
def test_rebuilding_as_the_remedy_says_mends_it(run, mine, more):
    [path] = mine.glob("snapshots/*/vectors.npy")
    path.write_bytes(path.read_bytes()[:-1])
    done = run("index", "--data", mine, "--rebuild", *more)
    assert done.code == 0, done.err
    names = ("facets.columns", "photos.columns", "vectors.npy")
    assert run("check", "--data", mine).out == "".join(f"ok {name}\n" for name in names)
    assert open_library(mine).engine.config.model == "palette"


# Indexing


def test_another_kind_of_index_is_built_without_embedding_again(run, mine):
    done = run("index", "--data", mine, "--index", "clustered")
    assert done.code == 0, done.err
    engine = open_library(mine).engine
    assert engine.config.index == "clustered"
    assert type(engine.index).__name__ == "ClusteredIndex"
    assert run("search", "red", "--data", mine, "--min-recall", "1").code == 0


def test_an_unknown_kind_of_index_is_refused_and_no_library_is_made(run, tmp_path):
    line = error_of(run("index", tmp_path, "--data", tmp_path / "new", "--index", "tree"), 2)
    assert "clustered" in line
    assert not (tmp_path / "new").exists()


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
    assert done.out == "1 photos: 0 added, 0 removed, 0 copies left out\n"
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
    assert lines[-1] == "1 photos: 1 added, 0 removed, 0 copies left out, 3 skipped"
    assert f"skipped {tmp_path.resolve()}/p/bad.jpg: not an image" in lines
    assert "[red]x[bold]" in done.out
    assert "\u001b" not in done.out + done.err


def test_a_long_list_of_skipped_files_is_cut(run, tmp_path):
    mosaic(tmp_path / "p/good.png", 1)
    for i in range(70):
        (tmp_path / f"p/{i}.txt").write_text(str(i))
    done = run("index", tmp_path / "p", "--data", tmp_path / "data", "--model", "palette")
    assert "... and 20 more" in done.out
    assert len(done.out.splitlines()) == 52


def test_a_missing_folder_is_told_and_its_photos_stay_until_forgotten(run, tmp_path):
    mosaic(tmp_path / "near/a.png", 1)
    mosaic(tmp_path / "far/b.png", 2)
    data = ["--data", tmp_path / "data"]
    run("index", tmp_path / "near", tmp_path / "far", *data, "--model", "palette")
    shutil.rmtree(tmp_path / "far")
    done = run("index", *data)
    assert done.code == 0
    assert f"{tmp_path.resolve()}/far shows no photo now; its photos are kept" in done.out
    done = run("index", *data, "--forget", tmp_path / "far")
    assert done.out == "1 photos: 0 added, 1 removed, 0 copies left out\n"


def test_pruning_and_configurations_from_a_file(run, mine, tmp_path):
    assert run("index", "--data", mine, "--prune").code == 0
    (tmp_path / "chosen.json").write_text('{"config": {"model": "palette", "index": "hnsw"}}')
    done = run("index", "--data", mine, "--config", tmp_path / "chosen.json")
    assert done.code == 0, done.err
    names = ("facets.columns", "graph.hnsw", "photos.columns", "vectors.npy")
    assert run("check", "--data", mine).out == "".join(f"ok {name}\n" for name in names)


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


@pytest.mark.parametrize("case", ["missing folder", "unknown model", "missing records", "file"])
def test_a_misspelt_option_leaves_no_folder_behind(run, tmp_path, case):
    arguments = bad_index_calls(tmp_path)[case]
    run("index", *arguments, "--data", tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_library_that_somebody_writes_to_is_an_error_that_says_to_wait(run, mine):
    with open_library(mine).writing():
        line = error_of(run("index", "--data", mine), 1)
        assert "wait" in line
        assert run("search", "red", "--data", mine).code == 0


# Terminals


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
    assert "\u001b[" in search("red").out
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\u001b[" not in search("red").out


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


def test_a_folder_whose_name_is_not_unicode_is_told_in_one_line():
    assert "searchlab index" in error_of(in_a_process("search", "red", "--data", b"/no/\xff"), 2)


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


# A library among its photos, and later pages


@pytest.mark.parametrize("inside", ["", "thumbnails"])
def test_indexing_a_library_into_itself_is_one_line_and_changes_nothing(run, mine, inside):
    before = (mine / "CURRENT").read_bytes()
    line = error_of(run("index", mine / inside, "--data", mine), 2)
    assert "must lie outside the library" in line
    assert (mine / "CURRENT").read_bytes() == before


def test_page_2_starts_at_its_place_in_terminal_and_page(search, tmp_path):
    first = json.loads(search("red", "--per-page", 4, "--json").out)
    cursor = first["pagination"]["next_cursor"]
    done = search("--cursor", cursor, "--html", tmp_path / "page.html")
    assert re.findall(r"^ *(\d+) +\d\.\d{3} ", done.out, re.MULTILINE) == ["5", "6", "7", "8"]
    shown = (tmp_path / "page.html").read_text()
    assert re.findall(r"<b>(\d+)\.</b>", shown) == ["5", "6", "7", "8"]


def test_a_folder_that_shows_nothing_now_is_told_and_its_photos_stay(run, tmp_path):
    mosaic(tmp_path / "photos/a.png", 1)
    arguments = ("index", tmp_path / "photos", "--data", tmp_path / "data", "--model", "palette")
    assert run(*arguments).code == 0
    (tmp_path / "photos/a.png").unlink()
    done = run("index", "--data", tmp_path / "data")
    assert done.code == 0, done.err
    assert "photos shows no photo now; its photos are kept (--forget drops them)" in done.out
    assert "1 photos: 0 added, 0 removed" in done.out
