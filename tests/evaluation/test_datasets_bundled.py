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
from searchlab.errors import InputError
from searchlab.evaluation.datasets import NO_LANGUAGE, Dataset, bundled_root
from searchlab.photos.photo import photo_id_of
from tests.support.bundled import bundled

pytestmark = pytest.mark.slow
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
    "tags",
}


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return bundled("demo")


@pytest.fixture(scope="module")
def names() -> Dataset:
    return bundled("demo-names")


def test_demo_has_602_photos_of_exactly_ten_sources():
    assert Counter(record["source"] for record in RECORDS) == {
        "gcompris-qt-data": 253,
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
        "label": 24_583,
        "title": 3_564,
        "category": 350,
        "alt": 53,
        "everyday": 27,
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
    name = next(record["file"] for record in RECORDS if record["source"] == "tuxpaint-stamps")
    data = io.BytesIO((DEMO / name).read_bytes())
    image = Image.open(data)
    corner = next(
        (x, y)
        for x in (0, image.width - 1)
        for y in (0, image.height - 1)
        if image.getpixel((x, y))[3] == 0
    )
    assert min(image.convert("RGB").getpixel(corner)) > 240


def test_pictures_stay_below_25_megabytes():
    assert sum(path.stat().st_size for path in (DEMO / "images").iterdir()) < 25e6


def test_every_licence_has_its_text():
    licences = {record["license_type"] for record in RECORDS}
    assert licences <= {path.stem for path in (DEMO / "licences").iterdir()}
    assert "gpl-3.0.txt" in {path.name for path in (DEMO / "licences").iterdir()}  # LGPL-3 needs it
    assert len(licences) == 14


def test_licence_table_of_the_readme_counts_the_records():
    rows = re.findall(
        r"^\| ([\w.-]+) \| (\d+) \| \w+", (DEMO / "README.md").read_text("utf-8"), re.M
    )
    counts = Counter(record["license_type"] for record in RECORDS)
    assert {name: int(n) for name, n in rows if name in counts} == counts


def test_hand_written_lists_name_known_photos():
    known = {record["source_photo_id"] for record in RECORDS}
    lists = ("credits.tsv", "dropped_labels.tsv", "dropped_titles.tsv", "kinds.tsv", "eye.tsv")
    for name in lists:
        with (DEMO / name).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
        assert {row["source_photo_id"] for row in rows} <= known


def test_labels_that_are_no_search_or_name_something_else_are_no_queries(demo):
    texts = {(query.lang, query.text) for query in demo.queries}
    assert texts.isdisjoint({("en", "Eat your broccoli!"), ("en", "Boom!!!"), ("de", "Bumm!!!")})
    (yam,) = (query for query in demo.queries if (query.lang, query.text) == ("id", "Ketela."))
    named = {demo_id for demo_id, grade in demo.qrels[yam.query_id].items() if grade}
    assert photo_id_of("tuxpaint-stamps", "tux-animals-mammals-bovines-yak") not in named


def test_judgments_speak_of_photos_of_the_dataset(demo):
    judged = {photo_id for grades in demo.qrels.values() for photo_id in grades}
    assert judged <= demo.photo_ids
    assert len(demo.photo_ids) == 602


def test_texts_of_one_language_are_distinct(demo):
    assert len({(query.lang, query.text) for query in demo.queries}) == len(demo.queries)


def test_every_alt_text_finds_its_own_photo(demo):
    texts = {r["alt_description"]: photo_id_of(r["source"], r["source_photo_id"]) for r in RECORDS}
    for query in demo.select(kinds=["alt"]).queries:
        assert texts[query.text] in demo.qrels[query.query_id]


# -- where judgments come from ----------------------------------------------------------------


def ask(dataset, text, lang="en"):
    """Return the judgments of the query with a text."""
    (query,) = [q for q in dataset.queries if (q.lang, q.text) == (lang, text)]
    return dataset.qrels[query.query_id], dataset.origins[query.query_id]


def named(source_photo_id, source="tuxpaint-stamps"):
    return photo_id_of(source, source_photo_id)


def test_every_judgment_has_one_of_four_origins(demo):
    assert set(demo.judged_by) == {"category", "eye", "kind", "name"}
    pairs = {(i, photo) for i, grades in demo.qrels.items() for photo in grades}
    assert pairs == {(i, photo) for i, origins in demo.origins.items() for photo in origins}


@pytest.mark.parametrize(("text", "lang"), [("bird", "en"), ("un oiseau", "fr"), ("Птицы", "ru")])
def test_a_hen_counts_for_a_bird_in_every_language(demo, text, lang):
    grades, origins = ask(demo, text, lang)
    hens = [named("tux-animals-birds-hen"), named("gcompris-farm-chicken", "gcompris-qt-data")]
    assert [grades[hen] for hen in hens] == [1, 1]
    assert {origins[hen] for hen in hens} == {"kind"}
    assert named("tux-food-fruit-kiwi") not in grades


def test_a_label_counts_kinds_of_the_thing_and_not_what_it_is_a_kind_of(demo):
    bears, _ = ask(demo, "A bear.")
    assert named("gcompris-world-polar-bear", "gcompris-qt-data") in bears
    assert named("tux-animals-mammals-bears-toys-edward-bear") not in bears
    polar, _ = ask(demo, "Polar bear")
    assert set(polar) == {named("gcompris-world-polar-bear", "gcompris-qt-data")}


def test_a_label_that_says_more_than_a_kind_counts_its_own_photo_alone(demo):
    origins = ask(demo, "A great blue heron.")[1]
    assert set(origins.values()) == {"name"}
    assert len(ask(demo, "A brown hen.")[0]) == 1


def test_categories_are_those_of_gcompris(demo):
    grades, origins = ask(demo, "Monuments")
    assert Counter(origins.values()) == {"category": 70}
    assert named("gcompris-france-eiffeltower", "gcompris-qt-data") in grades


def test_for_everyday_queries_every_photo_was_looked_at(demo):
    everyday = bundled("demo-everyday")
    assert len(everyday.queries) == 27
    assert {len(grades) for grades in everyday.qrels.values()} == {602}
    assert {grade for grades in everyday.qrels.values() for grade in grades.values()} == {0, 2, 3}
    assert everyday.withheld == frozenset()
    assert set(everyday.judged_by) == {"eye"}
    assert everyday.judged_by["eye"] == demo.judged_by["eye"]


def test_names_alone_are_the_known_items_of_before(demo, names):
    assert set(names.judged_by) == {"name"}
    assert {len(ask(names, text)[0]) for text in ("A bear.", "An owl.", "A brown hen.")} == {1}
    assert names.judged_by["name"] == demo.judged_by["name"]


def test_a_part_counts_its_own_judgments(demo):
    part = demo.sample(["de"], 5, seed=0)
    assert sum(part.judged_by.values()) == sum(len(grades) for grades in part.qrels.values())


def test_an_origin_that_no_judgment_has_is_refused(demo):
    with pytest.raises(InputError, match=r"origins must be some of those of 'demo', category, eye"):
        demo.only_judged_by("mine", ["hearsay"])


# -- what is made of the bundled dataset ------------------------------------------------------


@pytest.fixture(scope="module")
def alike() -> Dataset:
    return bundled("demo-similar")


@pytest.fixture(scope="module")
def both() -> Dataset:
    return bundled("demo-steered")


def test_revisions_that_are_quoted_stay(demo, alike, both):
    assert demo.revision == "d0981d0e86f2"
    assert demo_queries(demo).revision == "1791cc416656"
    assert alike.revision == "433eb27fe864"
    assert both.revision == "5345d3f8d908"


def test_photos_of_a_name_find_each_other(demo, alike):
    assert alike.task == "photo"
    assert alike.languages == (NO_LANGUAGE,)
    assert alike.withheld == {"source_description", "title"}
    assert alike.photo_ids == demo.photo_ids
    for query_id, grades in alike.qrels.items():
        assert all(alike.qrels[other][query_id] == grade for other, grade in grades.items())
        assert set(grades.values()) <= {1, 2, 3}


def test_how_alike_photos_are_is_the_share_of_languages_that_give_them_a_name_in_common(
    names, alike
):
    asked = {photo_id: set() for photo_id in names.photo_ids}
    for query in names.select(kinds=["label", "title"]).queries:
        for photo_id in names.qrels[query.query_id]:
            asked[photo_id].add((query.lang, query.query_id))
    langs = {photo_id: {lang for lang, _ in pairs} for photo_id, pairs in asked.items()}
    grades = {}
    for one, other in permutations(sorted(names.photo_ids), 2):
        common = {lang for lang, _ in asked[one] & asked[other]}
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
    assert pairs["A rose.", "A flower."] == 3


def test_a_steered_query_brings_one_of_its_photos_and_looks_for_the_others(names, both):
    texts = {query.query_id: query.text for query in names.queries}
    assert both.task == "photo+text"
    assert {q.query_id for q in both.queries} == {i for i, g in names.qrels.items() if len(g) >= 2}
    for query in both.queries:
        assert query.text == texts[query.query_id]
        assert both.qrels[query.query_id] | {query.photo_id: 1} == names.qrels[query.query_id]


def test_translations_that_mean_the_same_photos_are_asked_with_the_same_one(both):
    references = {}
    for query in both.queries:
        photos = frozenset({query.photo_id, *both.qrels[query.query_id]})
        references.setdefault(photos, set()).add(query.photo_id)
    assert {len(photo_ids) for photo_ids in references.values()} == {1}
    assert max(len(both.qrels[query.query_id]) for query in both.queries) == 33


def test_references_are_not_always_the_first_photo(both):
    first = [query.photo_id < min(both.qrels[query.query_id]) for query in both.queries]
    assert 0.2 < sum(first) / len(first) < 0.8
