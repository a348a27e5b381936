"""A newcomer's source: one `Source` and one line in the registry, and its dumps are indexed."""

import json

import pytest
from PIL import Image

from searchlab.errors import InputError
from searchlab.photos.photo import credit_line
from searchlab.sources import SOURCES, find_source
from searchlab.sources.record import RawRecord, SourceRecord, check_record, five_links
from searchlab.sources.source import Source


def read_toy(values):
    entry = RawRecord(values)
    return check_record(
        SourceRecord(
            source="toy",
            source_photo_id=entry.text("id"),
            origin=("toy", entry.text("id")),
            image_url=entry.url("picture"),
            urls=five_links(full=entry.url("picture")),
            source_description=entry.text("words"),
            license_type="cc0",
            attribution=credit_line("Photo of ", ("Toy", "https://toy.example")),
        )
    )


TOY = Source(
    name="toy",
    title="Toy",
    home="https://toy.example",
    record=read_toy,
    records_at=("toys",),
    record_fields=("source_description",),
)


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    monkeypatch.setitem(SOURCES, "toy", TOY)


def test_its_dump_is_indexed_with_the_pictures_beside_it(run, tmp_path):
    entries = [
        {"id": name, "picture": f"https://toy.example/{name}.png", "words": f"a {name} toy"}
        for name in ("red", "blue")
    ]
    (tmp_path / "toy.jsonl").write_text("\n".join(map(json.dumps, entries)))
    for name in ("red", "blue"):
        Image.new("RGB", (40, 30), name).save(tmp_path / f"{name}.png")
    data = ["--data", tmp_path / "data"]
    done = run("index", "--source", "toy", tmp_path / "toy.jsonl", *data, "--model", "palette")
    assert done.code == 0, done.err
    page = json.loads(run("search", "blue", "--source", "toy", *data, "--json").out)["data"]
    assert [photo["source_photo_id"] for photo in page] == ["blue", "red"]
    assert page[0]["source_description"] == "a blue toy"
    assert page[0]["attribution"]["plain"] == "Photo of Toy"


def test_a_whole_answer_of_its_api_holds_its_records():
    assert TOY.entries({"toys": [{"id": 1}, {"id": 2}]}) == [{"id": 1}, {"id": 2}]


def test_it_is_listed_where_a_source_is_unknown(run, tmp_path):
    with pytest.raises(InputError, match="wordpress, toy, got 'toi'"):
        find_source("toi")
    dump = tmp_path / "toy.jsonl"
    dump.touch()
    assert "wordpress, toy, got 'toi'" in run("index", "--source", "toi", dump).err


def test_a_source_without_an_api_says_so_when_it_is_fetched_from(run, tmp_path):
    done = run("fetch", "toy", "--query", "x", "--out", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "searchlab: Toy must have a public API to be fetched from, and has none" in done.err


def test_an_installed_package_adds_a_source_by_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / "plugged_source.py").write_text("SOURCE = 'a source'\n")
    described = tmp_path / "plugged_source-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged-source\n")
    (described / "entry_points.txt").write_text(
        "[searchlab.sources]\nplugged = plugged_source:SOURCE\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert find_source("plugged") == "a source"
