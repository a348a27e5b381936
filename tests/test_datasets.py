import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from searchlab.datasets import (
    DATASETS,
    Dataset,
    LabelledQuery,
    bundled_root,
    external_root,
    language_tag,
    load_dataset,
)
from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.photos import photo_id_of

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


@pytest.fixture
def tiny(tmp_path: Path) -> Dataset:
    return Dataset(
        name="tiny",
        revision="0" * 12,
        folder=tmp_path,
        photos=None,
        queries=(
            LabelledQuery("q1", "en", "label", "A frog."),
            LabelledQuery("q2", "de", "alt", "Ein Frosch"),
        ),
        qrels={"q1": {photo_id_of("pond", "a"): 1}, "q2": {photo_id_of("pond", "b"): 2}},
        records=(
            {"source": "pond", "source_photo_id": "a"},
            {"source": "pond", "source_photo_id": "b"},
        ),
    )


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


def test_withheld_follows_the_kinds_of_the_queries(demo):
    assert demo.select(kinds=["label"]).withheld == {"source_description", "title"}
    assert demo.select(kinds=["alt"]).withheld == {"alt_description"}
    assert demo.withheld == {"source_description", "title", "alt_description"}


def test_revision_is_stable_and_changes_with_the_queries(demo):
    assert re.fullmatch(r"[0-9a-f]{12}", demo.revision)
    assert load_dataset("demo").revision == demo.revision
    assert demo.select(kinds=["alt"]).revision != demo.revision


def test_sample_is_repeatable_and_grows(demo):
    small = demo.sample(["en", "zh-CN"], 5, 0)
    assert Counter(query.lang for query in small.queries) == {"en": 5, "zh-CN": 5}
    assert small == demo.sample(["zh-CN", "en"], 5, 0)
    assert set(small.queries) < set(demo.sample(["en", "zh-CN"], 9, 0).queries)
    assert set(small.queries) != set(demo.sample(["en", "zh-CN"], 5, 1).queries)
    assert small.qrels.keys() == {query.query_id for query in small.queries}


def test_sample_refuses_an_unknown_language(demo):
    with pytest.raises(InputError, match="languages must be among"):
        demo.sample(["xx"], 5, 0)


def test_select_refuses_to_leave_nothing(tiny):
    with pytest.raises(InputError, match="must have queries and qrels"):
        tiny.select(languages=["fr"])


def test_empty_qrels_are_refused(tiny):
    with pytest.raises(InputError, match="must have queries and qrels, got none"):
        replace(tiny, qrels={})


def test_duplicate_query_ids_are_refused(tiny):
    with pytest.raises(InputError, match="have every query_id once, got 'q1'"):
        replace(tiny, queries=(*tiny.queries, tiny.queries[0]))


def test_unknown_photos_are_refused(tiny):
    with pytest.raises(InputError, match="judge known photos only, got 'nobody'"):
        replace(tiny, qrels={**tiny.qrels, "q1": {"nobody": 1}})


def test_judgments_of_unknown_queries_are_refused(tiny):
    with pytest.raises(InputError, match="judge known queries only, got 'q3'"):
        replace(tiny, qrels={**tiny.qrels, "q3": {photo_id_of("pond", "a"): 1}})


@pytest.mark.parametrize("grades", [{}, {photo_id_of("pond", "a"): 0}])
def test_queries_without_a_relevant_photo_are_refused(tiny, grades):
    with pytest.raises(InputError, match="have a relevant photo for every query, got 'q2'"):
        replace(tiny, qrels={**tiny.qrels, "q2": grades})


def test_unknown_kinds_are_refused(tiny):
    with pytest.raises(InputError, match="'guess'"):
        replace(tiny, queries=(tiny.queries[0], replace(tiny.queries[1], kind="guess")))


def test_an_unknown_dataset_lists_the_known():
    with pytest.raises(NotFoundError, match="one of demo, flickr8k, flickr8k-captions, stamps"):
        load_dataset("imagenet")


@pytest.mark.parametrize("name", sorted(DATASETS.keys() - {"demo"}))
def test_absent_datasets_say_what_to_set(monkeypatch, tmp_path, name):
    monkeypatch.delenv("SEARCHLAB_DATASETS", raising=False)
    assert external_root() is None
    with pytest.raises(NotFoundError, match="set SEARCHLAB_DATASETS to a folder that holds"):
        load_dataset(name)
    monkeypatch.setenv("SEARCHLAB_DATASETS", str(tmp_path))
    assert external_root() == tmp_path
    with pytest.raises(NotFoundError, match="SEARCHLAB_DATASETS must be a folder"):
        load_dataset(name)


@pytest.fixture
def flickr8k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "flickr8k"
    (folder / "images").mkdir(parents=True)
    for name in "ab":
        (folder / f"images/{name}.jpg").write_bytes(name.encode())
    (folder / "photos.tsv").write_text(
        "photo_id\tfile\tsplit\tsource_url\n"
        "a\timages/a.jpg\ttest\thttps://example.org/a\n"
        "b\timages/b.jpg\ttest\thttps://example.org/b\n"
        "c\timages/c.jpg\ttrain\thttps://example.org/c\n",
        encoding="utf-8",
    )
    (folder / "graded_queries.tsv").write_text(
        "query_id\tlang\torigin_photo_id\ttext\tjudged_as\n"
        'a#en\ten\ta\tA "dog" .\ta#en\na#zh\tzh\ta\t狗\ta#en\n',
        encoding="utf-8",
    )
    (folder / "graded_qrels.tsv").write_text(
        "judged_as\tphoto_id\tgrade\na#en\ta\t3\na#en\tb\t0\n", encoding="utf-8"
    )
    (folder / "captions.tsv").write_text(
        "caption_id\tphoto_id\tlang\tkind\tidx\ttext\tsource\n"
        "a#en\ta\ten\twritten\t0\tA dog .\tx\nc#en\tc\ten\twritten\t0\tA cat .\tx\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("SEARCHLAB_DATASETS", str(tmp_path))
    return folder


def test_flickr8k_searches_the_test_split_and_shares_judgments_between_languages(flickr8k):
    dataset = load_dataset("flickr8k")
    assert dataset.photo_ids == {photo_id_of("flickr", "a"), photo_id_of("flickr", "b")}
    assert dataset.qrels["a#zh"] == {photo_id_of("flickr", "a"): 3, photo_id_of("flickr", "b"): 0}
    assert dataset.languages == ("en", "zh")
    assert dataset.queries[0].text == 'A "dog" .'
    assert dataset.withheld == frozenset()


def test_flickr8k_captions_find_their_own_photo(flickr8k):
    dataset = load_dataset("flickr8k-captions")
    assert dataset.qrels == {"a#en": {photo_id_of("flickr", "a"): 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("something\nelse\n", "KeyError: 'grade'"),
        ("judged_as\tphoto_id\tgrade\na#en\ta\n", "graded_qrels.tsv:2 has 2 columns"),
        ("judged_as\tphoto_id\tgrade\na#en\ta\thigh\n", "'high'"),
        ("judged_as\tphoto_id\tgrade\na#en\tz\t1\n", "judge known photos only"),
        ("", "graded_qrels.tsv has no header"),
        ("\ud800", "UnicodeDecodeError"),
    ],
)
def test_a_damaged_dataset_names_itself(flickr8k, text, message):
    (flickr8k / "graded_qrels.tsv").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(DataError, match=f"'flickr8k' are damaged, got .*{message}.*; fetch them"):
        load_dataset("flickr8k")


@pytest.mark.parametrize("name", ["images/a.jpg", "graded_queries.tsv"])
def test_a_dataset_that_lacks_a_file_names_the_file(flickr8k, name):
    (flickr8k / name).unlink()
    with pytest.raises(DataError, match=f"are damaged, got FileNotFoundError: .*{name}"):
        load_dataset("flickr8k")


@pytest.mark.parametrize(
    ("locale", "tag"),
    [
        ("de", "de"),
        ("zh_CN", "zh-CN"),
        ("sr@latin", "sr-Latn"),
        ("sr@ijekavianlatin", "sr-Latn-ijekavsk"),
        ("ca@valencia", "ca-valencia"),
    ],
)
def test_language_tags(locale, tag):
    assert language_tag(locale) == tag
