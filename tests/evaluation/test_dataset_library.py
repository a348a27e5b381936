import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation.datasets import Dataset, LabelledQuery, read_dataset
from searchlab.evaluation.datasets.dataset_library import (
    dataset_library,
    describe_photos,
    open_dataset_library,
)
from searchlab.photos.photo import photo_id_of
from tests.support.metadata import in_languages, xmp

PALETTE = Config(model="palette")
SHADES = {"red": "#e50000", "green": "#15b01a", "blue": "#0343df"}


@pytest.fixture
def dataset(tmp_path):
    """Three photos in two folders, two of them with the same file name."""
    records = []
    for number, (name, shade) in enumerate(SHADES.items()):
        file = tmp_path / "photos" / str(number % 2) / f"{number // 2}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 24), shade).save(file)
        records.append(
            {
                "file": str(file),
                "source": "shades",
                "source_photo_id": name,
                "source_description": f"très {name}",
            }
        )
    queries = (LabelledQuery("q", "en", "graded", "red"),)
    qrels = {"q": {photo_id_of("shades", "red"): 1}}
    return Dataset("shades", "r1", tmp_path / "photos", None, queries, qrels, tuple(records))


def test_the_library_holds_just_the_photos_with_their_records(dataset, tmp_path):
    library = dataset_library(dataset, tmp_path / "cache", config=PALETTE)
    table = library.engine.table
    assert set(table.texts("photo_id")) == dataset.photo_ids
    assert set(table.texts("source_description")) == {f"très {name}" for name in SHADES}
    assert library.engine.config.model == "palette"
    assert describe_photos(table, dataset)["n_photos"] == 3


def test_photos_are_linked_not_copied_and_left_as_they_were(dataset, tmp_path):
    before = {path: path.read_bytes() for path in (tmp_path / "photos").rglob("*.png")}
    dataset_library(dataset, tmp_path / "cache", config=PALETTE)
    links = list((tmp_path / "cache").glob("*/links/*.png"))
    assert len(links) == 3
    assert {link.resolve() for link in links} == {path.resolve() for path in before}
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_datasets_of_the_same_photos_share_a_library(dataset, tmp_path):
    cache = tmp_path / "cache"
    one = dataset_library(dataset, cache, config=PALETTE)
    state = (one.folder / "CURRENT").read_text()
    other = replace(dataset, name="other", records=tuple(reversed(dataset.records)))
    two = dataset_library(other, cache, config=PALETTE)
    assert two.folder == one.folder
    assert (two.folder / "CURRENT").read_text() == state
    fewer = dataset_library(replace(dataset, records=dataset.records[:2]), cache, config=PALETTE)
    assert fewer.folder != one.folder
    assert len(fewer.engine.table) == 2


def test_a_photo_that_changed_is_taken_in_anew(dataset, tmp_path):
    cache = tmp_path / "cache"
    table = dataset_library(dataset, cache, config=PALETTE).engine.table
    before = describe_photos(table, dataset)
    file = Path(dataset.records[0]["file"])
    Image.new("RGB", (32, 24), "#888888").save(file)
    after = describe_photos(dataset_library(dataset, cache, config=PALETTE).engine.table, dataset)
    assert after["hash"] != before["hash"]
    assert after["n_photos"] == 3


def test_an_interrupted_start_is_gone_on_with(dataset, tmp_path):
    cache = tmp_path / "cache"
    folder = dataset_library(dataset, cache, config=PALETTE).folder.parent
    next((folder / "links").glob("*.png")).unlink()
    (folder / "links" / "photos.jsonl").write_text("")
    library = dataset_library(dataset, cache, config=PALETTE)
    assert set(library.engine.table.texts("photo_id")) == dataset.photo_ids
    lines = (folder / "links" / "photos.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["source_photo_id"] for line in lines} == set(SHADES)


def test_a_library_is_given_kept_or_gone_in_the_end(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_dataset_library(dataset, config=PALETTE) as library:
        temporary = library.folder
        with open_dataset_library(dataset, config=PALETTE, library=library) as opened:
            assert opened is library
        assert temporary.is_dir()
    assert not temporary.exists()
    with open_dataset_library(dataset, config=PALETTE, cache=tmp_path / "cache") as library:
        folder = library.folder
    assert folder.is_dir()


def test_photos_of_another_dataset_are_told_from_these(dataset, tmp_path):
    library = dataset_library(dataset, tmp_path / "cache", config=PALETTE)
    foreign = tuple({**record, "source": "elsewhere"} for record in dataset.records)
    qrels = {"q": {photo_id_of("elsewhere", "red"): 1}}
    with pytest.raises(InputError, match="got none of its 3 among 3"):
        describe_photos(library.engine.table, replace(dataset, records=foreign, qrels=qrels))


def test_what_lies_beside_a_picture_as_xmp_is_read_and_part_of_the_revision(folder_of_one):
    folder, picture = folder_of_one
    bare = read_dataset(folder)
    beside = picture.with_suffix(".xmp")
    beside.write_bytes(xmp(in_languages("dc:title", x_default="The coast")))
    dataset = read_dataset(folder)
    assert dataset.revision != bare.revision
    library = dataset_library(dataset, folder / "cache", config=PALETTE)
    assert list(library.engine.table.texts("title")) == ["The coast"]


@pytest.fixture
def folder_of_one(tmp_path):
    picture = tmp_path / "own" / "IMG_1.png"
    picture.parent.mkdir()
    Image.new("RGB", (32, 24), "#e50000").save(picture)
    (picture.parent / "photos.jsonl").write_text('{"file": "IMG_1.png"}\n')
    (picture.parent / "queries.tsv").write_text("query_id\tlang\ttext\nq\ten\tthe coast\n")
    (picture.parent / "qrels.tsv").write_text("query_id\tphoto_id\trelevance\nq\tIMG_1.png\t1\n")
    return picture.parent, picture
