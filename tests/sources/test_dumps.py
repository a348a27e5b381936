"""Dumps of upstream libraries: read line by line, merged, and indexed with the pictures at hand."""

import csv
import json
import tracemalloc

import pytest

from searchlab.errors import InputError
from searchlab.photos.sidecar import Skipped
from searchlab.sources import SOURCES, dump
from searchlab.sources.dump import DumpRecord, read_dump
from searchlab.sources.picture_store import PictureStore
from tests.support.upstream import INATURALIST, MET, OPEN_IMAGES, PEXELS, SMITHSONIAN, changed


def ids_in(path, name):
    return [
        entry.record.source_photo_id if isinstance(entry, DumpRecord) else entry.reason
        for entry in read_dump(path, SOURCES[name])
    ]


def pexels(number, **values):
    return changed(PEXELS, id=number, **values)


# -- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(json.dumps(pexels(n)) for n in (1, 2)),
        json.dumps({"photos": [pexels(1), pexels(2)]}),
        json.dumps([pexels(1), pexels(2)]),
        json.dumps({"photos": [pexels(1), pexels(2)]}, indent=2),
        json.dumps([pexels(1), pexels(2)], indent=1),
        "\n\n" + json.dumps({"photos": [pexels(1)]}) + "\r\n\n" + json.dumps([pexels(2)]) + "\n",
    ],
)
def test_records_and_whole_answers_are_read_from_lines_and_from_documents(tmp_path, text):
    path = tmp_path / "dump.jsonl"
    path.write_text(text)
    assert ids_in(path, "pexels") == ["1", "2"]


@pytest.mark.parametrize("entry", [INATURALIST, MET, SMITHSONIAN])
def test_entries_that_were_taken_apart_and_written_are_the_same_when_they_are_read(entry, tmp_path):
    name = {id(INATURALIST): "inaturalist", id(MET): "met"}.get(id(entry), "smithsonian")
    entries = SOURCES[name].entries(entry)
    path = tmp_path / "dump.jsonl"
    path.write_text("\n".join(map(json.dumps, entries)))
    assert ids_in(path, name) == [SOURCES[name].record(one).source_photo_id for one in entries]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])  # a spreadsheet writes a mark
def test_csv_has_a_record_a_row(tmp_path, encoding):
    path = tmp_path / "images.csv"
    with path.open("w", newline="", encoding=encoding) as file:
        rows = csv.DictWriter(file, OPEN_IMAGES)
        rows.writeheader()
        rows.writerow(OPEN_IMAGES)
        rows.writerow(changed(OPEN_IMAGES, Author='A "quoted",\nname', License="nonsense"))
    assert set(next(iter(dump._read_csv(path)))[1]) == set(OPEN_IMAGES)
    first, second = read_dump(path, SOURCES["flickr"])
    assert first.record.source_photo_id == "50000000003"
    assert "got 'nonsense'" in second.reason


def test_a_field_of_a_csv_without_end_is_one_problem(tmp_path):
    path = tmp_path / "images.csv"
    path.write_text("OriginalURL,License\n" + "x" * 200_000 + ",y\n")
    [problem] = read_dump(path, SOURCES["flickr"])
    assert "field larger than field limit" in problem.reason


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"\xff\xfe",
        b"null",
        b'"text"',
        b"7",
        b"[" * 100_000,
        b'{"id": ' + b"9" * 5_000 + b"}",
        b'{"id": 1, "src": {"original": "javascript:alert(1)"}}',
        b'{"photos": 7}',
    ],
)
def test_one_malformed_line_is_told_with_its_number_and_stops_nothing(tmp_path, line):
    path = tmp_path / "dump.jsonl"
    good = json.dumps(pexels(1)).encode()
    path.write_bytes(good + b"\n" + line + b"\n" + good.replace(b": 1,", b": 3,", 1))
    first, problem, last = read_dump(path, SOURCES["pexels"])
    assert (first.record.source_photo_id, last.record.source_photo_id) == ("1", "3")
    assert isinstance(problem, Skipped)
    assert problem.where == f"{path}:2"


def test_a_line_without_end_is_passed_over_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("searchlab.sources.dump.MAX_LINE_BYTES", 2_000)
    path = tmp_path / "dump.jsonl"
    good = json.dumps(pexels(1))
    path.write_text(good + "\n" + "x" * 3_000_000 + "\n" + good + "\n")
    tracemalloc.start()
    entries = list(read_dump(path, SOURCES["pexels"]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [isinstance(one, DumpRecord) for one in entries] == [True, False, True]
    assert peak < 2_000_000


@pytest.mark.slow
def test_a_long_dump_takes_no_more_memory_than_a_short_one(tmp_path):
    path = tmp_path / "dump.jsonl"
    line = json.dumps(pexels(1)) + "\n"
    peaks = []
    for n_lines in (100, 5_000):
        path.write_text(line * n_lines)
        tracemalloc.start()
        assert sum(1 for _ in read_dump(path, SOURCES["pexels"])) == n_lines
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000


def test_a_dump_that_is_not_there_or_empty(tmp_path):
    with pytest.raises(InputError, match="readable file"):
        list(read_dump(tmp_path / "none.jsonl", SOURCES["pexels"]))
    (tmp_path / "empty.jsonl").write_text("\n \n")
    assert list(read_dump(tmp_path / "empty.jsonl", SOURCES["pexels"])) == []


# -- pictures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["../outside.jpg", "/etc/passwd", "a\0b", "", 7, None])
def test_a_list_of_pictures_leads_to_nothing_outside_its_folder(tmp_path, file):
    (tmp_path / "outside.jpg").write_bytes(b"x")
    folder = tmp_path / "store"
    folder.mkdir()
    entry = {"source": "pexels", "source_photo_id": "1", "file": file, "url": "u"}
    lines = [json.dumps(entry), "[", json.dumps({"source": [1]}), '{"cut": "sho']
    (folder / "pictures.jsonl").write_text("\n".join(lines))
    assert PictureStore(folder).find(SOURCES["pexels"].record(pexels(1))) is None


def test_a_picture_is_found_by_the_id_of_its_record_escaped(tmp_path):
    store = PictureStore(tmp_path)
    hostile = SOURCES["pexels"].record(changed(PEXELS, id="../a/b"))
    assert store.find(hostile) is None
    (tmp_path / "..%2Fa%2Fb.jpg").write_bytes(b"x")
    assert store.find(hostile) is None  # hidden names are no pictures
    plain = SOURCES["pexels"].record(changed(PEXELS, id="a/b"))
    (tmp_path / "a%2Fb.png").write_bytes(b"x")
    assert store.find(plain) == tmp_path / "a%2Fb.png"
    (tmp_path / "a%2Fb.png").rename(tmp_path / "a%2Fb.JPG")  # as cameras name them
    assert store.find(plain) == tmp_path / "a%2Fb.JPG"
    (tmp_path / "pexels").mkdir()
    assert store.find(plain) is None  # where libraries have folders of their own
