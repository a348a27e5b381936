"""Recorded answers of the libraries, where SEARCHLAB_DATASETS has them: nothing is lost."""

import ast
import csv
import json
import os
from pathlib import Path

import pytest

from searchlab.photos.licenses import normal_license
from searchlab.photos.photo import web_url
from searchlab.sources import SOURCES
from searchlab.sources.dump import DumpRecord, read_api_answer, read_dump

FOLDER = Path(os.environ.get("SEARCHLAB_DATASETS", "nowhere")) / "upstream-records"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="SEARCHLAB_DATASETS has no records")

# File: photos in it. The other files of these folders are pieces of records.
ANSWERS = {
    "unsplash": {"unsplash/random_30.json": 30},
    "pexels": {"pexels/search_10.json": 10},
    "pixabay": {"pixabay/search.json": 20},
    "flickr": {
        "flickr/flickr_example_pretty.json": 30,
        "flickr/flickr_example_photo_list.json": 30,
        "flickr/image_data_complete_example.json": 1,
        "flickr/image_data_sub_provider_example.json": 1,
        "flickr/image_data_with_large_url_available.json": 1,
        "flickr/image_data_with_med_url_available.json": 1,
        "flickr/image_data_with_small_url_available.json": 1,
        "bulk/flickr_landscapes_ml5.jsonl": 3_943,
        "bulk/openimages_xm3600_attributions.csv": 3_600,
    },
    "wikimedia": {
        "wikimedia/image_data_example.json": 1,
        "wikimedia/response_large_0.json": 1,
        "wikimedia/response_large_1.json": 2,
        "wikimedia_commons_extmetadata/search_trimmed.json": 3,
    },
    "openverse": {"openverse/image_detail.json": 1, "openverse/search_trimmed.json": 6},
    "stocksnap": {
        "stocksnap/full_item.json": 1,
        "stocksnap/full_response.json": 40,
        "stocksnap/last_full_response.json": 25,
    },
    "rawpixel": {"rawpixel/public_domain_response.json": 2},
    "nasa": {"nasa_images/items.json": 100},
    "met": {
        "metropolitan_museum_of_art/sample_response.json": 3,
        "metropolitan_museum_of_art/sample_response_without_additional.json": 1,
    },
    "smithsonian": {
        "smithsonian/actual_record_data.json": 1,
        "smithsonian/sub_provider_example.json": 1,
    },
    "europeana": {
        "europeana/europeana_example.json": 27,
        "europeana/europeana_image_list.json": 27,
        "europeana/image_data_example.json": 1,
        "europeana/image_data_sub_provider_example.json": 1,
    },
    "wordpress": {"wordpress/full_item.json": 1},
}
CASES = [(name, file, n) for name, files in ANSWERS.items() for file, n in files.items()]
FOLDERS = {
    "unsplash": "unsplash",
    "pexels": "pexels",
    "pixabay": "pixabay",
    "flickr": "flickr",
    "wikimedia": "wikimedia",
    "stocksnap": "stocksnap",
    "rawpixel": "rawpixel",
    "met": "metropolitan_museum_of_art",
    "smithsonian": "smithsonian",
    "europeana": "europeana",
    "wordpress": "wordpress",
}


def assert_whole(record, name):
    assert record.source == name
    assert record.source_photo_id
    assert all(web_url(url) for url in (*record.urls.values(), record.source_image_url))
    assert normal_license(record.license_type) == record.license_type != ""
    assert record.attribution["html"]
    assert record.attribution["plain"]


@pytest.mark.parametrize(("name", "file", "n_photos"), CASES)
def test_every_photo_of_a_recorded_answer_is_read(name, file, n_photos):
    photos = list(read_dump(FOLDER / file, SOURCES[name]))
    assert [one for one in photos if not isinstance(one, DumpRecord)] == []
    assert len(photos) == n_photos
    for one in photos:
        assert_whole(one.record, name)
    assert len({one.record.source_photo_id for one in photos}) >= 0.99 * n_photos


def test_rows_of_inaturalists_open_data_are_read():
    # The one recorded answer that is a Python literal: rows as a database gave them.
    text = (FOLDER / "inaturalist/full_db_response.txt").read_text()
    [(rows,)] = ast.literal_eval(text.strip())
    photos = [one for _, one in read_api_answer("rows", rows, SOURCES["inaturalist"])]
    assert len(photos) == 34
    for one in photos:
        assert_whole(one.record, "inaturalist")
    assert sum(one.record.license_type == "cc-by-nc-4.0" for one in photos) == 30


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_pieces_of_records_are_read_or_refused_one_by_one(name):
    for path in sorted((FOLDER / FOLDERS[name]).glob("*.json")):
        entries = SOURCES[name].entries(json.loads(path.read_text()))
        photos = list(read_dump(path, SOURCES[name]))
        assert len(photos) == len(entries), path.name


def test_titles_names_and_pages_are_those_of_the_records():
    for entry in json.loads((FOLDER / "unsplash/random_30.json").read_text()):
        record = SOURCES["unsplash"].record(entry)
        assert record.photographer_full_name == entry["user"]["name"].strip()
        assert record.source_image_url == entry["links"]["html"]
        assert (record.width, record.height) == (entry["width"], entry["height"])
        assert record.blur_hash == entry["blur_hash"]
        assert record.uploaded_on == entry["created_at"][:10]
    with (FOLDER / "bulk/openimages_xm3600_attributions.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            record = SOURCES["flickr"].record(row)
            assert record.license_type == "cc-by-2.0"
            assert record.source_image_url.rstrip("/").endswith(record.source_photo_id)
            assert " ".join(record.photographer_full_name.split()) in record.attribution["plain"]


def test_licences_of_the_bulk_records_are_those_that_were_counted():
    counts = {}
    for one in read_dump(FOLDER / "bulk/flickr_landscapes_ml5.jsonl", SOURCES["flickr"]):
        counts[one.record.license_type] = counts.get(one.record.license_type, 0) + 1
    assert counts == {
        "cc-by-nc-sa-2.0": 792,
        "cc-by-nc-2.0": 508,
        "cc-by-nc-nd-2.0": 864,
        "cc-by-2.0": 763,
        "cc-by-sa-2.0": 781,
        "cc-by-nd-2.0": 182,
        "no-known-copyright": 1,
        "us-government-work": 1,
        "cc0": 21,
        "public-domain": 30,
    }
