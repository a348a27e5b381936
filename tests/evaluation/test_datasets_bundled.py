"""The dataset that ships: its files, and the datasets that are made of it."""

import csv
import io
import json
import re
from collections import Counter
from itertools import permutations

import pytest
from PIL import Image

from searchlab.cli.demo import demo_queries
from searchlab.evaluation.datasets import NO_LANGUAGE, Dataset, bundled_root, load_dataset
from searchlab.photos.photo import photo_id_of

DEMO = bundled_root() / "demo"
RECORDS = [json.loads(line) for line in (DEMO / "photos.jsonl").read_text("utf-8").splitlines()]
KEYS = {
    "file",
    "source",
    "source_photo_id",
    "source_image_url",
    "photographer_username",
    "photographer_full_name",
    "photographer_url",
    "source_description",
    "alt_description",
    "license_type",
    "license_url",
    "uploaded_on",
    "title",
}


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return load_dataset("demo")


def test_demo_has_349_photos_of_exactly_nine_sources():
    assert Counter(record["source"] for record in RECORDS) == {
        "libjxl-testdata": 5,
        "lomiri-wallpapers-16.04": 13,
        "lomiri-wallpapers-20.04": 1,
        "mate-backgrounds": 12,
        "palapeli-data": 5,
        "plasma-workspace-wallpapers": 10,
        "scikit-image": 5,
        "scikit-learn": 2,
        "tuxpaint-stamps": 296,
    }


def test_demo_queries_by_kind(demo):
    assert Counter(query.kind for query in demo.queries) == {
        "label": 18_066,
        "title": 935,
        "alt": 53,
    }
    assert len(demo.languages) == 114


def test_every_record_has_every_key_and_what_credit_needs():
    assert {frozenset(record) for record in RECORDS} == {frozenset(KEYS)}
    needed = ("photographer_full_name", "license_type", "license_url", "title")
    assert not [r["file"] for r in RECORDS if not all(r[name] for name in needed)]
    assert not [r["file"] for r in RECORDS if not r["source_image_url"].startswith("http")]
    dates = {record["uploaded_on"] for record in RECORDS} - {None}
    assert not [date for date in dates if not re.fullmatch(r"\d{4}-\d\d-\d\d", date)]


def test_every_picture_decodes_and_none_is_left_over():
    on_disk = {f"images/{path.name}" for path in (DEMO / "images").iterdir()}
    assert on_disk == {record["file"] for record in RECORDS}
    for name in on_disk:
        with Image.open(DEMO / name) as image:
            image.load()
            assert max(image.size) <= 1024
            assert image.format == ("JPEG" if name.endswith(".jpg") else "WEBP")
            assert not image.getexif()
            assert "icc_profile" not in image.info


def test_a_reader_without_transparency_sees_white_around_a_stamp():
    name = next(record["file"] for record in RECORDS if record["file"].endswith(".webp"))
    data = io.BytesIO((DEMO / name).read_bytes())
    image = Image.open(data)
    corner = next(
        (x, y)
        for x in (0, image.width - 1)
        for y in (0, image.height - 1)
        if image.getpixel((x, y))[3] == 0
    )
    assert min(image.convert("RGB").getpixel(corner)) > 240


def test_pictures_stay_below_20_megabytes():
    assert sum(path.stat().st_size for path in (DEMO / "images").iterdir()) < 20e6


def test_every_licence_has_its_text():
    licences = {record["license_type"] for record in RECORDS}
    assert licences <= {path.stem for path in (DEMO / "licences").iterdir()}
    assert "gpl-3.0.txt" in {path.name for path in (DEMO / "licences").iterdir()}  # LGPL-3 needs it
    assert len(licences) == 13


def test_licence_table_of_the_readme_counts_the_records():
    rows = re.findall(
        r"^\| ([\w.-]+) \| (\d+) \| \w+", (DEMO / "README.md").read_text("utf-8"), re.M
    )
    counts = Counter(record["license_type"] for record in RECORDS)
    assert {name: int(n) for name, n in rows if name in counts} == counts


def test_hand_written_lists_name_known_photos():
    known = {record["source_photo_id"] for record in RECORDS}
    for name in ("credits.tsv", "dropped_titles.tsv"):
        with (DEMO / name).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
        assert {row["source_photo_id"] for row in rows} <= known


def test_judgments_speak_of_photos_of_the_dataset(demo):
    judged = {photo_id for grades in demo.qrels.values() for photo_id in grades}
    assert judged <= demo.photo_ids
    assert len(demo.photo_ids) == 349


def test_texts_of_one_language_are_distinct(demo):
    assert len({(query.lang, query.text) for query in demo.queries}) == len(demo.queries)


def test_every_alt_text_finds_its_own_photo(demo):
    texts = {r["alt_description"]: photo_id_of(r["source"], r["source_photo_id"]) for r in RECORDS}
    for query in demo.select(kinds=["alt"]).queries:
        assert texts[query.text] in demo.qrels[query.query_id]


# -- what is made of the bundled dataset ------------------------------------------------------


@pytest.fixture(scope="module")
def alike() -> Dataset:
    return load_dataset("demo-similar")


@pytest.fixture(scope="module")
def both() -> Dataset:
    return load_dataset("demo-steered")


@pytest.mark.slow
def test_revisions_that_are_quoted_stay(demo, alike, both):
    assert demo.revision == "68e087cbaa90"
    assert demo_queries(demo).revision == "a8aeee4d804e"
    assert alike.revision == "f998e2a463ed"
    assert both.revision == "9f2ed9715cfd"


def test_photos_of_a_name_find_each_other(demo, alike):
    assert alike.task == "photo"
    assert alike.languages == (NO_LANGUAGE,)
    assert alike.withheld == {"source_description", "title"}
    assert alike.photo_ids == demo.photo_ids
    for query_id, grades in alike.qrels.items():
        assert all(alike.qrels[other][query_id] == grade for other, grade in grades.items())
        assert set(grades.values()) <= {1, 2, 3}


def test_how_alike_photos_are_is_the_share_of_languages_that_give_them_a_name_in_common(
    demo, alike
):
    named = {photo_id: set() for photo_id in demo.photo_ids}
    for query in demo.select(kinds=["label", "title"]).queries:
        for photo_id in demo.qrels[query.query_id]:
            named[photo_id].add((query.lang, query.query_id))
    langs = {photo_id: {lang for lang, _ in names} for photo_id, names in named.items()}
    grades = {}
    for one, other in permutations(sorted(demo.photo_ids), 2):
        common = {lang for lang, _ in named[one] & named[other]}
        share = len(common) / max(1, len(langs[one] & langs[other]))
        if len(common) >= 2:
            grade = 3 if share >= 0.5 else 2 if share >= 0.1 else 1
            grades.setdefault(one, {})[other] = grade
    assert alike.qrels == grades


def test_a_slip_of_one_translator_makes_no_two_photos_alike(alike):
    titles = {photo_id_of(r["source"], r["source_photo_id"]): r["title"] for r in RECORDS}
    pairs = {
        (titles[one], titles[other]): grade
        for one, grades in alike.qrels.items()
        for other, grade in grades.items()
    }
    assert ("A cow.", "A crow.") not in pairs
    assert pairs["A cow.", "A cow."] == 3
    assert pairs["A drake.", "A duck."] == 2
    assert pairs["A rose.", "A flower."] == 1


def test_a_steered_query_brings_one_of_its_photos_and_looks_for_the_others(demo, both):
    texts = {query.query_id: query.text for query in demo.queries}
    assert both.task == "photo+text"
    assert {q.query_id for q in both.queries} == {i for i, g in demo.qrels.items() if len(g) >= 2}
    for query in both.queries:
        assert query.text == texts[query.query_id]
        assert both.qrels[query.query_id] | {query.photo_id: 1} == demo.qrels[query.query_id]


def test_translations_that_mean_the_same_photos_are_asked_with_the_same_one(both):
    references = {}
    for query in both.queries:
        photos = frozenset({query.photo_id, *both.qrels[query.query_id]})
        references.setdefault(photos, set()).add(query.photo_id)
    assert {len(photo_ids) for photo_ids in references.values()} == {1}
    assert max(len(both.qrels[query.query_id]) for query in both.queries) == 8


def test_references_are_not_always_the_first_photo(both):
    first = [query.photo_id < min(both.qrels[query.query_id]) for query in both.queries]
    assert 0.2 < sum(first) / len(first) < 0.8
