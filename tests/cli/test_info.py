"""`searchlab info`: what a library holds, in lines and as JSON."""

import json

from tests.support import cli_world
from tests.support.cli_world import error_of

mine = cli_world.mine
whole = cli_world.whole


def test_a_library_says_what_it_holds(run, whole, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    done = run("info", "--data", whole / "data")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"library      {whole}/data"
    assert lines[1] == "photos       25, uploaded 2024-01-01 to 2024-01-25"
    assert f"folders      {whole}/photos: 25 photos of local" in lines
    assert "sources      pexels 13, unsplash 12" in lines
    assert "usernames    3 of photographers" in lines
    assert "problems     none" in lines


def test_problems_of_one_kind_are_one_line(run, mine, tmp_path):
    more = tmp_path / "more"
    more.mkdir()
    for number in range(3):
        (more / f"{number}.jpg").write_bytes(b"no picture")
    (more / "a\x1b[31m.jpg").write_bytes(b"no picture")
    assert run("index", more, "--data", mine).code == 0
    for name in ("a.MOV", "b.mov", "c.mov"):
        (more / name).write_bytes(b"no picture")
    assert run("index", "--data", mine).code == 0
    out = run("info", "--data", mine).out
    lines = out.partition("\nproblems")[2].splitlines()
    assert sum("3 files of kind .mov were skipped" in line for line in lines) == 1
    assert len(lines) == 5
    assert "\x1b" not in out
    assert len(run("info", "-v", "--data", mine).out.partition("\nproblems")[2].splitlines()) == 7


def test_json_holds_all_of_it(run, whole):
    record = json.loads(run("info", "--data", whole / "data", "--json").out)
    assert (record["n_photos"], record["roots"][0]["n_photos"]) == (25, 25)
    assert record["sizes"]["total"] > 0


def test_what_is_no_library_is_one_line(run, tmp_path):
    assert "searchlab index" in error_of(run("info", "--data", tmp_path), 2)
