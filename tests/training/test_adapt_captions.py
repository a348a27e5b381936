"""Captions that models are adapted by: read from files, and from what a library knows."""

import json
from pathlib import Path

import pytest

from searchlab.errors import InputError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.photos.sidecar import Skipped
from searchlab.training.adapt.captions import PhotoCaption, library_captions, read_captions
from tests.support.metadata import in_languages, xmp


def test_reads_tab_separated_captions_with_and_without_language(tmp_path):
    file = tmp_path / "c.tsv"
    file.write_text("file\tcaption\tlang\na.jpg\tA  dog\ten\n\nsub/b.jpg\tEin Hund\n", "utf-8")
    assert list(read_captions(file)) == [
        (tmp_path / "a.jpg", PhotoCaption("A dog", "en")),
        (tmp_path / "sub/b.jpg", PhotoCaption("Ein Hund", "")),
    ]


def test_reads_json_lines_with_one_or_several_captions(tmp_path):
    file = tmp_path / "c.jsonl"
    lines = [
        {"file": "a.jpg", "caption": "一只狗", "lang": "zh"},
        {"file": "/b.jpg", "captions": ["one", "two"]},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert list(read_captions(file)) == [
        (tmp_path / "a.jpg", PhotoCaption("一只狗", "zh")),
        (Path("/b.jpg"), PhotoCaption("one", "")),
        (Path("/b.jpg"), PhotoCaption("two", "")),
    ]


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("c.tsv", b"a.jpg", "1 columns"),
        ("c.tsv", b"a.jpg\tb\tc\td", "4 columns"),
        ("c.tsv", b"a.jpg\t   ", "got 0"),
        ("c.tsv", b"a.jpg\t" + b"x" * 3000, "got 3000"),
        ("c.tsv", b"a\x00.jpg\tdog", "without NUL"),
        ("c.jsonl", b'{"file": "a\\ud83d.jpg", "caption": "dog"}', "in Unicode"),
        ("c.tsv", b"a.jpg\t\xff\xfe", "decode"),
        ("c.jsonl", b"[1]", "JSON object"),
        ("c.jsonl", b'{"file": "a"}', "'caption'"),
        ("c.jsonl", b'{"file": "a", "captions": "dog"}', "list of texts"),
        ("c.jsonl", b'{"file": "a", "caption": 3}', "must be texts"),
        ("c.jsonl", b'{"file": "", "caption": "dog"}', "must be a path"),
    ],
)
def test_a_line_that_cannot_be_used_is_reported_and_skipped(tmp_path, name, line, reason):
    good = b"b.jpg\tdog" if name.endswith("tsv") else b'{"file": "b.jpg", "caption": "dog"}'
    file = tmp_path / name
    file.write_bytes(line + b"\n" + good)
    bad, used = read_captions(file)
    assert isinstance(bad, Skipped)
    assert bad.where == f"{file}:1"
    assert reason in bad.reason
    assert used == (tmp_path / "b.jpg", PhotoCaption("dog", ""))


def test_a_caption_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"must be a \.tsv or \.jsonl file"):
        list(read_captions(tmp_path / "c.csv"))
    with pytest.raises(InputError, match="can be read"):
        list(read_captions(tmp_path / "c.tsv"))


def test_a_library_tells_what_people_wrote_and_nothing_generated(tmp_path, make_picture):
    make_picture(tmp_path / "photos/a.png")
    make_picture(tmp_path / "photos/b.png", "#0343df")
    record = {"file": "a.png", "title": "Sunset", "alt_description": "a red sky"}
    record["source_description"] = "Sunset"
    (tmp_path / "photos/photos.jsonl").write_text(json.dumps(record))
    library = create_library(tmp_path / "library")
    index_photos(library, [tmp_path / "photos"], model="palette")
    (photo,) = library_captions(library)
    assert photo.file.name == "a.png"
    assert photo.captions == (PhotoCaption("Sunset", ""), PhotoCaption("a red sky", ""))


def test_what_a_photo_program_wrote_beside_the_photo_is_taken_too(tmp_path, make_picture):
    make_picture(tmp_path / "photos/a.png")
    (tmp_path / "photos/a.xmp").write_bytes(xmp(in_languages("dc:title", x_default="Ebb  tide")))
    library = create_library(tmp_path / "library")
    index_photos(library, [tmp_path / "photos"], model="mini")
    (photo,) = library_captions(library)
    assert photo.captions == (PhotoCaption("Ebb tide", ""),)
