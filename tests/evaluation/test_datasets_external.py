"""Datasets by name: those whose photos lie elsewhere, and what damaged files say."""

from pathlib import Path

import pytest

from searchlab.errors import DataError, NotFoundError
from searchlab.evaluation.datasets import (
    DATASETS,
    NO_LANGUAGE,
    external_root,
    language_tag,
    load_dataset,
)
from searchlab.photos.photo import photo_id_of


def test_an_unknown_dataset_lists_the_known():
    with pytest.raises(
        NotFoundError, match=r"one of coco-judge, demo, demo-everyday, .*, web-judge, or a folder"
    ):
        load_dataset("imagenet")


@pytest.mark.parametrize("name", [name for name in sorted(DATASETS) if "demo" not in name])
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
    (folder / "image_qrels.tsv").write_text(
        "query_photo_id\tphoto_id\tgrade\na\tb\t2\nb\ta\t1\n", encoding="utf-8"
    )
    monkeypatch.setenv("SEARCHLAB_DATASETS", str(tmp_path))
    return folder


def test_words_find_the_photos_whose_writers_use_them(flickr8k):
    dataset = load_dataset("flickr8k-words")
    assert [query.text for query in dataset.queries] == ["dog"]
    assert dataset.qrels[dataset.queries[0].query_id] == {photo_id_of("flickr", "a"): 1}


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


def test_flickr8k_similar_asks_photos_that_most_judges_found_another_for(flickr8k):
    dataset = load_dataset("flickr8k-similar")
    assert dataset.task == "photo"
    assert [query.photo_id for query in dataset.queries] == [photo_id_of("flickr", "a")]
    assert dataset.qrels == {"a": {photo_id_of("flickr", "b"): 2}}


def test_flickr8k_steered_leaves_a_photo_to_find_that_most_judges_accept(flickr8k):
    with pytest.raises(DataError, match="'flickr8k-steered' must have queries and qrels"):
        load_dataset("flickr8k-steered")
    (flickr8k / "graded_qrels.tsv").write_text(
        "judged_as\tphoto_id\tgrade\na#en\ta\t3\na#en\tb\t2\n", encoding="utf-8"
    )
    dataset = load_dataset("flickr8k-steered")
    photos = {photo_id_of("flickr", "a"): 3, photo_id_of("flickr", "b"): 2}
    english, chinese = dataset.queries
    assert english.photo_id == chinese.photo_id in photos
    assert dataset.qrels["a#en"] | {english.photo_id: photos[english.photo_id]} == photos


REAL = external_root()


@pytest.mark.skipif(
    REAL is None or not (REAL / "flickr8k").is_dir(), reason="SEARCHLAB_DATASETS has no flickr8k"
)
@pytest.mark.parametrize(
    ("name", "n_queries", "languages"),
    [
        ("flickr8k", 2_540, "cs de en fr zh"),
        ("flickr8k-captions", 20_997, "ar cs de en es fr id ja ru tr zh"),
        ("flickr8k-similar", 597, NO_LANGUAGE),
        ("flickr8k-words", 180, "en"),
        ("flickr8k-words-described", 179, "en"),
        ("flickr8k-described-zh", 1_000, "zh"),
        ("flickr8k-words-described-zh", 104, "zh"),
        ("flickr8k-steered", 1_527, "cs de en fr zh"),
    ],
)
def test_the_real_flickr8k_has_its_queries_and_languages(name, n_queries, languages):
    dataset = load_dataset(name)
    assert len(dataset.queries) == n_queries
    assert dataset.languages == tuple(languages.split())
    assert len(dataset.photo_ids) == 1_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("something\nelse\n", "KeyError: 'judged_as'"),
        ("judged_as\tphoto_id\tgrade\na#en\ta\t3\na#en\ta\t2\n", "got 'a' again for 'a#en'"),
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
